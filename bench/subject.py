"""What a case is made of: an answer that has been checked, and things that are timed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

Rows = list[dict[str, Any]]
Tables = Mapping[str, pa.Table]  # by query


def rows_written(output: Path, queries: Iterable[str]) -> Rows:
    """The rows that `hamlet run` or `hamlet submit` wrote as Parquet, each with its query; counts may be text."""
    return [
        {"query": query, **row}
        for query in queries
        for row in pq.read_table(output / f"query={query}", partitioning=None).to_pylist()
    ]


@dataclass
class Answer:
    """What the check of a case found out.

    Attributes
    ----------
    checks : list of str
        One sentence for each check that was passed.
    facts : dict
        Sizes without which a time means nothing: events, queries, rows, largest_count_bits, ...
    digest : str
        Of the rows that every timed run has to give again; where the contenders answer several questions, the digests
        of all of them, with blanks between.
    """

    checks: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    digest: str = ""


@dataclass(frozen=True)
class Contender:
    """One thing that is timed.

    Attributes
    ----------
    run : callable
        The timed work.
    rows : callable or None
        Result rows, or tables by query, from what `run` returned, not timed; None for a peer that answers another
        question.
    in_children : bool
        Whether the work is done by child processes, whose memory counts then.
    events : int or None
        How many events it reads, where that is not what the answer's facts say.
    metrics : callable or None
        Numbers by name (with units) from what `run` returned; kept for every repeat.
    check : callable or None
        Compares what `run` returned with rows that are known; raises WrongAnswer.
    question : str
        What a peer with `rows` None answers instead.
    """

    run: Callable[[], Any]
    rows: Callable[[Any], Rows | Tables] | None
    in_children: bool = False
    events: int | None = None
    metrics: Callable[[Any], Mapping[str, float]] | None = None
    check: Callable[[Any], None] | None = None
    question: str = ""


class Subject(Protocol):
    """A case inside its process."""

    def answer(self) -> Answer:
        """Check the answer by other means than those that are timed."""
        ...

    def contenders(self) -> Mapping[str, Contender]:
        """What is timed, in turn."""
        ...


Points = Mapping[str, Callable[[], Subject]]  # by name; a plain case has the one point ""


@dataclass(frozen=True)
class Case:
    """Something that is measured, at one point or along a curve.

    Attributes
    ----------
    title : str
        One line for the report.
    full, quick : mapping of str to callable
        Each point's subject is made inside the worker; `quick` has small sizes and the same code.
    seconds : tuple of float
        About how long the full and the quick one take.
    apart : bool
        Whether every contender is measured in a process of its own, with `timeout_s` as its limit, because some may
        never end or differ in memory. Else all take turns in one process.
    timeout_s : tuple of float or None
        Limit of a process, full and quick, where it is not the command line's.
    """

    title: str
    full: Points
    quick: Points
    seconds: tuple[float, float]
    apart: bool = False
    timeout_s: tuple[float, float] | None = None

    def points(self, quick: bool) -> Points:
        """The points of one size."""
        return self.quick if quick else self.full


def plain(
    title: str,
    full: Callable[[], Subject],
    quick: Callable[[], Subject] | None = None,
    *,
    seconds: tuple[float, float],
    timeout_s: tuple[float, float] | None = None,
) -> Case:
    """A case of one point; without a small size the quick one is the full one."""
    return Case(title, {"": full}, {"": quick or full}, seconds, timeout_s=timeout_s)
