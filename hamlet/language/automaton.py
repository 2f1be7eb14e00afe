"""From a pattern to its template: one construction for all patterns, negated parts included.

Journey: the pattern is unrolled to a position automaton whose links carry the guards of their gap
(`hamlet.language.positions`).
The subset construction over letters (set of guards, variable) makes it deterministic, so that each trend is counted
once; two marked words that differ only in their marks would make the guards of a trend ambiguous and are refused;
Hopcroft's refinement merges equal states.

Source: HAMLET (SIGMOD'21) §3.1; Hopcroft 1971; GRETA (VLDB'17) §9 (AND).
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
from functools import lru_cache

from hamlet.language.positions import Fragment, Guards, Marked, PatternTooLarge, Positions, bits
from hamlet.language.printing import to_text
from hamlet.language.query import Negation, Pattern
from optimizer.template import START, Final, Guard, Template, Transition

__all__ = ["AmbiguousGuards", "PatternTooLarge", "check_beginnings", "intersection", "template", "templates"]

MAX_STATES = 2_000
MAX_TRANSITIONS = 50_000
MAX_PAIRS = 500_000  # of states that two runs over one word may stand in
KEPT_TEMPLATES = 2_048  # checking, compiling and explaining a workload ask for the same ones


class AmbiguousGuards(Exception):
    """One word of a pattern can be spelled with different guards at one gap.

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
class _Deterministic:
    """The result of the subset construction; state 0 is the start."""

    members: list[int]  # the positions of each state, as bits
    labels: list[int]
    steps: list[dict[tuple[Guards, int], int]]  # state -> {(guards, variable): target}
    finals: list[frozenset[Guards]]


