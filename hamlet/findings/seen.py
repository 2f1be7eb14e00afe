"""What events have shown, where nobody sees all of them: tasks of a job, one micro-batch after the other."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc

from hamlet.findings.watch import MOST_TYPES
from hamlet.input.columns import column
from hamlet.runtime.expected import NO_EVENTS, Expected, in_no_relation


@dataclass(frozen=True)
class Seen:
    """What some events have shown.

    Attributes
    ----------
    events : int
        How many there are.
    first : int or None
        The tick of one of the first.
    names : mapping of str to int
        Of the names that a text expects (types, predicates, inputs) those that have come, and in how many events.
    others : tuple of str
        Some other names.
    met : frozenset of (str, str)
        Queries and variables of them that some event may be bound to.
    without : mapping of str to mapping of str to int
        By attribute and type, how many events have no value.
    nulls : int
        Events of a predicate that are in no relation, for want of a value.
    """

    events: int = 0
    first: int | None = None
    names: Mapping[str, int] = field(default_factory=dict)
    others: tuple[str, ...] = ()
    met: frozenset[tuple[str, str]] = frozenset()
    without: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    nulls: int = 0

    def plus(self, other: Seen) -> Seen:
        """What both have shown."""
        return Seen(
            self.events + other.events,
            other.first if self.first is None else self.first,
            _added(self.names, other.names),
            tuple(islice(dict.fromkeys((*self.others, *other.others)), MOST_TYPES)),
            self.met | other.met,
            {
                each: _added(self.without.get(each, {}), other.without.get(each, {}))
                for each in {**self.without, **other.without}
            },
            self.nulls + other.nulls,
        )

    def described(self) -> bytes:
        """As bytes, for `read`."""
        return json.dumps({**vars(self), "met": sorted(self.met)}).encode()

    @classmethod
    def read(cls, data: bytes) -> Seen:
        """From bytes."""
        found = json.loads(data)
        met = frozenset((query, variable) for query, variable in found["met"])
        return cls(**{**found, "others": tuple(found["others"]), "met": met})


def seen_in(
    events: pa.RecordBatch,
    type_column: str,
    expected: Collection[str],
    keys: Iterable[str] = (),
    first: int | None = None,
) -> Seen:
    """What some events show by their types.

    Parameters
    ----------
    events : pyarrow.RecordBatch
    type_column : str
    expected : collection of str
        Types.
    keys : iterable of str
        Attributes of which it counts who has no value.
    first : int, optional
        The tick of one of them.
    """
    types = column(events, type_column)
    if types is None or pa.types.is_null(types.type):
        return Seen(events.num_rows, first)
    if pa.types.is_dictionary(types.type):
        types = types.cast(types.type.value_type)
    counts = _counted(types)
    without = {}
    for name in keys:
        values = column(events, name)
        if values is None or values.null_count:
            missing = _counted(types if values is None else types.filter(values.is_null()))
            without[name] = {kind: count for kind, count in missing.items() if kind in expected}
    names = {name: count for name, count in counts.items() if name in expected}
    others = tuple(islice((name for name in counts if name not in expected), MOST_TYPES))
    return Seen(events.num_rows, first, names, others, without=without)


def of_names(expected: Iterable[str], seen: Seen) -> list[str]:
    """What is to be known of events whose names a text expects: those that never came, events in no relation."""
    if not seen.events:
        return [NO_EVENTS]
    found = Expected(expected)
    found.see([*seen.names, *seen.others])
    return [*found.warnings(), *in_no_relation(seen.nulls)]


def _counted(types: pa.Array) -> dict[str, int]:
    found = pc.value_counts(types)
    counts = zip(found.field("values").to_pylist(), found.field("counts").to_pylist(), strict=True)
    return {str(name): count for name, count in counts if name is not None}


def _added(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}
