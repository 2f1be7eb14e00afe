"""What a workload will do, as facts; `text`, `dot` and `document` render them.

The engine fills the dataclasses of this module, the functions of those modules turn them into a string.

Source: HAMLET (SIGMOD'21) §3.1 (templates, panes).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from hamlet.explanation.sharing import SharingView
from optimizer.bounds import Bound
from optimizer.merge import SubPattern
from optimizer.plan import Plan
from optimizer.template import Template

_ALL_TIME = 1 << 62  # ticks that no window has but the one over everything

READS = {
    "start": "begins a trend",
    "sum": "adds one sum",
    "sums": "adds a few sums, kept apart by where a longer negated pattern stands",
    "search": "looks back at single events, by a search among sorted ones",
    "scan": "looks back at single events, one by one",
}
INDEPENDENT = "independent of the event rate"
LINEAR = "linear in the window's matched events"
GROWING = "linear"  # in what is said beside it


@dataclass(frozen=True, slots=True)
class Step:
    """What the engine does at one transition of a template.

    Attributes
    ----------
    reads : str
        A key of `READS`.
    predicate : str or None
        Text of the adjacent predicate between the two events.
    """

    reads: str
    predicate: str | None = None


@dataclass(frozen=True)
class Steps:
    """A template and what the engine does at each of its transitions.

    Attributes
    ----------
    part : str or None
        ``left``, ``right`` or ``both`` for the templates of a query over pairs of trends.
    template : Template
    steps : tuple of Step
        One per transition of the template.
    guards : tuple of Steps
        One per guard of the template.
    """

    part: str | None
    template: Template
    steps: tuple[Step, ...]
    guards: tuple[Steps, ...]


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of a query: its event type, its local predicates, the partition attributes that its type lacks."""

    name: str
    type: str
    negated: bool
    conditions: tuple[str, ...]
    broadcast: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cause:
    """An adjacent predicate for which single events are kept.

    Attributes
    ----------
    predicate : str
    inside : str or None
        The negated pattern that it stands in.
    reads : str
        ``search`` or ``scan``, see `READS`.
    """

    predicate: str
    inside: str | None
    reads: str


@dataclass(frozen=True, slots=True)
class Memory:
    """What a query keeps.

    Attributes
    ----------
    because : tuple of Cause
        Predicates for which events are kept.
    kept_types : tuple of str
        Types that lack partition attributes: their events are kept once, as read, for partitions that form later.
    exact, scaled : Bound or None
        For exact numbers, and for numbers of floating point; None where no bound is known.
    grows : tuple of str
        What else it grows with.
    lane : str
        What partial trends are kept apart by, which the bounds call a window.
    """

    because: tuple[Cause, ...]
    kept_types: tuple[str, ...]
    exact: Bound | None
    scaled: Bound | None
    grows: tuple[str, ...] = ()
    lane: str = "open window"

    @property
    def name(self) -> str:
        """The memory class."""
        return LINEAR if self.because or self.kept_types else GROWING if self.grows else INDEPENDENT


@dataclass(frozen=True, slots=True)
class Window:
    """A query's windows.

    Attributes
    ----------
    within, slide : str
        As written.
    within_ticks, slide_ticks : int
    open_at_once : int
        The most windows that are open at one time.
    offset : str or None
        As written.
    timezone : str or None
        Whose clock says when windows begin.
    begin : str or None
        When one of them begins, in words; None where that is at time 0.
    """

    within: str
    slide: str
    within_ticks: int
    slide_ticks: int
    open_at_once: int
    offset: str | None = None
    timezone: str | None = None
    begin: str | None = None


@dataclass(frozen=True, slots=True)
class LinearMaps:
    """Where stretches of time are computed as linear maps, which many windows then use.

    Attributes
    ----------
    panes : bool
        Under numbers of floating point, a busy pane may be computed once for all windows that are open.
    refused : str or None
        Why a stream cannot be cut into stretches of time, computed side by side; None where it can.
    """

    panes: bool
    refused: str | None


OPERATORS = {
    "complete_window": "queries side by side, each window at once where a batch has all its events",
    "pane_matrix": "queries side by side, a busy pane once for all windows that overlap in it",
    "simd": "queries side by side, one element of a vector each",
    "limb_matrix": "the query by itself, a pane once for all windows that overlap in it, in numbers of any size",
    "scalar": "the query by itself, its sums per open window",
    "event_store": "the query by itself; it looks back at events that are kept",
    "matching": "partial trends move from state to state, in windows that end at different times",
}