@lru_cache(maxsize=KEPT_TEMPLATES)
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
        More positions, states or transitions than the limits of this module and of `hamlet.language.positions`.
    """
    positions = Positions()
    fragment = positions.build(pattern)
    variables: dict[str, str] = {}
    for atom in positions.atoms:
        variables.setdefault(atom.variable, atom.type)
    index = {variable: number for number, variable in enumerate(variables)}
    automaton = _determine(positions, fragment, [index[atom.variable] for atom in positions.atoms])
    _refuse_ambiguity(automaton, positions)
    blocks = _minimise(automaton)
    return _assemble(automaton, blocks, variables, positions)


@lru_cache(maxsize=KEPT_TEMPLATES)
def check_beginnings(pattern: Pattern) -> None:
    """Whether every beginning of a word has one reading, as skip-till-next-match asks, for it looks at beginnings.

    Raises
    ------
    AmbiguousGuards
        A beginning of a word with two spellings whose guards differ before one of its events.
    PatternTooLarge
        As `template`.
    """
    positions = Positions()
    fragment = positions.build(pattern)
    index = {variable: number for number, variable in enumerate(dict.fromkeys(a.variable for a in positions.atoms))}
    automaton = _determine(positions, fragment, [index[atom.variable] for atom in positions.atoms])
    for steps in automaton.steps:
        for found in _by_variable(steps).values():
            if len(found) > 1:
                raise _difference(automaton, positions, found[1], found[0])


def _determine(positions: Positions, fragment: Fragment, letters: list[int]) -> _Deterministic:
    """The subset construction over letters (set of guards, variable)."""
    of_letter: dict[int, int] = defaultdict(int)
    for position, letter in enumerate(letters):
        of_letter[letter] |= 1 << position
    automaton = _Deterministic([0], [-1], [], [frozenset()])
    numbers: dict[int, int] = {}
    transitions = 0
    state = 0
    while state < len(automaton.members):
        links = fragment.first if state == START else _union(positions.follow, automaton.members[state])
        moves: dict[tuple[Guards, int], int] = {}
        for guards, targets in links.items():
            while targets:
                letter = letters[(targets & -targets).bit_length() - 1]
                moves[guards, letter] = targets & of_letter[letter]
                targets &= ~of_letter[letter]
        steps: dict[tuple[Guards, int], int] = {}
        for move in sorted(moves, key=lambda move: (move[1], sorted(move[0]))):
            members = moves[move]
            if members not in numbers:
                numbers[members] = len(automaton.members)
                automaton.members.append(members)
                automaton.labels.append(move[1])
                automaton.finals.append(frozenset(guards for guards, ends in fragment.last.items() if ends & members))
            steps[move] = numbers[members]
        automaton.steps.append(steps)
        transitions += len(steps)
        if len(automaton.members) > MAX_STATES or transitions > MAX_TRANSITIONS:
            raise PatternTooLarge(
                f"the pattern's automaton has more than {MAX_STATES:,} states or {MAX_TRANSITIONS:,} transitions"
            )
        state += 1
    return automaton


def _union(follow: list[Marked], members: int) -> Marked:
    """What may come after any of some positions."""
    links: Marked = defaultdict(int)
    for position in bits(members):
        for guards, targets in follow[position].items():
            links[guards] |= targets
    return links


def _refuse_ambiguity(automaton: _Deterministic, positions: Positions) -> None:
    """Walk two runs over one word; where their marks have differed once and both may end, the word is ambiguous."""
    if not positions.negations:
        return
    moves = [_by_variable(steps) for steps in automaton.steps]
    queue: deque[tuple[int, int, AmbiguousGuards]] = deque()
    for state, by_variable in enumerate(moves):
        for found in by_variable.values():
            for i, (guards, target) in enumerate(found):
                for other_guards, other in found[:i]:
                    difference = _difference(automaton, positions, (guards, target), (other_guards, other))
                    queue.append((target, other, difference))
        if len(automaton.finals[state]) > 1:
            first, second = sorted(automaton.finals[state], key=sorted)[:2]
            negation = positions.negations[min(first ^ second)]
            raise AmbiguousGuards(negation, (negation, _last_part(negation, automaton, positions, state)))
    reached: set[tuple[int, int]] = set()
    while queue:
        one, two, difference = queue.popleft()
        if (one, two) in reached:
            continue
        reached.add((one, two))
        if automaton.finals[one] and automaton.finals[two]:
            raise difference
        if len(reached) > MAX_PAIRS:
            raise PatternTooLarge(
                f"to tell the readings of the pattern's NOT apart takes more than {MAX_PAIRS:,} pairs of states"
            )
        for variable, ones in moves[one].items():
            twos = moves[two].get(variable, ())
            queue.extend((target, other, difference) for _, target in ones for _, other in twos)


def _by_variable(steps: dict[tuple[Guards, int], int]) -> dict[int, list[tuple[Guards, int]]]:
    found: dict[int, list[tuple[Guards, int]]] = {}
    for (guards, variable), target in steps.items():
        found.setdefault(variable, []).append((guards, target))
    return found


def _difference(
    automaton: _Deterministic, positions: Positions, one: tuple[Guards, int], two: tuple[Guards, int]
) -> AmbiguousGuards:
    negation = positions.negations[min(one[0] ^ two[0])]
    ones, twos = automaton.members[one[1]], automaton.members[two[1]]
    first, second = next(bits(ones & ~twos or ones)), next(bits(twos & ~ones or twos))
    return AmbiguousGuards(negation, (positions.atoms[first], positions.atoms[second]))


def _last_part(negation: Negation, automaton: _Deterministic, positions: Positions, state: int) -> Pattern:
    members = automaton.members[state]
    return positions.atoms[members.bit_length() - 1] if members else negation


def _minimise(automaton: _Deterministic) -> list[int]:
    """Hopcroft's refinement: block number of each state, numbered by the first state of each.

    States of different variables never merge: a state is a role. A letter that a state lacks leads nowhere, so all
    blocks have to split the others once; after that the smaller half of a split block is enough.
    """
    blocks: list[set[int]] = []
    block_of = [0] * len(automaton.members)
    kinds: dict[object, int] = {}
    for state, (label, finals) in enumerate(zip(automaton.labels, automaton.finals, strict=True)):
        block_of[state] = kinds.setdefault((label, finals, state == START), len(kinds))
        if block_of[state] == len(blocks):
            blocks.append(set())
        blocks[block_of[state]].add(state)
    sources: list[dict[tuple[Guards, int], list[int]]] = [{} for _ in automaton.members]
    for state, steps in enumerate(automaton.steps):
        for letter, target in steps.items():
            sources[target].setdefault(letter, []).append(state)
    waiting = set(range(len(blocks)))
    while waiting:
        arriving: dict[tuple[Guards, int], set[int]] = {}
        for target in blocks[waiting.pop()]:
            for letter, found in sources[target].items():
                arriving.setdefault(letter, set()).update(found)
        for states in arriving.values():
            touched: dict[int, set[int]] = {}
            for state in states:
                touched.setdefault(block_of[state], set()).add(state)
            for block, inside in touched.items():
                if len(inside) == len(blocks[block]):
                    continue
                blocks[block] -= inside
                new = len(blocks)
                blocks.append(inside)
                for state in inside:
                    block_of[state] = new
                waiting.add(new if block in waiting or len(inside) <= len(blocks[block]) else block)
    numbers: dict[int, int] = {}
    return [numbers.setdefault(block, len(numbers)) for block in block_of]


def _assemble(
    automaton: _Deterministic, blocks: list[int], variables: dict[str, str], positions: Positions
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
        guards=tuple(Guard(to_text(body), template(body)) for body in positions.guards),
    )


@lru_cache(maxsize=KEPT_TEMPLATES)
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
    ones, twos = _by_source(one), _by_source(two)
    for left, right in pairs:  # grows
        for step in ones[left]:
            for other in twos[right]:
                if one.variable(step.target) != two.variable(other.target):
                    continue
                target = (step.target, other.target)
                if target not in numbers:
                    numbers[target] = len(pairs)
                    pairs.append(target)
                source = numbers[left, right]
                transitions.append(Transition(source, numbers[target], joined(step.guards, other.guards)))
        if len(pairs) > MAX_STATES or len(transitions) > MAX_TRANSITIONS:
            limit = f"{MAX_STATES:,} states or {MAX_TRANSITIONS:,} transitions"
            raise PatternTooLarge(f"the automaton of the trends that both patterns have has more than {limit}")
    finals = [
        Final(numbers[a.state, b.state], joined(a.guards, b.guards))
        for a in one.finals
        for b in two.finals
        if (a.state, b.state) in numbers
    ]
    return _trimmed(one, [one.labels[left] for left, _ in pairs], transitions, finals, guards)


def _by_source(template: Template) -> dict[int, list[Transition]]:
    found: dict[int, list[Transition]] = defaultdict(list)
    for step in template.transitions:
        found[step.source].append(step)
    return found


def _trimmed(
    like: Template,
    labels: list[int],
    transitions: list[Transition],
    finals: list[Final],
    guards: tuple[Guard, ...],
) -> Template:
    """A template of the states that lie on the way to an end."""
    sources: dict[int, list[int]] = defaultdict(list)
    for step in transitions:
        sources[step.target].append(step.source)
    queue = [final.state for final in finals]
    alive = set(queue)
    for state in queue:  # grows
        fresh = [source for source in sources[state] if source not in alive]
        alive.update(fresh)
        queue += fresh
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
