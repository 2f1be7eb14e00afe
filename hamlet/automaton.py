"""From a pattern to its template: one construction for all of LANGUAGE.md §3-4.

Journey: the pattern is unrolled to *positions* (occurrences of atoms). Glushkov's first, follow and last relations say
which position may stand next to which, and each such link carries the set of guards that the gap spells: ``NOT N`` is
an empty word that leaves a mark. The subset construction over letters (set of guards, variable) makes the automaton
deterministic, so that each trend is counted once; two marked words that differ only in their marks would make the
guards of a trend ambiguous and are refused; Moore's refinement merges equal states.

Source: Glushkov 1961; Brueggemann-Klein 1993; HAMLET (SIGMOD'21) §3.1.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from hamlet.query import Alternation, Atom, Conjunction, Negation, Pattern, Repetition, Sequence, children
from optimizer.template import START, Final, Guard, Template, Transition

Guards = frozenset[int]
NO_GUARDS: Guards = frozenset()

MAX_POSITIONS = 2_000
MAX_STATES = 2_000
MAX_TRANSITIONS = 50_000


class PatternTooLarge(Exception):
    """The automaton of a pattern passes a limit; the message names it."""


class AmbiguousGuards(Exception):
    """One word of a pattern can be spelled with different guards at one gap (LANGUAGE §4).

    Attributes
    ----------
    negation : Negation
        A guard that one spelling has at the gap and another has not.
    places : tuple of two Pattern
        The two places of the pattern that spell the same event or gap.
    """

    def __init__(self, negation: Negation, places: tuple[Pattern, Pattern]) -> None:
        super().__init__("one word can be spelled with different guards at one gap")
        self.negation = negation
        self.places = places


@dataclass
class _Fragment:
    """What may begin, end and empty-spell a part of the pattern; every link with the guards that it carries."""

    first: set[tuple[Guards, int]] = field(default_factory=set)
    last: set[tuple[int, Guards]] = field(default_factory=set)
    empty: set[Guards] = field(default_factory=set)  # the marks with which the empty word can be spelled


class _Positions:
    """The position automaton of a pattern."""

    def __init__(self) -> None:
        self.atoms: list[Atom] = []
        self.follow: list[set[tuple[Guards, int]]] = []
        self.guards: dict[Pattern, int] = {}  # negated pattern -> index; equal ones are one
        self.negations: list[Negation] = []
        self.links = 0

    def build(self, pattern: Pattern) -> _Fragment:
        match pattern:
            case Atom():
                return self._atom(pattern)
            case Negation():
                guard = self.guards.setdefault(pattern.body, len(self.guards))
                if guard == len(self.negations):
                    self.negations.append(pattern)
                return _Fragment(empty={frozenset({guard})})
            case Sequence(parts=parts):
                return self._sequence(self.build(part) for part in parts)
            case Alternation(branches=branches):
                return _union([self.build(branch) for branch in branches])
            case Repetition():
                return self._repetition(pattern)
            case Conjunction():
                raise TypeError("a conjunction has one template per operand")

    def _atom(self, atom: Atom) -> _Fragment:
        position = len(self.atoms)
        if position >= MAX_POSITIONS:
            raise PatternTooLarge(f"the pattern unrolls to more than {MAX_POSITIONS:,} events")
        self.atoms.append(atom)
        self.follow.append(set())
        return _Fragment({(NO_GUARDS, position)}, {(position, NO_GUARDS)})

    def _link(self, last: Iterable[tuple[int, Guards]], first: Iterable[tuple[Guards, int]]) -> None:
        first = list(first)
        for position, before in last:
            follow = self.follow[position]
            size = len(follow)
            follow.update((before | after, target) for after, target in first)
            self.links += len(follow) - size
        if self.links > 20 * MAX_TRANSITIONS:
            raise PatternTooLarge(f"the pattern unrolls to more than {20 * MAX_TRANSITIONS:,} links between events")

    def _sequence(self, parts: Iterable[_Fragment]) -> _Fragment:
        whole = _Fragment(empty={NO_GUARDS})
        for part in parts:
            self._link(whole.last, part.first)
            whole = _Fragment(
                whole.first | {(marks | guards, p) for marks in whole.empty for guards, p in part.first},
                part.last | {(p, guards | marks) for p, guards in whole.last for marks in part.empty},
                {left | right for left in whole.empty for right in part.empty},
            )
        return whole

    def _repetition(self, repetition: Repetition) -> _Fragment:
        body, low, high = repetition.body, repetition.low, repetition.high
        if high is None:
            required = [self.build(body) for _ in range(max(low, 1) - 1)]
            return self._sequence([*required, self._optional(self._loop(self.build(body)), low == 0)])
        # x{n,m} is n times x and then (x(x(...)?)?)?, so that the tail's links stay linear
        tail = _Fragment(empty={NO_GUARDS})
        required = [self.build(body) for _ in range(low)]
        for part in [self.build(body) for _ in range(high - low)]:
            tail = self._optional(self._sequence([part, tail]), True)
        return self._sequence([*required, tail])

    @staticmethod
    def _optional(part: _Fragment, optional: bool) -> _Fragment:
        return _Fragment(part.first, part.last, part.empty | {NO_GUARDS}) if optional else part

    def _loop(self, body: _Fragment) -> _Fragment:
        marks = _unions(body.empty)  # what empty rounds may add between two real ones, or at the ends
        whole = _Fragment(
            {(mark | guards, p) for mark in marks for guards, p in body.first},
            {(p, guards | mark) for p, guards in body.last for mark in marks},
            {mark for mark in marks if mark or NO_GUARDS in body.empty},
        )
        self._link(whole.last, body.first)
        return whole


def _union(parts: list[_Fragment]) -> _Fragment:
    return _Fragment(
        set().union(*(part.first for part in parts)),
        set().union(*(part.last for part in parts)),
        set().union(*(part.empty for part in parts)),
    )


def _unions(marks: set[Guards]) -> set[Guards]:
    """All unions of any number of marks, the empty union included."""
    closed: set[Guards] = {NO_GUARDS}
    for mark in marks:
        closed |= {mark | other for other in closed}
    return closed


@dataclass
class _Deterministic:
    """The result of the subset construction; state 0 is the start."""

    members: list[frozenset[int]]
    labels: list[int]
    steps: list[dict[tuple[Guards, int], int]]  # state -> {(guards, variable): target}
    finals: list[frozenset[Guards]]


def template(pattern: Pattern) -> Template:
    """The template of a pattern without conjunction.

    Parameters
    ----------
    pattern : Pattern
        Checked: every negation is a direct part of a sequence (analysis sees to it).

    Returns
    -------
    Template
        Deterministic over (variable, set of guards), minimal, every state on the way to an end.

    Raises
    ------
    AmbiguousGuards
        A word with two spellings whose guards differ.
    PatternTooLarge
        More positions, states or transitions than the limits of this module.
    """
    positions = _Positions()
    fragment = positions.build(pattern)
    variables: dict[str, str] = {}
    for atom in positions.atoms:
        variables.setdefault(atom.variable, atom.type)
    index = {variable: number for number, variable in enumerate(variables)}
    automaton = _determine(positions, fragment, [index[atom.variable] for atom in positions.atoms])
    _refuse_ambiguity(automaton, positions)
    blocks = _minimise(automaton)
    return _assemble(automaton, blocks, variables, positions)


def _determine(positions: _Positions, fragment: _Fragment, letters: list[int]) -> _Deterministic:
    """The subset construction over letters (set of guards, variable)."""
    ends: dict[int, set[Guards]] = {}
    for position, guards in fragment.last:
        ends.setdefault(position, set()).add(guards)
    automaton = _Deterministic([frozenset()], [-1], [], [frozenset()])
    numbers: dict[frozenset[int], int] = {}
    transitions = 0
    state = 0
    while state < len(automaton.members):
        moves: dict[tuple[Guards, int], set[int]] = {}
        links = (
            fragment.first if state == START else set().union(*(positions.follow[p] for p in automaton.members[state]))
        )
        for guards, target in links:
            moves.setdefault((guards, letters[target]), set()).add(target)
        steps: dict[tuple[Guards, int], int] = {}
        for letter in sorted(moves, key=lambda move: (move[1], sorted(move[0]))):
            members = frozenset(moves[letter])
            if members not in numbers:
                numbers[members] = len(automaton.members)
                automaton.members.append(members)
                automaton.labels.append(letter[1])
                automaton.finals.append(frozenset().union(*(ends.get(p, ()) for p in members)))
            steps[letter] = numbers[members]
        automaton.steps.append(steps)
        transitions += len(steps)
        if len(automaton.members) > MAX_STATES or transitions > MAX_TRANSITIONS:
            raise PatternTooLarge(
                f"the pattern's automaton has more than {MAX_STATES:,} states or {MAX_TRANSITIONS:,} transitions"
            )
        state += 1
    return automaton


def _refuse_ambiguity(automaton: _Deterministic, positions: _Positions) -> None:
    """Walk two runs over one word; where their marks have differed once and both may end, the word is ambiguous."""
    if not positions.negations:
        return
    reached: set[tuple[int, int]] = set()
    queue: deque[tuple[int, int, AmbiguousGuards]] = deque()
    for state, steps in enumerate(automaton.steps):
        by_variable: dict[int, list[tuple[Guards, int]]] = {}
        for (guards, variable), target in steps.items():
            by_variable.setdefault(variable, []).append((guards, target))
        for moves in by_variable.values():
            for i, (guards, target) in enumerate(moves):
                for other_guards, other in moves[:i]:
                    difference = _difference(automaton, positions, (guards, target), (other_guards, other))
                    queue.append((target, other, difference))
        if len(automaton.finals[state]) > 1:
            first, second = sorted(automaton.finals[state], key=sorted)[:2]
            negation = positions.negations[min(first ^ second)]
            raise AmbiguousGuards(negation, (negation, _last_part(negation, automaton, positions, state)))
    while queue:
        one, two, difference = queue.popleft()
        if (one, two) in reached:
            continue
        reached.add((one, two))
        if automaton.finals[one] and automaton.finals[two]:
            raise difference
        for (_, variable), target in automaton.steps[one].items():
            for (_, other_variable), other in automaton.steps[two].items():
                if variable == other_variable:
                    queue.append((target, other, difference))


def _difference(
    automaton: _Deterministic, positions: _Positions, one: tuple[Guards, int], two: tuple[Guards, int]
) -> AmbiguousGuards:
    negation = positions.negations[min(one[0] ^ two[0])]
    ones, twos = automaton.members[one[1]], automaton.members[two[1]]
    first = positions.atoms[min(ones - twos or ones)]
    second = positions.atoms[min(twos - ones or twos)]
    return AmbiguousGuards(negation, (first, second))


def _last_part(negation: Negation, automaton: _Deterministic, positions: _Positions, state: int) -> Pattern:
    return positions.atoms[max(automaton.members[state])] if automaton.members[state] else negation


def _minimise(automaton: _Deterministic) -> list[int]:
    """Moore's refinement: block number of each state. States of different variables never merge: a state is a role."""

    def numbered(signatures: list[object]) -> list[int]:
        numbers: dict[object, int] = {}
        return [numbers.setdefault(signature, len(numbers)) for signature in signatures]

    states = range(len(automaton.members))
    blocks = numbered([(automaton.labels[state], automaton.finals[state], state == START) for state in states])
    while True:
        finer = numbered(
            [
                (
                    blocks[state],
                    frozenset((letter, blocks[target]) for letter, target in automaton.steps[state].items()),
                )
                for state in states
            ]
        )
        if max(finer) == max(blocks):
            return finer
        blocks = finer


