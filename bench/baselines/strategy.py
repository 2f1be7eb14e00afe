"""The baselines as strategies: how a class of queries is run, and the rows that come out.

All numbers are floating point with an exponent of their own, so rows are those of ``numbers=float`` (docs/numbers.md).
"""

from __future__ import annotations

import decimal
import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from bench.baselines._automaton import Automaton
from bench.baselines._greta import Graph
from bench.baselines._sharon import Counters
from bench.baselines._two_step import Constructor
from bench.baselines.question import ONE, Piece, PlainQuery, QueryClass, Question
from bench.baselines.tables import side_by_side, slots_of, with_merged_prefixes
from bench.subject import Rows
from hamlet.language.query import Aggregate, Attribute, ReturnItem

Sums = tuple[list[float], int]  # the count and the components, and the power of two that they are multiplied by
_WIDE = decimal.Context(prec=30, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)


class Counter(Protocol):
    """What the three compiled modules hold of one window and partition; the source of each says how it counts."""

    @property
    def steps(self) -> int:
        """How often the inner loop ran."""
        ...

    def feed(
        self,
        events: npt.NDArray[np.int64],
        steps: npt.NDArray[np.int64],
        masks: npt.NDArray[np.uint64],
        values: npt.NDArray[np.float64],
    ) -> None:
        """Take the events of these numbers, in order and whole steps at a time.

        Parameters
        ----------
        events : numpy.ndarray of int64
            Rows of the other three.
        steps : numpy.ndarray of int64
            Equal for events that neither precedes the other.
        masks : numpy.ndarray of uint64
            The roles that accept each event, as bits.
        values : numpy.ndarray of float64, shape (rows, columns), C-contiguous
        """
        ...

    def result(self) -> list[Sums]:
        """For each query the count and the components, and the power of two by which they are multiplied."""
        ...


@dataclass(frozen=True)
class Strategy:
    """How queries of one class are run.

    Attributes
    ----------
    name : str
    counter : callable
        What counts in one window and partition.
    tables : callable
        The tables that some queries share.
    alone : bool
        Whether every query has tables of its own.
    """

    name: str
    counter: Callable[[Automaton], Counter]
    tables: Callable[[Sequence[PlainQuery]], Automaton]
    alone: bool


# A step is a pair of events, a counter added to, or a partial trend and an event tried.
GRETA = Strategy("greta", Graph, side_by_side, alone=True)
SHARON = Strategy("sharon", Counters, with_merged_prefixes, alone=False)
TWO_STEP = Strategy("two-step", Constructor, side_by_side, alone=False)
STRATEGIES = {each.name: each for each in (GRETA, SHARON, TWO_STEP)}


class Run:
    """One strategy over one question, online.

    Parameters
    ----------
    strategy : Strategy
    question : Question

    Attributes
    ----------
    steps : int
        Steps of the inner loops of all windows that are closed.
    """

    def __init__(self, strategy: Strategy, question: Question) -> None:
        self.strategy, self.question, self.steps = strategy, question, 0
        self._parts = {
            id(each): [
                (queries, strategy.tables(queries))
                for queries in ([(query,) for query in each.queries] if strategy.alone else [each.queries])
            ]
            for each in question.classes
        }
        self._open: dict[tuple[int, int], dict[int, list[Counter]]] = {}  # class, window -> partition -> counters

    def push(self, pieces: Sequence[Piece]) -> None:
        """Take events."""
        question = self.question
        for piece in pieces:
            window = self._open.setdefault((id(piece.members), piece.window), {})
            counters = window.get(piece.partition)
            if counters is None:
                counters = [self.strategy.counter(tables) for _, tables in self._parts[id(piece.members)]]
                window[piece.partition] = counters
            for counter in counters:
                counter.feed(piece.events, question.steps, question.masks, question.values)

    def advance(self, time: int | None) -> Rows:
        """The rows of the windows that end by a time; of all with None."""
        rows: Rows = []
        for members in self.question.classes:
            for place in sorted(place for place in self._open if place[0] == id(members)):
                if time is None or place[1] * members.slide + members.within <= time:
                    rows += self._close(members, place[1], self._open.pop(place))
        return rows

    def _close(self, members: QueryClass, window: int, partitions: dict[int, list[Counter]]) -> Rows:
        found: dict[tuple[int, tuple[Any, ...]], list[Sums]] = defaultdict(list)
        places = {query.analysed.index: place for place, query in enumerate(members.queries)}
        for partition, counters in partitions.items():
            for (queries, _), counter in zip(self._parts[id(members)], counters, strict=True):
                for query, sums in zip(queries, counter.result(), strict=True):
                    found[places[query.analysed.index], members.groups[partition]].append(sums)
                self.steps += counter.steps
        start = window * members.slide
        edges = {"window_start": start, "window_end": start + members.within}
        rows = []
        for (place, group), parts in found.items():
            query = members.queries[place]
            slots = slots_of((query,) if self.strategy.alone else members.queries)
            values, exponent = _added(parts)
            if values[0]:
                names = dict(zip(members.grouping, group, strict=True))
                added = {name: values[1 + slots.index(slot)] for name, slot in query.slots.items()}
                columns = {
                    item.column: _value(item, values[0], added, exponent, names) for item in query.analysed.query.items
                }
                rows.append({"query": query.analysed.query.name, **edges, **columns})
        return rows


def run(strategy: Strategy, question: Question, pieces: Sequence[Piece] | None = None) -> tuple[Rows, int]:
    """All rows of a question and the steps that they took.

    Parameters
    ----------
    strategy : Strategy
    question : Question
    pieces : sequence of Piece, optional
        The whole stream cut by `Question.pieces`, if that shall not be part of the time.
    """
    running = Run(strategy, question)
    rows: Rows = []
    for piece in question.pieces(0, len(question.times)) if pieces is None else pieces:
        rows += running.advance(piece.window * piece.members.slide) if len(question.classes) == 1 else []
        running.push([piece])
    rows += running.advance(None)
    return rows, running.steps


def _added(parts: Sequence[Sums]) -> Sums:
    """The sum over partitions."""
    exponent = max(each[1] for each in parts)
    scaled = [[math.ldexp(value, power - exponent) for value in values] for values, power in parts]
    return [math.fsum(values) for values in zip(*scaled, strict=True)], exponent


def _value(
    item: ReturnItem, count: float, added: dict[tuple[str, str], float], exponent: int, names: dict[str, Any]
) -> Any:
    """The value of a result column; all sums are multiplied by two to the power of `exponent`."""
    if isinstance(item.value, Attribute):
        return names[item.value.name]
    assert isinstance(item.value, Aggregate), "baselines know no expressions"
    variable, attribute = item.value.variable, item.value.attribute
    number = count
    if variable is not None:
        number = added[variable, attribute or ONE]
    if variable is not None and attribute is not None:
        present = added[variable, f"{attribute} IS NOT NULL"]
        if not present:
            return None
        if item.value.function.upper() == "AVG":
            return number / present
    if item.log2:
        return math.log2(number) + exponent if number > 0 else None
    return _number(number, exponent)


def _number(value: float, exponent: int) -> float | decimal.Decimal:
    """A double, or a decimal beyond the double range."""
    if not value or math.frexp(value)[1] + exponent <= 1023:
        return math.ldexp(value, exponent)
    return _WIDE.multiply(decimal.Decimal(value), _WIDE.power(decimal.Decimal(2), exponent))
