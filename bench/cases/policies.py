"""Star, linear and triangle of STTT 2021 over windows of 10 to 10,000 s, and the policies of the campaign.

Streams of 1,000 events a second, as in Schneider et al. (STTT 2021), §6: A is one event in a hundred, B and C share the
rest; every time-stamp is one time-point ("1 a second") or each event is one ("1,000 a second"). Values are drawn from
as many as there are events, so that few valuations match, as in the paper.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from bench import machine
from bench.answers import WrongAnswer
from bench.subject import Answer, Case, Contender
from datasets import campaign
from hamlet.oracle.policies import Oracle
from hamlet.policies import Policy, run
from hamlet.policies.rewriting import goal
from hamlet.policies.signature import Signature

RATE = 1_000
NAMES = ("star", "linear", "triangle")
WORKLOADS = machine.ROOT / "workloads"


class Joined:
    """One formula over one window.

    Parameters
    ----------
    name : {'star', 'linear', 'triangle'}
    window : int
        Seconds.
    time_points : {'step', 'event'}
    events : int
    """

    def __init__(self, name: str, window: int, time_points: str, events: int) -> None:
        text = (WORKLOADS / f"{name}.mfotl").read_text(encoding="utf-8").replace("[0,10s)", f"[0,{window}s)")
        self.policy = Policy.parse(text, Signature.from_file(WORKLOADS / "papers.sig"), name)
        self.time_points, self.window = time_points, window
        self.table = joined_events(events, events)

    def answer(self) -> Answer:
        """Compare a short stream of few values with the definition."""
        rows = small_rows(self.policy)
        found = run(self.policy, self.table, time_points=self.time_points)
        facts = {"events": self.table.num_rows, "window[s]": self.window, "time-points": found.stats["time_points"]}
        return Answer([f"{rows} rows of short streams as the oracle has them"], facts | {"rows": len(found)})

    def contenders(self) -> Mapping[str, Contender]:
        """The whole run, from Arrow columns to rows."""
        return {"hamlet": Contender(self._run, None, question="rows are counted")}

    def _run(self) -> Any:
        return run(self.policy, self.table, time_points=self.time_points)


class Campaign:
    """A policy of the campaign.

    Parameters
    ----------
    name : {'insert', 'delete', 'custom'}
    events : int
    """

    def __init__(self, name: str, events: int) -> None:
        self.policy = Policy.from_file(WORKLOADS / f"{name}.mfotl", WORKLOADS / "campaign.sig")
        self.table = campaign.generate(events)

    def answer(self) -> Answer:
        """Compare a small campaign with the definition."""
        table = campaign.generate(16, seed=3, users=2, wrong=0.4)  # brute force over all values
        expected = by_oracle(self.policy, table)
        if listed(run(self.policy, table).rows()) != expected:
            raise WrongAnswer(f"rows of {self.policy.name} differ from the oracle's")
        found = run(self.policy, self.table)
        facts = {"events": self.table.num_rows, "time-points": found.stats["time_points"], "rows": len(found)}
        return Answer([f"{len(expected)} rows of a small campaign as the oracle has them"], facts)

    def contenders(self) -> Mapping[str, Contender]:
        """The whole run."""
        return {"hamlet": Contender(lambda: run(self.policy, self.table), None, question="rows are counted")}


def joined_events(events: int, values: int, seed: int = 1, rate: int = RATE) -> pa.Table:
    """Events A, B and C of two fields."""
    chance = np.random.default_rng(seed)
    types = np.array(["A", "B", "C"])[chance.choice(3, events, p=[0.01, 0.495, 0.495])]
    return pa.table(
        {
            "time": np.arange(events) // rate,
            "type": pa.array(types),
            "x": chance.integers(0, values, events),
            "y": chance.integers(0, values, events),
        }
    )


def small_rows(policy: Policy) -> int:
    """Compare short streams with the oracle; how many rows there were."""
    rows = 0
    for seed in range(5):
        draw = random.Random(seed)
        table = joined_events(60, 3, seed, rate=4)
        types = pa.array([draw.choice("ABC") for _ in range(60)])
        table = table.set_column(1, "type", types)
        expected = by_oracle(policy, table)
        if listed(run(policy, table).rows()) != expected:
            raise WrongAnswer(f"rows of {policy.name} differ from the oracle's (seed {seed})")
        rows += len(expected)
    return rows


def by_oracle(policy: Policy, table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows by brute force."""
    log: list[tuple[int, dict[tuple[str, int], set[tuple[Any, ...]]]]] = []
    for row in table.to_pylist():
        if not log or log[-1][0] != row["time"]:
            log.append((row["time"], {}))
        (schema,) = policy.signature.named(row["type"])
        fields = tuple(row[name] for name in schema.attributes if name is not None)
        log[-1][1].setdefault((schema.name, schema.arity), set()).add(fields)
    asked, names, _ = goal(policy.formula)
    return sorted((time, point, *values) for time, point, values in Oracle(asked, log).rows(names))


def listed(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Rows as tuples, in order."""
    return sorted(tuple(value for name, value in row.items() if name != "policy") for row in rows)


def _joined_points(windows: tuple[int, ...], events: int) -> dict[str, Any]:
    return {
        f"{name}-{window}s-{kind}": partial(Joined, name, window, kind, events)
        for name in NAMES
        for window in windows
        for kind in ("step", "event")
    }


def _campaign_points(events: int) -> dict[str, Any]:
    return {name: partial(Campaign, name, events) for name in ("insert", "delete", "custom")}


CASES = {
    "policies": Case(
        "star, linear and triangle over windows of 10 to 10,000 s",
        _joined_points((10, 100, 1_000, 10_000), 1_000_000),
        _joined_points((10, 100), 20_000),
        seconds=(300, 30),
    ),
    "campaign": Case(
        "the campaign's three policies over 9.5 M events",
        _campaign_points(9_500_000),
        _campaign_points(50_000),
        seconds=(200, 20),
    ),
}
