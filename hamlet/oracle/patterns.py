"""Row patterns by brute force: all ways of labelling rows, one after the other in the order of preference.

It shares the tree of the row pattern with the rest, and nothing else. Conditions and measures are functions of a
`View`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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

Row = Mapping[str, Any]
Label = tuple[str, bool]  # variable, and whether its row is excluded
Path = tuple[Label, ...]


@dataclass(frozen=True)
class View:
    """What an expression sees.

    Attributes
    ----------
    rows : sequence of Row
        Of the partition.
    start : int
    labels : tuple of str
        Of the match, or of the match so far.
    current : int or None
        The current row's place in the match; None for a match without rows.
    final : bool
        Whether the whole match is seen where nothing is said.
    number : int
        Of the match.
    members : mapping of str to tuple of str
        The variables that a name stands for.
    """

    rows: Sequence[Row]
    start: int
    labels: tuple[str, ...]
    current: int | None
    final: bool
    number: int
    members: Mapping[str, tuple[str, ...]]

    def seen(self, variable: str | None, mode: str | None) -> list[int]:
        """Places in the match of the rows of a variable that can be seen."""
        is_final = self.final if mode is None else mode == "FINAL"
        count = len(self.labels) if is_final else (0 if self.current is None else self.current + 1)
        if self.current is None:
            count = 0
        wanted = None if variable is None else self.members[variable]
        return [place for place in range(count) if wanted is None or self.labels[place] in wanted]

    def place(self, last: bool, variable: str | None, inwards: int, mode: str | None, step: int = 0) -> int | None:
        """The row of the partition that a navigation leads to."""
        places = self.seen(variable, mode)
        if inwards >= len(places):
            return None
        row = self.start + places[-1 - inwards if last else inwards] + step
        return row if 0 <= row < len(self.rows) else None

    def label_at(self, row: int | None) -> str | None:
        """The variable of a row of the partition in this match."""
        if row is None or not 0 <= row - self.start < len(self.labels):
            return None
        return self.labels[row - self.start]


@dataclass(frozen=True)
class Match:
    """A match: its first row, labels, and number in the partition."""

    start: int
    path: Path
    number: int


Condition = Callable[[View], Any]


@dataclass(frozen=True)
class Task:
    """A row pattern over one partition.

    Attributes
    ----------
    pattern : RowPattern
    rows : sequence of Row
    conditions : mapping of str to callable
    members : mapping of str to tuple of str
    reaches : callable
        Whether a row (by number) is within the time of a start.
    skip : str
        ``past``, ``next``, ``first`` or ``last``.
    skip_to : str or None
    """

    pattern: RowPattern
    rows: Sequence[Row]
    conditions: Mapping[str, Condition]
    members: Mapping[str, tuple[str, ...]]
    reaches: Callable[[int, int], bool]
    skip: str
    skip_to: str | None


class CannotSkip(Exception):
    """A match without the variable that is skipped to, or with it in its first row."""


def ways(task: Task, start: int, number: int) -> Iterator[Path]:
    """All labellings of rows from a start on, the preferred one first."""
    return _ways(task, task.pattern, (), False, start, number)


def _ways(task: Task, node: RowPattern, path: Path, excluded: bool, start: int, number: int) -> Iterator[Path]:
    row = start + len(path)
    if isinstance(node, Variable):
        if row < len(task.rows) and task.reaches(start, row):
            longer = (*path, (node.name, excluded))
            labels = tuple(label for label, _ in longer)
            view = View(task.rows, start, labels, len(labels) - 1, False, number, task.members)
            condition = task.conditions.get(node.name)
            if condition is None or condition(view) is True:
                yield longer
    elif isinstance(node, Anchor):
        if row == (0 if node.at_start else len(task.rows)):
            yield path
    elif isinstance(node, Concatenation):
        if not node.parts:
            yield path
            return
        rest = Concatenation(node.parts[1:])
        for each in _ways(task, node.parts[0], path, excluded, start, number):
            yield from _ways(task, rest, each, excluded, start, number)
    elif isinstance(node, Alternation):
        for choice in node.choices:
            yield from _ways(task, choice, path, excluded, start, number)
    elif isinstance(node, Permutation):
        for order in itertools.permutations(node.parts):
            yield from _ways(task, Concatenation(order), path, excluded, start, number)
    elif isinstance(node, Exclusion):
        yield from _ways(task, node.body, path, True, start, number)
    else:
        yield from _rounds(task, node, path, excluded, start, number, 0)


def _rounds(
    task: Task, node: Quantified, path: Path, excluded: bool, start: int, number: int, done: int
) -> Iterator[Path]:
    if done < node.low:
        for each in _ways(task, node.body, path, excluded, start, number):
            yield from _rounds(task, node, each, excluded, start, number, done + 1)
        return
    if not node.greedy:
        yield path
    if node.high is None or done < node.high:
        for each in _ways(task, node.body, path, excluded, start, number):
            if len(each) == len(path):
                yield each
            else:
                yield from _rounds(task, node, each, excluded, start, number, done + 1)
    if node.greedy:
        yield path


def matches(task: Task) -> list[Match]:
    """All matches of a partition.

    Raises
    ------
    CannotSkip
    """
    found: list[Match] = []
    start = 0
    while start < len(task.rows):
        path = next(ways(task, start, len(found) + 1), None)
        if path is None:
            start += 1
            continue
        found.append(Match(start, path, len(found) + 1))
        if not path or task.skip == "next":
            start += 1
        elif task.skip == "past":
            start += len(path)
        else:
            assert task.skip_to is not None
            places = [place for place, (label, _) in enumerate(path) if label in task.members[task.skip_to]]
            if not places or places[0 if task.skip == "first" else -1] == 0:
                raise CannotSkip
            start += places[0 if task.skip == "first" else -1]
    return found


def output(task: Task, rows_per_match: str, found: Sequence[Match]) -> list[tuple[int, View | None]]:
    """The rows of the result: the row of the partition that each shows, and what its measures see (None: nothing).

    Parameters
    ----------
    task : Task
    rows_per_match : {'one', 'show', 'omit', 'unmatched'}
    found : sequence of Match
    """
    result: list[tuple[int, View | None]] = []
    matched = {match.start + place for match in found for place in range(len(match.path))}
    matched |= {match.start for match in found}
    left = [row for row in range(len(task.rows)) if row not in matched] if rows_per_match == "unmatched" else []
    for match in found:
        while left and left[0] < match.start:
            result.append((left.pop(0), None))
        labels = tuple(label for label, _ in match.path)
        if rows_per_match == "one":
            last = len(labels) - 1 if labels else None
            result.append((match.start, View(task.rows, match.start, labels, last, True, match.number, task.members)))
            continue
        if not labels and rows_per_match != "omit":
            result.append((match.start, View(task.rows, match.start, (), None, False, match.number, task.members)))
        for place, (_, excluded) in enumerate(match.path):
            if not excluded:
                view = View(task.rows, match.start, labels, place, False, match.number, task.members)
                result.append((match.start + place, view))
    return [*result, *((row, None) for row in left)]
