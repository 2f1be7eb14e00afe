"""Which sums are the vector that a chunk maps, and the queries that compute the map's columns.

The entries are the cells of a query and, for each guard set of a transition from the start, the start itself: 1 until a
negated pattern kills it. In a *probe* the starts are cells like all others. An event that the stream does not have, the
seed, gives one of its entries a trend, so what stands in its cells later is one row of the matrix.

The start and the final sum are coordinates, too: guards before the first and after the last event act on them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hamlet._core import SOURCES
from hamlet.language.schema import MOST_TICKS
from hamlet.planner.aggregates import Component, ComponentKey, nothing
from hamlet.planner.compiled import CompiledClass
from hamlet.planner.tables import NONE, QueryTables

SHIFT = MOST_TICKS + 1  # makes all times of a probe positive, and that of its seed too
ENDLESS = (1 << 62) + 4  # ticks: one window that holds all of them
NO_VARIABLE = -3  # of the seed: no component looks at it

Sums = list[Component]  # the components of a set of trends


@dataclass(frozen=True)
class Coordinates:
    """The entries of a query's vector: its cells, then its starts.

    Attributes
    ----------
    cells : int
    starts : tuple of int
        Guard sets of transitions from the start, -1 for none.
    finals : tuple of int
        The cells in which trends are complete.
    window : (int, int)
        Ticks: within, slide.
    keys : tuple of ComponentKey
        What an entry holds.
    """

    cells: int
    starts: tuple[int, ...]
    finals: tuple[int, ...]
    window: tuple[int, int]
    keys: tuple[ComponentKey, ...]

    @property
    def size(self) -> int:
        """Entries of the vector."""
        return self.cells + len(self.starts)

    @property
    def unit(self) -> Sums:
        """One trend without events: what a living start holds."""
        return [(1.0, 0) if self.keys[0].kind == "count_scaled" else 1, *nothing(self.keys)[1:]]

    @property
    def beginning(self) -> dict[int, Sums]:
        """The vector of a window without events."""
        return {self.cells + place: self.unit for place in range(len(self.starts))}

    def ends_after(self, time: int) -> range:
        """The windows that begin before a time and end after it."""
        within, slide = self.window
        return range((time - within) // slide + 1, -(-time // slide))


def coordinates(tables: QueryTables, keys: tuple[ComponentKey, ...]) -> Coordinates:
    """The entries of the vector of a kernel's query; it is one of those that `refusal` accepts."""
    starts = sorted({tables.sources[place][2] for place in _from_start(tables)})
    begin, end = tables.finals
    finals = tuple(place for _, place, *_ in tables.sources[begin:end])
    return Coordinates(len(tables.cell_guards), tuple(starts), finals, (tables.within, tables.slide), keys)


def probe(tables: QueryTables, of: Coordinates, entry: int) -> QueryTables:
    """The query that computes one row of the matrix; the seed is its last arrival."""
    sources = list(tables.sources)
    for place in _from_start(tables):
        sources[place] = (SOURCES["cell"], of.cells + of.starts.index(sources[place][2]), NONE, NONE, NONE)
    members = [*tables.members, entry]
    cells, stores = (len(tables.members), len(members)), (len(members), len(members))
    seed = (NO_VARIABLE, len(sources), len(sources) + 1, *cells, *stores, 0, len(tables.components))
    return replace(
        tables,
        within=ENDLESS,
        slide=ENDLESS,
        sources=[*sources, (SOURCES["start"], 0, NONE, NONE, NONE)],
        members=members,
        arrivals=[*tables.arrivals, seed],
        cell_guards=[*tables.cell_guards, *of.starts],
    )


def _from_start(tables: QueryTables) -> list[int]:
    """The sources by which a trend begins; those of negated patterns are none."""
    read = {place for _, begin, end, *_ in tables.arrivals for place in range(begin, end)}
    return [place for place in sorted(read) if tables.sources[place][0] == SOURCES["start"]]


def refusal(compiled: CompiledClass) -> str | None:
    """Why the queries of a class have no maps, None where they have.

    What has to look back at single events has no map of bounded size (an adjacent predicate), or one that this
    formulation lacks: a negated pattern longer than one event kills by when its match began.
    """
    if compiled.matching:
        return f"query {compiled.queries[0].name} is run by the matching operator, which has no linear maps"
    for number, kept in enumerate(compiled.kept_by):
        tables = compiled.tables(number)
        if tables.predicates or tables.stores or not all(tables.simple):
            has = "an adjacent predicate, which looks back at single events"
            if not tables.predicates:
                has = "a negated pattern that is longer than one event"
            return f"query {compiled.queries[kept[0]].name} has {has}"
    if compiled.broadcasts:
        names = ", ".join(query.name for query in compiled.queries)
        return f"a type of {names} lacks a key, so that its events have a place in every partition"
    return None
