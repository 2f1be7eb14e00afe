"""The plan of a workload: which queries run side by side over the same slices, and in which panes.

Source: HAMLET (SIGMOD'21) §3.1 (panes), Def. 3.2 (sharable queries: equal partition attributes).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from optimizer.condition import Condition
from optimizer.template import Template


@dataclass(frozen=True, slots=True)
class AggregateFacts:
    """An aggregate that a query returns.

    Attributes
    ----------
    function : str
        ``COUNT``, ``SUM``, ``AVG``, ``MIN`` or ``MAX``.
    variable, attribute : str or None
        None, None for ``COUNT(*)``; no attribute for ``COUNT(T)``.
    nullable : bool
        Whether the attribute can be NULL, as far as is known.
    """

    function: str
    variable: str | None = None
    attribute: str | None = None
    nullable: bool = True


GRAPHLETS = "graphlets"  # the operator of queries that may share bursts
MATCHING = "matching"  # keeps partial trends one by one in time: other semantics, bounds on trends, sessions, sets
MATCHING_ALL = "matching, all events"  # the same, where events of types that no query names matter


@dataclass(frozen=True)
class QueryFacts:
    """What the optimizer knows of one query.

    Attributes
    ----------
    name : str
    templates : tuple of Template
        One; or three for a query over pairs of trends: both sides, and the trends that are on both.
    partition : frozenset of str
        Equivalence and grouping attributes taken together: events of one trend agree on all of them.
    within, slide : int
        Ticks of the time column.
    aggregates : tuple of AggregateFacts
    local : mapping of str to Condition
        Variable, negated ones too -> what its events must satisfy; those that take every event may be left out.
    adjacent : mapping of (str, str) to Condition
        Pair of neighbours -> what they must satisfy; those that always fit may be left out.
    operator : str
        What runs the query; only queries of `GRAPHLETS` share.
    line : hashable
        The line of time that `within` and `slide` are measured on; only queries of one line are run side by side.
    """

    name: str
    templates: tuple[Template, ...]
    partition: frozenset[str]
    within: int
    slide: int
    aggregates: tuple[AggregateFacts, ...] = ()
    local: Mapping[str, Condition] = field(default_factory=dict)
    adjacent: Mapping[tuple[str, str], Condition] = field(default_factory=dict)
    operator: str = GRAPHLETS
    line: Hashable = None


@dataclass(frozen=True)
class PartitionClass:
    """Queries with equal partition attributes: they read the same slices, so they run side by side in one kernel.

    Attributes
    ----------
    attributes : tuple of str
        The partition attributes, sorted.
    queries : tuple of int
        Places in the workload, ascending.
    pane : int
        Greatest common divisor of all windows and slides, in ticks (§3.1): no window of the class opens or closes
        inside a pane.
    operator : str
        What runs them.
    """

    attributes: tuple[str, ...]
    queries: tuple[int, ...]
    pane: int
    operator: str = GRAPHLETS


@dataclass(frozen=True)
class Plan:
    """The classes of a workload, by first query."""

    classes: tuple[PartitionClass, ...]


def pane(windows: Sequence[tuple[int, int]]) -> int:
    """The pane of some (within, slide) pairs: the greatest common divisor of all of them, in ticks. Source: §3.1."""
    return math.gcd(*(length for window in windows for length in window))


def plan(queries: Sequence[QueryFacts]) -> Plan:
    """Put queries with equal partition attributes, one line of time and one operator together.

    Parameters
    ----------
    queries : sequence of QueryFacts
        In the order of the workload.
    """
    classes: dict[tuple[frozenset[str], str, Hashable], list[int]] = {}
    for place, query in enumerate(queries):
        classes.setdefault((query.partition, query.operator, query.line), []).append(place)
    return Plan(
        tuple(
            PartitionClass(
                tuple(sorted(attributes)),
                tuple(places),
                pane([(queries[place].within, queries[place].slide) for place in places]),
                operator,
            )
            for (attributes, operator, _), places in classes.items()
        )
    )
