"""The physical plan: which operator serves each query of a compiled workload, and why no faster one.

Operators form a ladder, from ``complete_window`` down to ``scalar`` and ``event_store``. A query is served by the first
that can have it. Others take over where numbers or events are not as it needs them: a window that is not complete in a
batch goes to ``simd``, numbers beyond 64 bits of many overlapping windows to ``limb_matrix`` or ``scalar``. So the plan
says what serves a query as long as it can; ``stats["operators"]`` says what each operator has got.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hamlet.planner.bands import Band, fits
from hamlet.planner.compiled import CompiledClass, CompiledWorkload
from hamlet.planner.paths import ALWAYS, EVERY, Paths
from hamlet.planner.tables import QueryTables


@dataclass(frozen=True)
class Served:
    """What serves a query.

    Attributes
    ----------
    operator : str
        The operator.
    instead : str or None
        The next faster operator that the query might have had; None where it has the fastest.
    reason : str or None
        Why it does not have that one: the first reason that holds.
    beyond : str or None
        The operator that takes over where its numbers are too large for that one, if that is not the usual one.
    """

    operator: str
    instead: str | None = None
    reason: str | None = None
    beyond: str | None = None


@dataclass(frozen=True)
class PhysicalPlan:
    """Who computes what.

    Attributes
    ----------
    served : dict of int to Served
        By the number of a query in its workload.
    paths : Paths
        The operators and features that may be used.
    """

    served: dict[int, Served]
    paths: Paths


def physical_plan(
    compiled: CompiledWorkload, *, sharing: str = "dynamic", benefit: str = "measured", trace: bool = False,
    paths: Paths = EVERY,
) -> PhysicalPlan:  # fmt: skip
    """Say for each query of a workload which operator serves it.

    Parameters
    ----------
    compiled : CompiledWorkload
    sharing, benefit : str
        As of `hamlet.engine.options.Options`.
    trace : bool
        Whether each decision about a burst is recorded.
    paths : Paths
        The operators and features that may be used.
    """
    served: dict[int, Served] = {}
    for each in compiled.classes:
        known = _Class(each, sharing, benefit, trace, paths)
        for place, query in enumerate(each.queries):
            served[query.analysed.index] = known.served(place)
    return PhysicalPlan(served, paths)


class _Class:
    """The queries of one kernel."""

    def __init__(self, compiled: CompiledClass, sharing: str, benefit: str, trace: bool, paths: Paths) -> None:
        self._compiled, self._paths = compiled, paths
        self._decided = sharing, benefit, trace
        self._band_of = {query: band for band in compiled.bands for query in band.queries}
        self._against = next(self._against_complete(), None)

    def served(self, place: int) -> Served:
        """What serves a query, by its place in the class."""
        if self._compiled.matching:
            return Served("matching")
        query = self._compiled.queries[place]
        parts = self._compiled.parts_of[place]
        bands = [self._band_of[part] for part in parts if part in self._band_of]
        tables = query.tables if query.merged is None else (self._compiled.merged_queries[query.merged].tables,)
        operator = min((self._paths.alone(each) for each in tables), key=lambda name: name != "event_store")
        beyond = None if operator in ALWAYS else operator
        if len(bands) < len(parts) or query.merged is not None:
            return Served(operator, "simd", self._alone(place, tables))
        if not self._paths.runs("simd"):
            return Served(operator, "simd", _left_out("simd"))
        if query.window[1] < query.window[0]:
            reason = next(self._against_matrix(bands, tables), None)
            return Served("pane_matrix") if reason is None else Served("simd", "pane_matrix", reason, beyond)
        if self._against:
            return Served("simd", "complete_window", self._against, beyond)
        return Served("complete_window", beyond=beyond)

    def _alone(self, place: int, tables: Sequence[QueryTables]) -> str:
        """Why a query is in no band."""
        query = self._compiled.queries[place]
        if query.merged is not None:
            names = [self._compiled.queries[each].name for each in self._compiled.merged_queries[query.merged].queries]
            others = ", ".join(name for name in names if name != query.name)
            return f"its partial trends are kept once, with those of {others}, which begin alike"
        if any(each.predicates for each in tables):
            return "it compares an event with earlier ones, which have to be kept"
        if not all(all(each.simple) for each in tables):
            return "it has a negated pattern that is longer than one event"
        if any(each.stores or each.indexes for each in tables) or not all(map(fits, tables)):
            return "it keeps single events"
        return "the vectors of so few queries would take more memory than their sums"

    def _against_matrix(self, bands: Sequence[Band], tables: Sequence[QueryTables]) -> Iterator[str]:
        """Why the panes of a query whose windows overlap are not computed as matrices."""
        if not self._paths.runs("pane_matrix"):
            yield _left_out("pane_matrix")
        if tables[0].exact:
            yield "exact numbers: panes are matrices beyond 64 bits only, under short bursts"
        for band in bands:
            if not band.maps:
                windows = -(-tables[0].within // tables[0].slide)
                yield f"at most {windows} windows overlap; a matrix pays from {band.slots + 3} on"

    def _against_complete(self) -> Iterator[str]:
        """Why the tumbling windows of the kernel's queries are not taken at once."""
        compiled, (sharing, benefit, trace) = self._compiled, self._decided
        if not self._paths.runs("complete_window"):
            yield _left_out("complete_window")
        if trace:
            yield "each decision about a burst is recorded"
        if benefit == "paper":
            yield "the paper's model decides for every burst (benefit='paper')"
        if sharing == "never":
            yield "every query is to be computed by itself (sharing='never')"
        for number, kept in enumerate(compiled.kept_by):
            if number not in self._band_of and kept:
                yield f"{compiled.queries[kept[0]].name}, which has the same partition, cannot run side by side"
        windows = {query.window for query in compiled.queries}
        if len(windows) > 1:
            yield "queries of the same partition have other windows"
        if any(within != slide for within, slide in windows):
            yield "there are gaps between its windows"


def _left_out(operator: str) -> str:
    return f"operators= leaves out {operator}"
