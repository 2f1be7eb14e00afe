"""Result rows as lines over time, as many as a small page can hold: per query, group and aggregate.

Where a query has more windows than the page has room for, neighbouring ones are put together and the largest value of
each group stands for them. Where it has more groups, those with the largest values are drawn one by one, and a band
from the least to the greatest value stands for all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from typing import Any

import numpy as np

from hamlet.language.printing import to_text
from hamlet.language.query import AttributeType, Query
from hamlet.language.schema import Clock
from hamlet.output.digits import leading, short_text
from hamlet.output.query_rows import QueryRows, ResultColumn
from hamlet.planner.timeline import line_of

MOST_POINTS = 30_000  # of a page: about 6 bytes each
MOST_BINS = 150
_MOST_LINES = 60  # of one query: more cannot be told apart

Value = int | float | Decimal | None
Plotted = int | float | str | None


@dataclass(frozen=True)
class Sample:
    """What a part of a query's rows, drawn by chance, is a part of.

    Attributes
    ----------
    rows, groups : int
        How many there are in all.
    windows_in, groups_in : int
        One of so many windows and one of so many groups was drawn, with all their rows.
    """

    rows: int
    groups: int
    windows_in: int
    groups_in: int

    @property
    def text(self) -> str:
        """What was drawn, in words.

        Examples
        --------
        >>> Sample(10**9, 5_000, 20, 1).text, Sample(10**9, 10**6, 20, 100).text
        ('a sample: 1 of 20 windows', 'a sample: 1 of 20 windows and 1 of 100 groups')
        """
        drawn = [(self.windows_in, "windows"), (self.groups_in, "groups")]
        return "a sample: " + " and ".join(f"1 of {number:,} {what}" for number, what in drawn if number > 1)


@dataclass
class _Line:
    """The points of one group: for each bin the values of the measures."""

    label: str
    points: dict[int, list[Value]]


def query_lines(
    query: Query, rows: QueryRows, clock: Clock, points: int, sample: Sample | None = None
) -> dict[str, Any]:
    """What the page draws of one query.

    Parameters
    ----------
    query : Query
    rows : QueryRows
        Of this query.
    clock : Clock
        Of the windows.
    points : int
        How many values there is room for.
    sample : Sample, optional
        What the rows were drawn from, where they are not all.

    Returns
    -------
    dict
        ``name``, ``pattern``; ``groupedBy``: attributes; ``measures``: names; ``first``: the one to show first, by
        place; ``top``: the row of its largest value (``value`` as text, ``start``, ``end``, ``group``), or None;
        ``logarithms``: those that are LOG2, by place; ``rows``, ``groups``: how many there are; ``starts``:
        ticks of the first window of each bin; ``joined``: most windows in a bin; ``within``, ``slide``: ticks;
        ``lines``: of the groups with the largest values of the first measure (``label``; ``bins``, left out where it
        has all; ``values`` per measure); ``band``: per measure the least and greatest values of all groups by bin,
        where not all groups have a line; ``sample``: what of all that was drawn, in words.
    """
    places = [place for place, column in enumerate(rows.columns) if _is_measure(column)]
    first = next((number for number, place in enumerate(places) if rows.columns[place].kind == "count"), 0)
    logarithms = [number for number, place in enumerate(places) if query.items[place].log2]
    keys = [place for place, column in enumerate(rows.columns) if column.kind == "attribute"]
    within = 0 if rows.edges is None else rows.edges[1] - rows.edges[0]  # of one window over everything
    starts = sorted({start for piece in rows.pieces for start in np.unique(piece.starts).tolist()})
    bin_of, first_starts, joined = _bins(starts)
    lines, top = _lines(rows, keys, places, bin_of, first)
    names = [rows.columns[place].name for place in places] or ["trends exist"]
    kept = _kept(lines[:], first, points // len(names))
    return {
        "name": rows.name,
        "pattern": to_text(query.pattern),
        "groupedBy": [rows.columns[place].name for place in keys],
        "measures": names,
        "first": first,
        "logarithms": logarithms,
        "rows": len(rows) if sample is None else sample.rows,
        "groups": len(lines) if sample is None else sample.groups,
        "sample": "" if sample is None else sample.text,
        "starts": first_starts,
        "joined": joined,
        "within": within if query.within is None else int(query.within.seconds * clock.ticks_per_second),
        "top": top,
        "slide": line_of(query, clock)[2]
        if clock.zone
        else (within if query.step is None else int(query.step.seconds * clock.ticks_per_second)),
        "ends": _ends(rows, first_starts) if clock.zone else None,
        "lines": [_shown(line, len(first_starts)) for line in kept],
        "band": _band(lines, len(first_starts), len(names)) if len(kept) < len(lines) else None,
    }


def _lines(
    rows: QueryRows, keys: Sequence[int], places: Sequence[int], bin_of: Callable[[int], int], first: int
) -> tuple[list[_Line], dict[str, Any] | None]:
    """The line of every group, of neighbouring windows in one bin the largest values; the row of the largest value."""
    lines: dict[tuple[Any, ...], _Line] = {}
    top: tuple[Value, int, int, str] = (None, 0, 0, "")
    for row in chain.from_iterable(piece.tuples() for piece in rows.pieces):
        group = tuple(row[2 + place] for place in keys)
        line = lines.get(group)
        if line is None:
            line = lines[group] = _Line(", ".join(map(_label, group)), {})
        values = [row[2 + place] for place in places] or [1]
        if values[first] is not None and (top[0] is None or values[first] > top[0]):
            top = (values[first], row[0], row[1], line.label)
        number = bin_of(row[0])
        before = line.points.get(number)
        line.points[number] = values if before is None else [*map(_larger, before, values)]
    shown = {"value": _text(top[0]), "start": top[1], "end": top[2], "group": top[3]}
    return [*lines.values()], None if top[0] is None or not places else shown


def _text(value: Value) -> str:
    if isinstance(value, int):
        return f"{value:,}" if abs(value) < 10**15 else short_text(value)
    return "" if value is None else f"{value:.6g}"


def _ends(rows: QueryRows, starts: Sequence[int]) -> list[int]:
    """When the windows end that begin at some times: by the clock of a time zone they are not equally long."""
    ends: dict[int, int] = {}
    for piece in rows.pieces:
        ends.update(zip(np.asarray(piece.starts).tolist(), np.asarray(piece.ends).tolist(), strict=True))
    return [ends[start] for start in starts]


def _is_measure(column: ResultColumn) -> bool:
    return column.kind != "attribute" and column.type is not AttributeType.TIMESTAMP


def _bins(starts: Sequence[int]) -> tuple[Callable[[int], int], list[int], int]:
    """Which bin a window start falls in, the first start of each bin, and the most windows in one."""
    if len(starts) <= MOST_BINS:
        numbers = {start: number for number, start in enumerate(starts)}
        return numbers.__getitem__, list(starts), min(len(starts), 1)
    size = -(-len(starts) // MOST_BINS)  # windows are counted, not time: a gap in the stream costs no room
    numbers = {start: place // size for place, start in enumerate(starts)}
    return numbers.__getitem__, list(starts[::size]), size


def _label(value: Any) -> str:
    text = str(value)
    if value is None or isinstance(value, bool):
        text = "NULL" if value is None else text.lower()
    return text if len(text) <= 60 else text[:57] + "..."


def _larger(one: Value, other: Value) -> Value:
    if one is None or other is None:
        return other if one is None else one
    return one if one >= other else other


def _kept(lines: list[_Line], measure: int, room: int) -> list[_Line]:
    """The lines that are drawn, those with the largest values of a measure first."""

    def largest(line: _Line) -> tuple[bool, Any]:
        values: list[Any] = [values[measure] for values in line.points.values() if values[measure] is not None]
        return bool(values), max(values, default=0)

    lines.sort(key=largest, reverse=True)
    kept: list[_Line] = []
    for line in lines[:_MOST_LINES]:
        room -= len(line.points)
        if room < 0 and kept:
            break
        kept.append(line)
    return kept


def _shown(line: _Line, bins: int) -> dict[str, Any]:
    numbers = sorted(line.points)
    columns = zip(*(line.points[number] for number in numbers), strict=True)
    found: dict[str, Any] = {"label": line.label, "values": [[*map(plotted, column)] for column in columns]}
    return found if len(numbers) == bins else {**found, "bins": numbers}


def _band(lines: Iterable[_Line], bins: int, measures: int) -> list[dict[str, list[Plotted]]]:
    found: list[dict[str, list[Plotted]]] = []
    for measure in range(measures):
        low: list[Value] = [None] * bins
        high: list[Value] = [None] * bins
        for line in lines:
            for number, values in line.points.items():
                value, least = values[measure], low[number]
                if value is not None:
                    low[number] = value if least is None else min(value, least)
                    high[number] = _larger(high[number], value)
        found.append({"low": [*map(plotted, low)], "high": [*map(plotted, high)]})
    return found


def plotted(value: Value) -> Plotted:
    """A number as the page has it: one that a double holds, or text of five digits such as ``1.4125e+1505``.

    Examples
    --------
    >>> plotted(120), plotted(1 / 3), plotted(2**5000), plotted(-(10**40))
    (120, 0.333333, '1.4125e+1505', '-1.0000e+40')
    """
    if value is None or isinstance(value, float):
        if value is None or not math.isfinite(value):
            return None
        return int(value) if value.is_integer() and abs(value) < 1e15 else float(f"{value:.6g}")
    if isinstance(value, int):
        if abs(value) < 10**15:
            return int(value)
        value = leading(value)
    return format(value, ".4e")
