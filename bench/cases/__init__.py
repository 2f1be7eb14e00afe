"""The cases: what is run, how its answer is checked, and what is timed.

A point of a case becomes a `Subject` inside a process of its own (`bench.worker`). A subject answers once, with checks
that do not rest on the timed path alone, and then hands out contenders: callables that the worker times.
"""

from __future__ import annotations

from bench.cases import (
    campaigns,
    curves,
    evidence,
    flat_memory,
    jobs,
    less,
    limits,
    live_streams,
    neighbours,
    peers,
    policies,
    policy_growth,
    policy_processes,
    policy_pushes,
    questions,
    ranges,
    real,
    row_patterns,
    scale,
    service,
    sharing,
    slices,
    specifications,
    stream_rate,
    trends_told,
    verdicts,
)
from bench.subject import Case

CASES: dict[str, Case] = {
    **real.CASES,
    **row_patterns.CASES,
    **limits.CASES,
    **neighbours.CASES,
    **trends_told.CASES,
    **curves.CASES,
    **evidence.CASES,
    **scale.CASES,
    **sharing.CASES,
    **service.CASES,
    **stream_rate.CASES,
    **live_streams.CASES,
    **specifications.CASES,
    **peers.CASES,
    **questions.CASES,
    **jobs.CASES,
    **ranges.CASES,
    **less.CASES,
    **verdicts.CASES,
    **flat_memory.CASES,
    **policies.CASES,
    **policy_growth.CASES,
    **policy_processes.CASES,
    **policy_pushes.CASES,
    **slices.CASES,
    **campaigns.CASES,
}