@dataclass(frozen=True, slots=True)
class Served:
    """Which operator computes a query.

    Attributes
    ----------
    operator : str
        A key of `OPERATORS`.
    instead : str or None
        The next faster operator that the query might have had; None where it has the fastest.
    reason : str or None
        Why it does not have that one: the first reason that holds.
    beyond : str or None
        The operator that takes over where its numbers are too large for that one, if that is not the usual one.
    """

    operator: str
    instead: str | None
    reason: str | None
    beyond: str | None = None


@dataclass(frozen=True, slots=True)
class Matching:
    """What is asked beside the pattern, of a query that the matching operator runs.

    Attributes
    ----------
    semantics : str
        ``skip-till-any-match``, ``skip-till-next-match`` or ``contiguous``.
    span : str or None
        The most that a trend may last.
    session : bool
        Whether windows are sessions; then WITHIN is the gap that ends one.
    rung : str
        What an event costs.
    """

    semantics: str
    span: str | None
    session: bool
    rung: str


@dataclass(frozen=True)
class QueryView:
    """One query as it is shown; `exact` and `scaled` say what computes it, by what numbers are."""

    name: str
    pattern: str
    returns: tuple[str, ...]
    variables: tuple[Variable, ...]
    grouping: tuple[str, ...]
    equivalence: tuple[str, ...]
    window: Window
    templates: tuple[Steps, ...]
    memory: Memory
    maps: LinearMaps
    exact: Served
    scaled: Served
    matching: Matching | None = None
    groups: tuple[str, ...] = ()  # all that GROUP-BY names

    @property
    def rung(self) -> str:
        """The operator that serves the query."""
        reads = {cause.reads for cause in self.memory.because}
        return "event-grained" if "scan" in reads else "indexed" if reads else "state-grained"


@dataclass(frozen=True)
class WorkloadView:
    """A workload as it is shown.

    Attributes
    ----------
    queries : tuple of QueryView
        In the order of the workload.
    plan : Plan
    ticks_per_second : int
    time_unit : str or None
        None where the time column is not known.
    shared : SharingView
        What the queries share.
    together : tuple of tuple of int
        Places of queries for which single events are kept once.
    bursts : tuple of (str, tuple of int)
        Event types whose bursts several queries of a partitioning can share, and the places of these queries.
    """

    queries: tuple[QueryView, ...]
    plan: Plan
    ticks_per_second: int
    time_unit: str | None
    shared: SharingView
    together: tuple[tuple[int, ...], ...]
    bursts: tuple[tuple[str, tuple[int, ...]], ...] = ()

    @property
    def sharing_sets(self) -> list[tuple[int, ...]]:
        """Sets of queries that can share work in a run: bursts, kept events, or all of it."""
        return [*(places for _, places in self.bursts), *self.together, *map(tuple, self.shared.sharing.same)]

    def single(self, pattern: SubPattern) -> list[int]:
        """Queries that have a sub-pattern, and in a run take its events one by one or by themselves."""
        bursts = [set(places) for kind, places in self.bursts if kind in pattern.shape.types]
        bursts += [set(each) for each in (*self.together, *self.shared.sharing.same)]
        own = set(pattern.queries)
        return sorted(own.difference(*(each for each in bursts if len(each & own) > 1)))

    def names(self, places: Iterable[int]) -> list[str]:
        """The names of some queries."""
        return [self.queries[place].name for place in places]


# ------------------------------------------------------------------------------------------ words for all renderings


def duration_text(ticks: int, ticks_per_second: int) -> str:
    """A length of time in the largest unit that makes it whole; that of WITHIN ALL in words.

    Examples
    --------
    >>> duration_text(90_000, 1000), duration_text(1_500, 1000)
    ('90 s', '1500 ms')
    """
    if ticks > _ALL_TIME:
        return "all time"
    seconds = Fraction(ticks, ticks_per_second)
    units = {"d": 86_400, "h": 3_600, "min": 60, "s": 1}
    smaller = {"ms": Fraction(1, 10**3), "us": Fraction(1, 10**6), "ns": Fraction(1, 10**9)}
    for unit, length in (units | smaller).items():
        if (seconds / length).denominator == 1:
            return f"{seconds / length} {unit}"
    return f"{float(seconds)} s"


def bracketed(text: str) -> str:
    """A pattern or condition in parentheses where what stands before it might be read as going with a part of it."""
    return f"({text})" if " OR " in text else text


def negated_texts(template: Template, guards: frozenset[int]) -> list[str]:
    """The negated patterns of a gap, ready to stand after "no"."""
    return [bracketed(template.guards[guard].text) for guard in sorted(guards)]
