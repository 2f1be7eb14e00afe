"""What the queries of a checked workload mean: what `hamlet.language.analysis` gives to everything behind it.

Source: HAMLET (SIGMOD'21) Def. 2.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hamlet.errors import Diagnostic
from hamlet.language.query import (
    Aggregate,
    Attribute,
    AttributeType,
    Condition,
    Group,
    Pattern,
    Query,
    Taken,
    WorkloadText,
)

Pair = tuple[str, str]
# Event type -> its attributes with their types; None is a type that is not known before the input is, as that of a
# result column (`AnalysedQuery.upstream`).
Declared = Mapping[str, Mapping[str, AttributeType | None]]


@dataclass(frozen=True)
class AnalysedQuery:
    """A query and what follows from its text.

    Attributes
    ----------
    query : Query
        As written.
    index : int
        Its place among the queries of the file, from 0.
    types : mapping of str to str
        Variable -> event type, negated variables too, in the order of the text.
    negated : frozenset of str
        Variables that stand inside NOT.
    grouping : tuple of str
        GROUP-BY attributes, in order, without repeats.
    groups : tuple of Attribute or Taken
        All that GROUP-BY names, in order, without repeats.
    equivalence : tuple of str
        Attributes of all ``[..]``, by first mention, without repeats.
    partition : tuple of str
        The grouping, then the equivalence attributes that are not in it.
    local : mapping of str to tuple of Condition
        For every variable the conditions on its events; all must be true. No `Not` is left in them.
    adjacent : mapping of (str, str) to tuple of Condition
        For a pair (X, Y) of neighbours, X the earlier: conditions in which a reference to the earlier event has
        `Shift.NONE` and one to the later `Shift.NEXT`. No `Not` is left in them.
    patterns : tuple of Pattern
        The pattern, or the two operands of AND.
    declared : mapping of str to mapping of str to AttributeType
        For variables whose type is declared, its attributes. The rows of a query count as declared with its columns.
    aggregates : tuple of Aggregate
        All different ones of RETURN, HAVING and TOP, in the order of the text.
    upstream : mapping of str to AnalysedQuery
        Those event types of the pattern that are names of queries of the workload, with the query.
    """

    query: Query
    index: int
    types: Mapping[str, str]
    negated: frozenset[str]
    grouping: tuple[str, ...]
    groups: tuple[Group, ...]
    equivalence: tuple[str, ...]
    partition: tuple[str, ...]
    local: Mapping[str, tuple[Condition, ...]]
    adjacent: Mapping[Pair, tuple[Condition, ...]]
    patterns: tuple[Pattern, ...]
    declared: Declared
    aggregates: tuple[Aggregate, ...] = ()
    upstream: Mapping[str, AnalysedQuery] = field(default_factory=dict)

    def is_of_input(self, key: str) -> bool:
        """Whether events of the input carry a key, and not only the rows of other queries."""
        inputs = [variable for variable, event_type in self.types.items() if event_type not in self.upstream]
        return any(variable not in self.declared or key in self.declared[variable] for variable in inputs)

    @property
    def taken(self) -> tuple[Taken, ...]:
        """What GROUP-BY names of what trends took."""
        return tuple(each for each in self.groups if isinstance(each, Taken))

    def place_of(self, group: Group) -> int:
        """The place of a value of the group among `groups`."""
        if isinstance(group, Taken):
            return self.groups.index(group)
        names = [each.name if isinstance(each, Attribute) else None for each in self.groups]
        return names.index(group.name)


@dataclass(frozen=True)
class Analysis:
    """A checked workload.

    Attributes
    ----------
    text : WorkloadText
        The syntax tree.
    queries : tuple of AnalysedQuery
        In the order of the file.
    warnings : tuple of Diagnostic
        What is allowed but probably not meant.
    declared : mapping of str to mapping of str to AttributeType
        Attributes of every declared event type, and of the rows of every query that another one asks about.
    layers : tuple of tuple of int
        Places of queries: first those that read the input only, then those that read rows of the queries before them.
        One layer where no query asks about another.
    """

    text: WorkloadText
    queries: tuple[AnalysedQuery, ...]
    warnings: tuple[Diagnostic, ...]
    declared: Declared
    layers: tuple[tuple[int, ...], ...] = ()
