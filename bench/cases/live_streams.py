"""From socket to socket at a rate: how long after the event that decides it a row is there, and the rates that hold."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from bench.live import Subject, measured
from bench.subject import Answer, Case, Contender

_PATIENCE_S = 1.0  # by which the last row of a rate that holds may be late
POINTS = {  # what is run, and events per second
    "star, 75,000/s from a log": ("star", "monpoly", 75_000),
    "100 queries by key, 200,000/s from Arrow": ("queries", "arrow", 200_000),
    "100 queries by key, 200,000/s from JSON": ("queries", "json", 200_000),
    "star, 1,000,000/s from a log": ("star", "monpoly", 1_000_000),
    "star, 1,000,000/s from Arrow": ("star", "arrow", 1_000_000),
    "star, 400,000/s from JSON": ("star", "json", 400_000),
}


class Live:
    """One rate.

    Parameters
    ----------
    name, form : str
        Of `bench.live.Subject`.
    rate : int
    seconds : float
    """

    def __init__(self, name: str, form: str, rate: int, seconds: float) -> None:
        self.subject, self.rate, self.seconds = Subject(name, form), rate, seconds

    def answer(self) -> Answer:
        """A short run at a low rate; every run compares its rows with those of a run over the file."""
        found = measured(self.subject, min(self.rate, 20_000), 11.0)
        facts = {"events": int(self.rate * self.seconds), "events_per_second": self.rate, "rows": found["rows"]}
        return Answer([f"all {found['rows']:,} rows at a low rate, and those of each run, as over the file"], facts)

    def contenders(self) -> Mapping[str, Contender]:
        """The run."""
        return {"socket to socket": Contender(self._run, None, metrics=self._metrics, question="rows are compared")}

    def _run(self) -> dict[str, float]:
        return measured(self.subject, self.rate, self.seconds)

    def _metrics(self, found: dict[str, float]) -> dict[str, float]:
        late = max(found["p100_ms"], found["behind_ms"]) / 1000
        return {**found, "holds": float(late < _PATIENCE_S)}


def _points(seconds: float, slower: int = 1) -> dict[str, Any]:
    return {
        name: partial(Live, subject, form, rate // slower, seconds) for name, (subject, form, rate) in POINTS.items()
    }


CASES = {
    "live": Case(
        "from socket to socket at a rate for a minute: latency of rows, processor time, whether it holds (give "
        "--repeats 1: every round takes a minute)",
        _points(60.0),
        _points(11.0, 20),
        seconds=(1_500, 200),
        apart=True,
        timeout_s=(900, 200),
    )
}
