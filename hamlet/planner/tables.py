"""The integer tables of a query: what the kernel reads instead of names, patterns and predicates.

Field by field the tables mirror the structs of ``plan.pxd``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from hamlet._core import SOURCES
from hamlet.kernel.expression import Program
from hamlet.language.meaning import Pair
from hamlet.language.query import Condition, Expression
from hamlet.planner.adjacent import Keys
from hamlet.planner.merged_queries import MergedQuery
from optimizer.template import START, Template, Transition

Source = tuple[int, int, int, int, int]  # kind, place, guards, predicate, index
NONE = -1


@dataclass
class QueryTables:
    """One query's integer tables; tuples in the order of the kernel's struct fields."""

    within: int
    slide: int
    exact: bool
    components: list[tuple[int, ...]]
    fixed: int
    wide: int
    sources: list[Source] = field(default_factory=list)
    arrivals: list[tuple[int, ...]] = field(default_factory=list)
    guard_arrivals: list[tuple[int, ...]] = field(default_factory=list)
    stores: list[tuple[int, ...]] = field(default_factory=list)
    predicates: list[tuple[Program, tuple[int, int], tuple[int, int]]] = field(default_factory=list)
    indexes: list[tuple[int, ...]] = field(default_factory=list)
    keys: list[tuple[Program, int, int, int]] = field(default_factory=list)
    members: list[int] = field(default_factory=list)
    guard_sets: list[tuple[int, int]] = field(default_factory=list)
    simple: list[int] = field(default_factory=list)
    guard_first: list[int] = field(default_factory=lambda: [0])
    cell_guards: list[int] = field(default_factory=list)
    finals: tuple[int, int] = (0, 0)
    outputs: list[tuple[int, int, int, int]] = field(default_factory=list)  # see `hamlet.planner.beginnings`
    is_merged: bool = False  # an output of a merged query: it has a layout, and nothing else
    # which arrivals an event bound to a variable makes
    arrivals_of: dict[str, list[int]] = field(default_factory=dict)
    guard_arrivals_of: dict[str, list[int]] = field(default_factory=dict)
    predicate_pairs: list[Pair] = field(default_factory=list)

    @property
    def guard_states(self) -> int:
        """States over all negated templates."""
        return self.guard_first[-1]

    @property
    def variables(self) -> set[str]:
        """The variables that arrivals and guard arrivals go by."""
        return self.arrivals_of.keys() | self.guard_arrivals_of.keys()

    @property
    def form(self) -> tuple[int, ...]:
        """Equal, while they live, for tables that `renamed` made of the same ones."""
        return self.within, self.slide, id(self.sources), id(self.components), id(self.arrivals), id(self.members)

    def renamed(self, names: Mapping[str, str]) -> QueryTables:
        """These tables for a query that calls its variables otherwise; the lists are the same objects."""
        found = object.__new__(QueryTables)  # a workload may have a thousand: `copy` takes ten times as long
        vars(found).update(vars(self))
        found.arrivals_of = {names[variable]: numbers for variable, numbers in self.arrivals_of.items()}
        found.guard_arrivals_of = {names[variable]: numbers for variable, numbers in self.guard_arrivals_of.items()}
        return found

    @property
    def types(self) -> int:
        """Event types that trends are made of, as far as they are told apart: variables."""
        return len({variable for variable, *_ in self.arrivals})

    @property
    def most_sources(self) -> int:
        """The most sources that one sum reads."""
        sums = [*((row[1], row[2]) for row in self.arrivals), self.finals, *(row[1:3] for row in self.outputs)]
        return max(1, *(end - begin for begin, end in sums))


class _Tables(Protocol):
    """What both kinds of tables have: lists that ranges of others are."""

    members: list[int]
    guard_sets: list[tuple[int, int]]
    predicates: list[tuple[Program, tuple[int, int], tuple[int, int]]]


class Writer:
    """Writes ranges of numbers, sets of guards, and predicates of pairs, each once.

    Attributes
    ----------
    tables : QueryTables or MatchingTables
    set_numbers, predicate_numbers : dict
    program_of : callable
        Compiles the conditions of a pair.
    references : callable
        The attributes that the conditions of a pair read of the earlier and of the later event, whatever is known of
        their types, so that what stores keep does not depend on types.
    column_of : callable
        Number of the kernel's event column for (variable, attribute).
    """

    tables: _Tables
    set_numbers: dict[frozenset[int], int]
    predicate_numbers: dict[tuple[object, Pair], int]
    program_of: Callable[[Pair], Program]
    references: Callable[[Pair], tuple[list[str], list[str]]]
    column_of: Callable[[str, str], int]

    def _set(self, guards: frozenset[int]) -> int:
        """The number of a set of guards."""
        if not guards:
            return NONE
        if guards not in self.set_numbers:
            self.set_numbers[guards] = len(self.tables.guard_sets)
            self.tables.guard_sets.append(self._members(sorted(guards)))
        return self.set_numbers[guards]

    def _members(self, members: Sequence[int]) -> tuple[int, int]:
        begin = len(self.tables.members)
        self.tables.members.extend(members)
        return begin, len(self.tables.members)

    def _predicate_over(self, place: object, kept: dict[str, int], pair: Pair) -> int:
        """The number of the predicate of a pair, over the attributes that a state or a store keeps."""
        if (place, pair) not in self.predicate_numbers:
            for name in self.references(pair)[0]:
                kept.setdefault(name, self.column_of(pair[0], name))
            program, places = self.program_of(pair), list(kept)
            vector = [places.index(name) for name in program.vector_columns]
            scalar = [self.column_of(pair[1], name) for name in program.scalar_columns]
            self.predicate_numbers[place, pair] = len(self.tables.predicates)
            self.tables.predicates.append(
                (program, (self._members(vector)[0], len(vector)), (self._members(scalar)[0], len(scalar)))
            )
        return self.predicate_numbers[place, pair]


@dataclass
class TableWriter(Writer):
    """Writes the tables of one query.

    Parameters
    ----------
    template : Template
    adjacent : mapping of (earlier variable, later variable) to conditions
    program_of, references, column_of
        As of `Writer`.
    keys_of : callable
        The searches that answer the predicate of a pair; empty where only a scan does.
    key_program : callable
        Compiles one key of a pair; also whether it is a double.
    tables : QueryTables
        Filled.
    merged query : MergedQuery, optional
        Where the template is that of several queries: how each of them begins and ends.
    """

    template: Template
    adjacent: Mapping[Pair, tuple[Condition, ...]]
    program_of: Callable[[Pair], Program]
    references: Callable[[Pair], tuple[list[str], list[str]]]
    column_of: Callable[[str, str], int]
    keys_of: Callable[[Pair], tuple[Keys, ...]]
    key_program: Callable[[Pair, Expression], tuple[Program, bool]]
    tables: QueryTables
    merged: MergedQuery | None = None
    store_columns: list[dict[str, int]] = field(default_factory=list)  # store -> attribute -> event column
    set_numbers: dict[frozenset[int], int] = field(default_factory=dict)
    cells: dict[tuple[int, frozenset[int]], int] = field(default_factory=dict)
    feeders: list[set[int]] = field(default_factory=list)  # cell -> the states whose sums are added to it
    merging: dict[tuple[int, frozenset[int]], int] = field(default_factory=dict)  # stores without predicates
    looked_back: dict[int, int] = field(default_factory=dict)  # state -> store of single events
    predicate_numbers: dict[tuple[object, Pair], int] = field(default_factory=dict)
    index_numbers: dict[tuple[int, Pair, frozenset[int], str], int] = field(default_factory=dict)

    def write(self) -> QueryTables:
        """Fill and return the tables."""
        for guard in self.template.guards:
            self._guard(guard.template)
        steps: list[list[Transition]] = [[] for _ in range(self.template.size)]
        for step in self.template.transitions:
            steps[step.target].append(step)
            if step.source == step.target:  # what bursts go into comes first: in lanes of a band it is one slot
                self._reads(step.source, step.target, step.guards)
        sources = [
            list(dict.fromkeys(source for step in into for source in self._reads(step.source, state, step.guards)))
            for state, into in enumerate(steps)
        ]
        ends = self.merged.ends if self.merged is not None else (self.template.finals,)
        finals = [[self._standing(final.state, final.guards) for final in end] for end in ends]
        for state in range(1, self.template.size):
            self._arrival(state, sources[state])
        if self.merged is None:
            self.tables.finals = self._sources(finals[0])
        else:
            self.tables.outputs = [
                (NONE, *self._sources(end), self._members(chosen)[0])
                for end, chosen in zip(finals, self.merged.chosen, strict=True)
            ]
        self._finish_stores()
        return self.tables

    # ------------------------------------------------------------------------------------------ guards

    def _guard(self, template: Template) -> None:
        """The tables of one negated pattern: per state the latest start of a partial match."""
        number = len(self.tables.simple)
        base = self.tables.guard_states
        begins = {step.target for step in template.transitions if step.source == START}
        finals = {final.state for final in template.finals}
        self.tables.simple.append(int(finals <= begins))  # then every match that finishes began just now
        self.tables.guard_first.append(base + template.size)
        stores: dict[int, int] = {}
        rows = []
        for state in range(1, template.size):
            sources = []
            for step in template.transitions:
                if step.target != state:
                    continue
                pair = self._pair(template, step.source, state)
                if step.source == START:
                    sources.append((SOURCES["start"], 0, NONE, NONE, NONE))
                elif pair is not None and pair in self.adjacent:
                    store = stores.setdefault(step.source, len(self.store_columns))
                    if store == len(self.store_columns):
                        self.store_columns.append({})
                        self.tables.stores.append((0, 0, 0, NONE, 1))
                    sources.append((SOURCES["store"], store, NONE, self._predicate(store, pair), NONE))
                else:
                    sources.append((SOURCES["cell"], base + step.source, NONE, NONE, NONE))
            rows.append((state, sources))
        for state, sources in rows:
            begin, end = self._sources(sources)
            variable = template.variable(state)
            self.tables.guard_arrivals_of.setdefault(variable, []).append(len(self.tables.guard_arrivals))
            self.tables.guard_arrivals.append(
                (number, base + state, begin, end, stores.get(state, NONE), int(state in finals))
            )

    def _sources(self, sources: list[Source]) -> tuple[int, int]:
        begin = len(self.tables.sources)
        self.tables.sources.extend(sources)
        return begin, len(self.tables.sources)

    # ------------------------------------------------------------------------------------------ positive states

    @staticmethod
    def _pair(template: Template, source: int, target: int) -> Pair | None:
        return None if source == START else (template.variable(source), template.variable(target))

    def _reads(self, source: int, target: int, guards: frozenset[int]) -> list[Source]:
        """What a transition reads."""
        pair = self._pair(self.template, source, target)
        if source == START:
            beginnings = (0,) if self.merged is None else self.merged.starts[target, guards]
            return [(SOURCES["start"], beginning, self._set(guards), NONE, NONE) for beginning in beginnings]
        if pair is None or pair not in self.adjacent:
            enters = self.merged is not None and target in self.merged.loop and source not in self.merged.loop
            return [self._standing(source, guards, ~target if enters else source)]
        if source not in self.looked_back:
            self.looked_back[source] = self._store(0, frozenset())
        store = self.looked_back[source]
        predicate = self._predicate(store, pair)
        searches = self.keys_of(pair)
        if not searches:
            return [(SOURCES["store"], store, self._set(guards), predicate, NONE)]
        return [
            (SOURCES["store"], store, self._set(guards), predicate, self._index(store, pair, guards, keys))
            for keys in searches
        ]

    def _standing(self, state: int, guards: frozenset[int], place: int | None = None) -> Source:
        """Everything that stands in a state and has not been killed by a set of guards: its own copy of the sum.

        States that are given the same `place` have one copy together.
        """
        key = (state, guards)
        if all(self.tables.simple[guard] for guard in guards):
            key = (state if place is None else place, guards)
            if key not in self.cells:
                self.cells[key] = len(self.cells)
                self.feeders.append(set())
                self.tables.cell_guards.append(self._set(guards))
            self.feeders[self.cells[key]].add(state)
            return SOURCES["cell"], self.cells[key], NONE, NONE, NONE
        if key not in self.merging:
            looks_back = any(row[4] for row in self.tables.stores)  # a negated pattern with adjacent predicates
            self.merging[key] = self._store(2 if looks_back else 1, guards)
        return SOURCES["store"], self.merging[key], self._set(guards), NONE, NONE

    def _store(self, merging: int, guards: frozenset[int]) -> int:
        self.store_columns.append({})
        self.tables.stores.append((0, 0, merging, self._set(guards), 0))
        return len(self.store_columns) - 1

    def _arrival(self, state: int, sources: list[Source]) -> None:
        cells = [cell for cell, states in enumerate(self.feeders) if state in states]
        stores = [store for (place, _), store in self.merging.items() if place == state]
        if state in self.looked_back:
            stores.append(self.looked_back[state])
        self.tables.arrivals_of.setdefault(self.template.variable(state), []).append(len(self.tables.arrivals))
        ranges = *self._sources(sources), *self._members(cells), *self._members(stores)
        concerned = (0, len(self.tables.components)) if self.merged is None else self.merged.components[state]
        self.tables.arrivals.append((self.template.labels[state], *ranges, *concerned))

    # ------------------------------------------------------------------------------------------ predicates

    def _predicate(self, store: int, pair: Pair) -> int:
        if (store, pair) not in self.predicate_numbers:
            self.tables.predicate_pairs.append(pair)
        return self._predicate_over(store, self.store_columns[store], pair)

    def _index(self, store: int, pair: Pair, guards: frozenset[int], keys: Keys) -> int:
        """The index of a guarded transition."""
        name = (store, pair, guards, keys.operator)
        if name not in self.index_numbers:
            self.index_numbers[name] = len(self.tables.indexes)
            places = list(self.store_columns[store])
            first = len(self.tables.keys)
            for side, variable in enumerate(pair):
                for expressions in keys.pairs:
                    program, floating = self.key_program(pair, expressions[side])
                    columns = [
                        self.column_of(variable, column) if side else places.index(column)
                        for column in program.vector_columns
                    ]
                    self.tables.keys.append((program, self._members(columns)[0], len(columns), int(floating)))
            self.tables.indexes.append(
                (
                    store,
                    self._set(guards),
                    len(keys.pairs),
                    int(keys.ordered is not None),
                    int(keys.operator in ("<=", ">=")),
                    int(keys.operator in (">", ">=")),
                    first,
                    first + len(keys.pairs),
                )
            )
        return self.index_numbers[name]

    def _finish_stores(self) -> None:
        for store, kept in enumerate(self.store_columns):
            begin, end = self._members(list(kept.values()))
            self.tables.stores[store] = (begin, end, *self.tables.stores[store][2:])
