"""A row pattern as a program: steps whose ways on are in order of preference.

A round beyond a quantifier's lower bound that takes no row ends the quantifier. Whether a round has taken a row is part
of the place in the program: a body that may take none is written once for each number of enclosing such rounds that
have taken one. (A round inside another that has taken a row means that the outer one has, so numbers are enough.)

A quantifier is its body written again, as often as it counts; a variable that is counted far is one step that counts,
where conditions do not read labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hamlet.errors import UnsupportedError
from hamlet.patterns.clause.tree import (
    Alternation,
    Anchor,
    Concatenation,
    Exclusion,
    Permutation,
    Quantified,
    RowPattern,
    Variable,
)

TAKE, SPLIT, AT_START, AT_END, ACCEPT, COUNTED = range(6)
MOST_STEPS = 4_000_000
FAR = 64  # rounds from which on a variable is counted
ENDLESS = 2**62

_Entry = list[int]  # the step to go to, by how many enclosing rounds have taken a row


@dataclass
class Program:
    """Steps in an order in which each comes behind those that it leads to without taking a row.

    Attributes
    ----------
    kinds : list of int
        TAKE, SPLIT, AT_START, AT_END, ACCEPT, or COUNTED: many rows of one variable.
    first : list of int
        The step that follows; of a SPLIT the preferred one.
    second : list of int
        The other step of a SPLIT; of a COUNTED 1 where more rows are preferred.
    variables : list of int
        Of a TAKE or COUNTED: its variable.
    excluded : list of bool
        Of a TAKE or COUNTED: whether its rows are excluded.
    bounds : list of (int, int)
        Of a COUNTED: the least and the most rows.
    start : int
    """

    kinds: list[int] = field(default_factory=list)
    first: list[int] = field(default_factory=list)
    second: list[int] = field(default_factory=list)
    variables: list[int] = field(default_factory=list)
    excluded: list[bool] = field(default_factory=list)
    bounds: list[tuple[int, int]] = field(default_factory=list)
    start: int = 0

    @property
    def positions(self) -> int:
        """How many steps take rows."""
        return sum(kind in (TAKE, COUNTED) for kind in self.kinds)

    @property
    def counts(self) -> bool:
        """Whether a step counts rows."""
        return COUNTED in self.kinds


def compile_pattern(pattern: RowPattern, variables: Sequence[str], counted: bool = False) -> Program:
    """The program of a pattern.

    Parameters
    ----------
    pattern : RowPattern
    variables : sequence of str
        Folded; a variable is its place here.
    counted : bool
        Whether steps may count rows.

    Raises
    ------
    UnsupportedError
        If it has too many steps: a quantifier counts by writing its body again.
    """
    compiler = _Compiler({name: place for place, name in enumerate(variables)}, counted)
    accept = compiler.step(ACCEPT)
    start = compiler.compile(pattern, [accept], False)[0]
    return _in_order(compiler, start)


class _Compiler:
    def __init__(self, numbers: dict[str, int], counted: bool) -> None:
        self.numbers, self._counted = numbers, counted
        self.bounds: dict[int, tuple[int, int]] = {}
        self.steps: list[tuple[int, int, int, int, bool]] = []
        self._known: dict[tuple[int, int, int, int, bool], int] = {}

    def step(self, kind: int, first: int = 0, second: int = 0, variable: int = 0, excluded: bool = False) -> int:
        key = (kind, first, second, variable, excluded)
        if kind == SPLIT and first == second:
            return first
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self.place(key)
        return found

    def place(self, key: tuple[int, int, int, int, bool]) -> int:
        if len(self.steps) >= MOST_STEPS:
            raise UnsupportedError(
                f"the row pattern has more than {MOST_STEPS:,} positions when its quantifiers and permutations are "
                "written out; count less with {n,m}, or permute fewer parts"
            )
        self.steps.append(key)
        return len(self.steps) - 1

    def compile(self, node: RowPattern, after: _Entry, excluded: bool) -> _Entry:
        """Where to enter a pattern behind which `after` follows."""
        if isinstance(node, Variable):
            return [self.step(TAKE, after[-1], 0, self.numbers[node.name], excluded)] * len(after)
        if isinstance(node, Anchor):
            return [self.step(AT_START if node.at_start else AT_END, each) for each in after]
        if isinstance(node, Concatenation):
            for part in reversed(node.parts):
                after = self.compile(part, after, excluded)
            return after
        if isinstance(node, Alternation):
            return self._choice([self.compile(each, after, excluded) for each in node.choices])
        if isinstance(node, Exclusion):
            return self.compile(node.body, after, True)
        if isinstance(node, Permutation):
            return self._permutation(node, after, excluded)
        return self._quantified(node, after, excluded)

    def _choice(self, entries: Sequence[_Entry]) -> _Entry:
        found = list(entries[-1])
        for each in reversed(entries[:-1]):
            found = [self.step(SPLIT, first, second) for first, second in zip(each, found, strict=True)]
        return found

    def _permutation(self, node: Permutation, after: _Entry, excluded: bool) -> _Entry:
        """Orders of plain variables share what follows equal sets; other parts have ways of their own to compare."""
        if all(isinstance(each, Variable) for each in node.parts):
            known: dict[frozenset[int], _Entry] = {}
            return self._variables(node.parts, frozenset(range(len(node.parts))), after, excluded, known)
        return self._choice(self._orders(node.parts, tuple(range(len(node.parts))), after, excluded, {}))

    def _variables(
        self,
        parts: Sequence[RowPattern],
        left: frozenset[int],
        after: _Entry,
        excluded: bool,
        known: dict[frozenset[int], _Entry],
    ) -> _Entry:
        if not left:
            return after
        if left not in known:
            choices = []
            for each in sorted(left):
                rest = self._variables(parts, left - {each}, after, excluded, known)
                choices.append(self.compile(parts[each], rest, excluded))
            known[left] = self._choice(choices)
        return known[left]

    def _orders(
        self,
        parts: Sequence[RowPattern],
        left: tuple[int, ...],
        after: _Entry,
        excluded: bool,
        known: dict[tuple[int, ...], _Entry],
    ) -> list[_Entry]:
        """An entry for every order of the parts that are left; equal ends of orders are written once."""
        found = []
        for order in _lexicographic(left):
            entry = after
            for place in range(len(order) - 1, -1, -1):
                end = order[place:]
                if end not in known:
                    known[end] = self.compile(parts[end[0]], entry, excluded)
                entry = known[end]
            found.append(entry)
        return found

    def _quantified(self, node: Quantified, after: _Entry, excluded: bool) -> _Entry:
        if self._counted and isinstance(node.body, Variable) and max(node.low, node.high or 0) >= FAR:
            return self._far(node, node.body, after, excluded)
        entry = after
        if node.high is None:
            entry = self._loop(node, after, excluded)
        else:
            for _ in range(node.high - node.low):
                entry = self._optional(node, after, [*after, entry[-1]], excluded)
        for _ in range(node.low):
            entry = self.compile(node.body, entry, excluded)
        return entry

    def _far(self, node: Quantified, body: Variable, after: _Entry, excluded: bool) -> _Entry:
        """One step for many rows of a variable; the round that takes none is another way."""
        step = self.place((COUNTED, after[-1], int(node.greedy), self.numbers[body.name], excluded))
        self.bounds[step] = max(1, node.low), ENDLESS if node.high is None else node.high
        if node.low:
            return [step] * len(after)
        pairs = (((step, each) if node.greedy else (each, step)) for each in after)
        return [self.step(SPLIT, first, second) for first, second in pairs]

    def _optional(self, node: Quantified, after: _Entry, behind: _Entry, excluded: bool) -> _Entry:
        """One more round, or none; `behind` is what follows a round, by what has taken a row: last, this one."""
        body = self.compile(node.body, behind, excluded)[: len(after)]
        pairs = zip(body, after, strict=True) if node.greedy else zip(after, body, strict=True)
        return [self.step(SPLIT, first, second) for first, second in pairs]

    def _loop(self, node: Quantified, after: _Entry, excluded: bool) -> _Entry:
        again = self.place((SPLIT, -1, -1, 0, False))  # filled in below: the body leads back here
        body = self.compile(node.body, [*after, again], excluded)[: len(after)]
        pairs = list(zip(body, after, strict=True) if node.greedy else zip(after, body, strict=True))
        self.steps[again] = (SPLIT, *pairs[-1], 0, False)
        return [*(self.step(SPLIT, first, second) for first, second in pairs[:-1]), again]


def _lexicographic(items: tuple[int, ...]) -> list[tuple[int, ...]]:
    """All orders; refused where they are too many to be written out."""
    count = 1
    for each in range(2, len(items) + 1):
        count *= each
    if count * len(items) > MOST_STEPS:
        raise UnsupportedError(
            f"PERMUTE of {len(items)} parts that are no plain variables has {count:,} orders; permute fewer parts"
        )
    import itertools

    return list(itertools.permutations(items))


def _in_order(compiler: _Compiler, start: int) -> Program:
    """The steps that can be reached, each behind those that it leads to without taking a row."""
    steps = compiler.steps
    order: list[int] = []
    state = bytearray(len(steps))  # 1: waiting for those that it leads to, 2: has its place
    roots = [start]
    while roots:
        waiting = [roots.pop()]
        while waiting:
            each = waiting[-1]
            kind, first, second, _, _ = steps[each]
            if state[each] == 2:
                waiting.pop()
                continue
            following = {SPLIT: [second, first], AT_START: [first], AT_END: [first]}.get(kind, [])
            missing = [place for place in following if state[place] == 0]
            if missing:
                state[each] = 1
                waiting += missing
                continue
            waiting.pop()
            state[each] = 2
            order.append(each)
            if kind in (TAKE, COUNTED) and state[first] == 0:
                roots.append(first)
    number = {each: place for place, each in enumerate(order)}
    found = Program(start=number[start])
    for each in order:
        kind, first, second, variable, excluded = steps[each]
        found.kinds.append(kind)
        found.first.append(number[first] if kind != ACCEPT else 0)
        found.second.append(number[second] if kind == SPLIT else second if kind == COUNTED else 0)
        found.variables.append(variable)
        found.excluded.append(excluded)
        found.bounds.append(compiler.bounds.get(each, (0, 0)))
    return found
