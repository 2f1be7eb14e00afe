"""Sees the events of a run as they pass: which types, variables and keys of a workload no event has met."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from hamlet.errors import near_miss
from hamlet.findings.local import LocalPredicate, of_type
from hamlet.input.buffers import from_numpy
from hamlet.input.columns import column, values_of
from hamlet.language.meaning import AnalysedQuery
from hamlet.language.printing import name_text, to_text
from hamlet.language.schema import Schema
from hamlet.planner.classify import EVENT, renamed
from hamlet.planner.workload import Workload

MOST_TYPES = 1000  # that are kept for near names
_FIRST_ROWS = 1024  # of a batch that are looked at first: mostly all has occurred among them
_GROWTH = 8  # how many times as many rows are looked at next
_MOST_NAMES = 3  # of queries that a sentence lists


@dataclass
class _Variable:
    """A type with a local predicate that no event has passed yet.

    Attributes
    ----------
    type : str
    texts : tuple of str
        The conditions, their variable left out.
    predicate : LocalPredicate
    users : dict of str to str
        The variable of each query that has this.
    events : int
        Of the type, so far.
    """

    type: str
    texts: tuple[str, ...]
    predicate: LocalPredicate
    users: dict[str, str] = field(default_factory=dict)
    events: int = 0


@dataclass
class _Key:
    """An attribute by which events are partitioned.

    Attributes
    ----------
    types : dict of str to None
        Of the events that carry it.
    users : dict of str to None
        The queries.
    without : int
        Events of these types that have no value.
    some : bool
        Whether some event has one.
    """

    types: dict[str, None] = field(default_factory=dict)
    users: dict[str, None] = field(default_factory=dict)
    without: int = 0
    some: bool = False
    lacking: dict[str, int] = field(default_factory=dict)  # of each type


class Watch:
    """What of a workload has not occurred yet.

    Parameters
    ----------
    workload : Workload
    schema : Schema
        Of the events.
    keep_null_keys : bool
        Whether events without a key are a partition of their own, as they are unless a run drops them.

    Attributes
    ----------
    events : int
        Seen so far.
    """

    def __init__(self, workload: Workload, schema: Schema, *, keep_null_keys: bool = True) -> None:
        self.events = 0
        self._type_column = schema.type_column
        made = set(workload.names)  # types of rows that queries make, none of them in the input
        self._users: dict[str, dict[str, None]] = {}  # of each type, the queries
        self._variables: dict[tuple[str, tuple[str, ...]], _Variable] = {}
        self._keys: dict[str, _Key] = {}
        self._named: dict[tuple[str, str], list[str]] = {}  # variables and their types, and the queries
        self._keep_null_keys = keep_null_keys
        for query in workload.analysis.queries:
            for variable, kind in query.types.items():
                if kind not in made:
                    self._users.setdefault(kind, {})[query.query.name] = None
                    self._add(query, variable, kind, schema)
                if variable not in query.types.values():
                    self._named.setdefault((variable, kind), []).append(query.query.name)
        self._missing = set(self._users)
        self.left_out: dict[str, str] = {}  # why types do not occur, where the user has chosen among events
        self._seen: dict[str, None] = {}

    def _add(self, query: AnalysedQuery, variable: str, kind: str, schema: Schema) -> None:
        conditions = query.local.get(variable, ())
        if conditions:
            texts = tuple(to_text(renamed(each)) for each in conditions)
            if (kind, texts) not in self._variables:
                self._variables[kind, texts] = _Variable(kind, texts, LocalPredicate(query, variable, schema))
            self._variables[kind, texts].users.setdefault(query.query.name, variable)
        for name in query.partition:
            if variable in query.declared and name not in query.declared[variable]:
                continue  # its events agree with every value
            key = self._keys.setdefault(name, _Key())
            key.types[kind] = None
            key.users[query.query.name] = None

    @property
    def settled(self) -> bool:
        """Whether all has occurred, so that nothing more can be found but events without a key."""
        return not self._missing and not self._variables and all(key.some for key in self._keys.values())

    @property
    def columns(self) -> list[str]:
        """The columns that are looked at, besides the type."""
        read = (name for each in self._variables.values() for name in each.predicate.columns)
        return list(dict.fromkeys([*self._keys, *read]))

    def see(self, batch: pa.RecordBatch) -> None:
        """Look at further events."""
        self.events += batch.num_rows
        start, rows = 0, _FIRST_ROWS
        while start < batch.num_rows and (self._missing or self._variables):
            self._see_types(batch.slice(start, rows))
            start, rows = start + rows, _GROWTH * rows
        for name, key in self._keys.items():
            self._see_key(batch, name, key)

    def _see_types(self, batch: pa.RecordBatch) -> None:
        found = values_of(batch, self._type_column)
        self._missing.difference_update(found)
        if len(self._seen) < MOST_TYPES:
            self._seen.update(dict.fromkeys(found))
        for place in list(self._variables):
            self._see_variable(batch, place)

    def see_some(self, batches: Iterable[pa.RecordBatch]) -> int:
        """Look at further events until all has occurred; gives how many were looked at."""
        seen = 0
        for batch in batches:
            self.see(batch)
            seen += batch.num_rows
            if self.settled:
                break
        return seen

    def told(
        self,
        events: int,
        types: Mapping[str, int],
        met: Collection[tuple[str, str]],
        without: Mapping[str, Mapping[str, int]],
    ) -> None:
        """Take what others have seen of all events in place of looking at them.

        Parameters
        ----------
        events : int
        types : mapping of str to int
            How many events of each type there are: all types of the workload that occur, and some others.
        met : collection of (str, str)
            Queries and variables of them that some event may be bound to.
        without : mapping of str to mapping of str to int
            For each attribute in `keys` the events of each type that have no value.
        """
        self.events += events
        self._seen.update(dict.fromkeys(list(types)[:MOST_TYPES]))
        self._missing.difference_update(types)
        for place, each in list(self._variables.items()):
            each.events += types.get(each.type, 0)
            if any((query, variable) in met for query, variable in each.users.items()):
                del self._variables[place]
        for name, key in self._keys.items():
            for kind in key.types:
                rows, missing = types.get(kind, 0), without.get(name, {}).get(kind, 0)
                key.without += missing
                key.lacking[kind] = key.lacking.get(kind, 0) + missing
                key.some = key.some or missing < rows

    @property
    def missing(self) -> frozenset[str]:
        """The types of the workload that no event has had yet."""
        return frozenset(self._missing)

    @property
    def types(self) -> list[str]:
        """The types of events that the workload names."""
        return list(self._users)

    @property
    def keys(self) -> list[str]:
        """The attributes by which events are partitioned."""
        return list(self._keys)

    def _see_variable(self, batch: pa.RecordBatch, place: tuple[str, tuple[str, ...]]) -> None:
        wanted = self._variables[place]
        here = of_type(batch, self._type_column, wanted.type)
        wanted.events += int(here.sum())
        if here.any() and (wanted.predicate.accepts(batch) & here).any():
            del self._variables[place]

    def _see_key(self, batch: pa.RecordBatch, name: str, key: _Key) -> None:
        values = column(batch, name)
        if values is not None and not values.null_count:
            key.some = key.some or bool(batch.num_rows)
            return
        for kind in key.types:
            here = from_numpy(of_type(batch, self._type_column, kind))
            rows = here.true_count
            missing = rows if values is None else values.filter(here).null_count
            key.without += missing
            key.lacking[kind] = key.lacking.get(kind, 0) + missing
            key.some = key.some or missing < rows

    def findings(self) -> Iterator[tuple[list[str], str]]:
        """What never occurred among all events: queries, and a clause that holds for them; none without events."""
        if not self.events:
            return
        for kind in self._users:
            if kind in self._missing:
                yield list(self._users[kind]), self.missing_type(kind)
        for each in self._variables.values():
            if each.type not in self._missing:
                yield list(each.users), self._rejected(each)
        for (variable, kind), queries in self._named.items():
            if variable in self._seen:
                variable, kind = name_text(variable), name_text(kind)
                yield (
                    queries,
                    f"{variable} names {kind} events here, though it is a type, too: is {kind}, {variable} meant?",
                )
        for name, key in self._keys.items():
            shown = name_text(name, free=True)
            if key.without and not key.some:
                yield list(key.users), f"no event has a value of {shown}, so all are one partition"
            elif key.without and self._keep_null_keys:
                text = f"{_counted(key.without)} no {shown}; they are one partition (--null-keys drop leaves them out)"
                yield list(key.users), text

    def lacking(self, attribute: str, kind: str) -> int:
        """How many events of a type have no value of an attribute by which events are partitioned."""
        key = self._keys.get(attribute)
        return 0 if key is None else key.lacking.get(kind, 0)

    def carries(self, attribute: str, kind: str) -> bool:
        """Whether an attribute by which events are partitioned has a value in an event of a type."""
        key = self._keys.get(attribute)
        return key is not None and key.some and kind in key.types and kind not in self._missing

    def unmet(self, query: AnalysedQuery) -> dict[str, str]:
        """The variables of a query that no event can be bound to, and why."""
        found = {}
        for variable, kind in query.types.items():
            texts = tuple(to_text(renamed(each)) for each in query.local.get(variable, ()))
            if kind in self._missing:
                found[variable] = self.missing_type(kind)
            elif (kind, texts) in self._variables:
                found[variable] = self._rejected(self._variables[kind, texts])
        return found

    def missing_type(self, kind: str) -> str:
        """That a type never occurs, and what was perhaps meant."""
        if kind in self.left_out:
            return self.left_out[kind]
        meant = near_miss(kind, self._seen)
        text = f"{name_text(kind)} never occurs"
        if meant is not None:
            return f"{text} (did you mean {name_text(meant)}?)"
        if self._missing == set(self._users) and self._seen:  # perhaps it is not the type column at all
            shown = ", ".join(map(name_text, sorted(self._seen)[:5])) + (", ..." if len(self._seen) > 5 else "")
            return f"{text}; the types in column '{self._type_column}' are {shown} (--type-column names another column)"
        return text

    @staticmethod
    def _rejected(each: _Variable) -> str:
        variable = next(iter(each.users.values()))
        written, named_so = f"{name_text(EVENT)}.", f"{name_text(variable)}."
        conditions = " AND ".join(text.replace(written, named_so) for text in each.texts)
        what = f"all {each.events:,} {name_text(each.type)} events" if each.events > 1 else f"the {each.type} event"
        return f"{conditions} rejects {what}"


def _counted(events: int) -> str:
    return "1 event has" if events == 1 else f"{events:,} events have"


def named(queries: Iterable[str]) -> str:
    """Some queries by name, and the number of the rest."""
    names: Sequence[str] = list(queries)
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more:,} more" if more > 0 else "")