def _assemble(
    automaton: _Deterministic, blocks: list[int], variables: dict[str, str], positions: _Positions
) -> Template:
    labels: dict[int, int] = {}
    transitions: dict[Transition, None] = {}
    finals: dict[Final, None] = {}
    for state, block in enumerate(blocks):
        labels[block] = automaton.labels[state]
        for (guards, _), target in automaton.steps[state].items():
            transitions[Transition(block, blocks[target], guards)] = None
        for guards in automaton.finals[state]:
            finals[Final(block, guards)] = None
    return Template(
        variables=tuple(variables),
        types=tuple(variables.values()),
        labels=tuple(labels[block] for block in range(len(labels))),
        transitions=tuple(transitions),
        finals=tuple(finals),
        guards=tuple(Guard(_text(body), template(body)) for body in positions.guards),
    )


def _text(pattern: Pattern) -> str:
    from hamlet.printing import to_text

    return to_text(pattern)


def templates(patterns: tuple[Pattern, ...]) -> tuple[Template, ...]:
    """The templates of a query: one, or for AND those of both operands and of the trends that are in both (GRETA §9).

    Raises
    ------
    AmbiguousGuards, PatternTooLarge
        As `template`.
    """
    found = tuple(template(pattern) for pattern in patterns)
    return found if len(found) == 1 else (*found, intersection(*found))


