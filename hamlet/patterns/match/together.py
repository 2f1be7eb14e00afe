"""Clauses over one table in one order are matched in one pass over its rows, and their automata share steps.

Which steps can reach the end of a pattern is computed from the last row to the first, so what automata share are the
steps from which the rest of the pattern is equal, under equal conditions: one state for all clauses. A clause looks
ahead to those that follow it. Up to 64 steps are one word for each row (`automaton._walk`).
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hamlet.patterns.automaton._walk import Matches, Table, walk_all
from hamlet.patterns.automaton.compile import ACCEPT, SPLIT, TAKE
from hamlet.patterns.clause.statement import Script
from hamlet.patterns.match.conditions import Failed
from hamlet.patterns.match.evaluate import Meaning, near_masks, near_texts
from hamlet.patterns.match.host import HostError
from hamlet.patterns.match.ordered import Ordered, masks_of

_MOST_STEPS = 64
_MOST_CLAUSES = 24  # whose matches are kept until their statements run
Masks = Mapping[str, npt.NDArray[np.uint8]]  # by variable, none where it takes every row


@dataclass
class Automaton:
    """The steps of several clauses, equal ones once.

    Attributes
    ----------
    steps : list of (int, int, int, int)
        Kind, the steps that follow, and the variable, in an order as `Program` has it.
    variables : list of (str or None, int)
        The mask of a variable by its clause and name, and its number there.
    places : list of list of int
        By clause, the number of each of its steps.
    """

    steps: list[tuple[int, int, int, int]]
    variables: list[tuple[int, int]]
    places: list[list[int]]


def merged(meanings: Sequence[Meaning], masks: Sequence[Masks]) -> Automaton:
    """One automaton of several clauses: steps are told apart as long as what follows them can be."""
    known: dict[tuple[int, int], int] = {}  # variables by mask and number, which a clause's labels are known by
    marks: list[tuple[int, int, bool]] = []  # of each step: kind, variable, whether it is excluded
    following: list[tuple[int, ...]] = []
    for meaning, own in zip(meanings, masks, strict=True):
        names, program, base = list(meaning.clause.variables), meaning.program, len(marks)
        for step, kind in enumerate(program.kinds):
            variable = -1
            if kind == TAKE:
                number = program.variables[step]
                mask = own.get(names[number])
                variable = known.setdefault((0 if mask is None else id(mask), number), len(known))
            marks.append((kind, variable, program.excluded[step]))
            both = {ACCEPT: (), SPLIT: (program.first[step], program.second[step])}
            following.append(tuple(base + each for each in both.get(kind, (program.first[step],))))
    group, count = _numbered(marks)
    while True:
        finer = [(group[step], *(group[each] for each in after)) for step, after in enumerate(following)]
        group, found = _numbered(finer)
        if found == count:
            break
        count = found
    place = _in_order(marks, following, group)
    steps = [(0, 0, 0, 0)] * count
    for step, (kind, variable, _) in enumerate(marks):
        leads = [place[group[each]] for each in following[step]] or [0]
        steps[place[group[step]]] = kind, leads[0], leads[-1], max(variable, 0)
    ends = np.cumsum([0, *(len(each.program.kinds) for each in meanings)]).tolist()
    places = [[place[group[step]] for step in range(low, high)] for low, high in itertools.pairwise(ends)]
    return Automaton(steps, list(known), places)


def _numbered(marks: Sequence[object]) -> tuple[list[int], int]:
    """Equal things get equal numbers."""
    known: dict[object, int] = {}
    return [known.setdefault(each, len(known)) for each in marks], len(known)


def _in_order(
    marks: Sequence[tuple[int, int, bool]], following: Sequence[tuple[int, ...]], group: Sequence[int]
) -> dict[int, int]:
    """A place for each group of steps behind those that it leads to without taking a row."""
    place: dict[int, int] = {}
    waiting = list(range(len(marks)))[::-1]
    while waiting:
        step = waiting[-1]
        missing = [each for each in following[step] if group[each] not in place and each != step]
        if group[step] in place or marks[step][0] == TAKE or not missing:
            place.setdefault(group[waiting.pop()], len(place))
        else:
            waiting += missing
    return place


class Together:
    """The clauses of a text; each is matched with those that follow it where it can be.

    Parameters
    ----------
    script : Script
    reader : callable
        From a statement to its clause, read, and what it shares a table by; None where it cannot be read.

    Attributes
    ----------
    place : int
        The statement that runs.
    """

    def __init__(self, script: Script, reader: Callable[[int], tuple[Meaning, tuple[str, ...]] | None]) -> None:
        self._script, self._reader = script, reader
        self._found: dict[int, Matches] = {}
        self.place = 0

    def matches(self, meaning: Meaning, key: tuple[str, ...], ordered: Ordered) -> Matches | None:
        """The matches of a clause, None where it has to be matched alone."""
        start = meaning.clause.span.start
        if start not in self._found and _can_share(meaning):
            group = [meaning, *self._following(key)]
            with contextlib.suppress(Failed, HostError):  # what is wrong is said when its statement runs
                masks_of(ordered, [text for each in group for text in near_texts(each, ordered).values()])
                masks = [near_masks(each, ordered, self._script.reports()) for each in group]
                while len(group) > 1 and start not in self._found:
                    found = matched(group, masks[: len(group)], ordered) or []
                    self._found |= {each.clause.span.start: own for each, own in zip(group, found, strict=False)}
                    group = group[: 3 * len(group) // 4]
        return self._found.pop(start, None)

    def _following(self, key: tuple[str, ...]) -> Iterator[Meaning]:
        """The clauses of the statements behind the one that runs as long as they share its table."""
        for place in range(self.place + 1, min(self.place + _MOST_CLAUSES, len(self._script.statements))):
            statement = self._script.statements[place]
            if len(statement.clauses) != 1 or not statement.tokens[0].is_word("SELECT", "WITH", "FROM"):
                return
            found = self._reader(place)
            if found is None or found[1] != key or not _can_share(found[0]):
                return
            yield found[0]


def _can_share(meaning: Meaning) -> bool:
    """Whether the steps of a clause say the same of every start."""
    return not meaning.reads_labels and meaning.within is None and not meaning.program.counts


def matched(meanings: Sequence[Meaning], masks: Sequence[Masks], ordered: Ordered) -> list[Matches] | None:
    """The matches of clauses in one pass, their steps as each clause numbers them; None for too many steps."""
    whole = merged(meanings, masks)
    if len(whole.steps) > _MOST_STEPS:
        return None
    arrays = {id(mask): mask for own in masks for mask in own.values()}
    listed = [arrays.get(mask, np.zeros(0, np.uint8)) for mask, _ in whole.variables]
    kinds, first, second, variables = (np.array(each, np.int32) for each in zip(*whole.steps, strict=True))
    members = np.zeros((len(meanings), max(1, len(listed))), np.uint8)
    for row, meaning in zip(members, meanings, strict=True):
        _, own = meaning.skip
        row[: len(listed)] = [own[number] if number < len(own) else 0 for _, number in whole.variables]
    starts = [places[each.program.start] for each, places in zip(meanings, whole.places, strict=True)]
    skips = [each.skip[0] for each in meanings]
    table = Table(kinds, first, second, variables, listed, False)
    found: list[Matches] = walk_all(
        table, np.array(starts, np.int32), ordered.borders, np.array(skips, np.int32), members
    )
    for each, places in zip(found, whole.places, strict=True):
        own_step = np.zeros(len(whole.steps), np.int32)
        own_step[places[::-1]] = np.arange(len(places), dtype=np.int32)[::-1]
        each.renumber(own_step)
    return found