def intersection(one: Template, two: Template) -> Template:
    """The template of the trends that both templates have: a product of states, entered by the same variable.

    A trend of both has one run in each, and its gaps carry the guards of both.

    Raises
    ------
    PatternTooLarge
        More states than the limit of this module.
    """
    guards = tuple(dict.fromkeys((*one.guards, *two.guards)))
    moved = [{place: guards.index(guard) for place, guard in enumerate(each.guards)} for each in (one, two)]

    def joined(ones: Guards, twos: Guards) -> Guards:
        return frozenset(moved[0][guard] for guard in ones) | frozenset(moved[1][guard] for guard in twos)

    numbers = {(START, START): START}
    pairs = [(START, START)]
    transitions: list[Transition] = []
    for left, right in pairs:  # grows
        for step in (each for each in one.transitions if each.source == left):
            for other in (each for each in two.transitions if each.source == right):
                if one.variable(step.target) != two.variable(other.target):
                    continue
                target = (step.target, other.target)
                if target not in numbers:
                    numbers[target] = len(pairs)
                    pairs.append(target)
                source = numbers[left, right]
                transitions.append(Transition(source, numbers[target], joined(step.guards, other.guards)))
        if len(pairs) > MAX_STATES or len(transitions) > MAX_TRANSITIONS:
            raise PatternTooLarge(f"the patterns' common automaton has more than {MAX_STATES:,} states")
    finals = [
        Final(numbers[a.state, b.state], joined(a.guards, b.guards))
        for a in one.finals
        for b in two.finals
        if (a.state, b.state) in numbers
    ]
    return _trimmed(one, [one.labels[left] for left, _ in pairs], transitions, finals, guards)


def _trimmed(
    like: Template,
    labels: list[int],
    transitions: list[Transition],
    finals: list[Final],
    guards: tuple[Guard, ...],
) -> Template:
    """A template of the states that lie on the way to an end."""
    alive = {final.state for final in finals}
    before = -1
    while len(alive) > before:
        before = len(alive)
        alive |= {step.source for step in transitions if step.target in alive}
    numbers = {state: number for number, state in enumerate(sorted(alive | {START}))}
    return Template(
        like.variables,
        like.types,
        tuple(labels[state] for state in numbers),
        tuple(
            Transition(numbers[step.source], numbers[step.target], step.guards)
            for step in transitions
            if step.source in alive and step.target in alive
        ),
        tuple(Final(numbers[final.state], final.guards) for final in finals),
        guards,
    )


def negations(pattern: Pattern) -> list[Negation]:
    """All negations of a pattern, in the order of the text."""
    found = [pattern] if isinstance(pattern, Negation) else []
    return found + [negation for part in children(pattern) for negation in negations(part)]
