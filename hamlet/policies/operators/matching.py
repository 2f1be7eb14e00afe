"""MATCHP and MATCHF: the automaton of a regular expression, run valuation by valuation where something changes.

A *run* is a state and the time at which it began. Valuations of which nothing has happened yet share the runs of
unbound: those that only letters without variables, and letters that must not hold, have let through. A valuation is
followed from its first own event on, and forgotten when its runs are unbound again. While nothing changes and a step
leaves the runs as they are, time-points are passed over.

Source: derivatives of regular expressions over time, Basin, Krstić, Traytel: *Almost event-rate independent monitoring
of metric dynamic logic* (RV 2017); runs over periods, in place of a table per time-point, are this project's own.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hamlet.arrays import np
from hamlet.policies.analysis.regex_automaton import Automaton
from hamlet.policies.operators.node import NEVER, Node, Timeline
from hamlet.policies.relations.relation import Relation, coalesce, concat, empty
from hamlet.policies.syntax.formula import Type

Codes = tuple[int, ...]
Runs = dict[int, tuple[int, ...]]  # by state the times of beginning, ascending
_RUN_BYTES = 600  # of a run while a batch is read, about
_Changes = list[tuple[int, int]]  # place, and the letter that turns (+1 + letter: becomes true; -1 - letter: false)


@dataclass(frozen=True)
class Letter:
    """A formula of an expression.

    Attributes
    ----------
    child : int
        Whose relation it is.
    columns : tuple of int
        For each of the child's columns the variable that it holds, by place.
    """

    child: int
    columns: tuple[int, ...]


class Match(Node):
    """What the two have in common.

    Parameters
    ----------
    children : tuple of Node
    letters : tuple of Letter
        By number.
    automaton : Automaton
    interval : (int, int or None)
    types : tuple of str
        Of the variables.
    """

    reads_times = True

    def __init__(
        self,
        children: tuple[Node, ...],
        letters: tuple[Letter, ...],
        automaton: Automaton,
        interval: tuple[int, int | None],
        types: tuple[Type, ...],
    ) -> None:
        super().__init__(types, children)
        self._letters, self._automaton, self._interval = letters, automaton, interval
        self.kept = self._kept_at_first()

    def _kept_at_first(self) -> dict[str, Relation]:
        """What is kept before the first time-point."""
        raise NotImplementedError

    @property
    def nbytes(self) -> int:
        """Bytes of what is kept, and of what is made of it to read on."""
        return super().nbytes + _RUN_BYTES * sum(map(len, self.kept.values()))

    def _run(
        self, times: Sequence[int], batch: Sequence[Relation], base: int, unbound: Runs, known: Mapping[Codes, Runs]
    ) -> tuple[dict[Codes, list[tuple[int, int]]], Runs, dict[Codes, Runs]]:
        """Read some time-points.

        Parameters
        ----------
        times : sequence of int
            Of the time-points, ascending.
        batch : sequence of Relation
            The children's relations there; `base` is the first time-point's number.
        unbound, known
            The runs before the first one.

        Returns
        -------
        (dict, dict, dict)
            By valuation the places at which the expression matches, as first and last; and the runs behind the last.
        """
        reader = _Reader(self._automaton, self._interval, times)
        shared, own, partial = self._changes(batch, base)
        history = reader.read(0, unbound, sorted(shared))
        if not self.width:
            return {(): history.matches}, history.runs, {}
        found, left = {}, {}
        for codes in {**dict.fromkeys(known), **dict.fromkeys(own)}:
            changes = own.get(codes, []) + shared
            for (letter, places), table in partial.items():
                changes += table.get((letter, *(codes[place] for place in places)), [])
            changes.sort()
            if codes in known:
                first, runs = 0, known[codes]
            else:
                first = own[codes][0][0] if len(own[codes]) == 1 else min(own[codes])[0]
                runs = history.before(first)
            mine = reader.read(first, runs, changes)
            if mine.matches:
                found[codes] = mine.matches
            if mine.runs != history.runs:
                left[codes] = mine.runs
        return found, history.runs, left

    def _changes(
        self, batch: Sequence[Relation], base: int
    ) -> tuple[_Changes, dict[Codes, _Changes], dict[tuple[int, tuple[int, ...]], dict[Codes, _Changes]]]:
        """Where letters turn true and false: for all, by valuation, and by letter and some of a valuation's values."""
        shared: _Changes = []
        own: dict[Codes, _Changes] = {}
        partial: dict[tuple[int, tuple[int, ...]], dict[Codes, _Changes]] = {}
        for number, letter in enumerate(self._letters):
            rows = batch[letter.child]
            begins, ends = (rows.first - base).tolist(), (rows.last + 1 - base).tolist()
            turns = [((begin, number + 1), (end, -1 - number)) for begin, end in zip(begins, ends, strict=True)]
            if not letter.columns:
                shared += [turn for pair in turns for turn in pair]
                continue
            values = zip(*(column.tolist() for column in rows.columns), strict=True)
            if len(letter.columns) == self.width:
                order = [letter.columns.index(place) for place in range(self.width)]
                for row, pair in zip(values, turns, strict=True):
                    own.setdefault(tuple([row[place] for place in order]), []).extend(pair)
                continue
            table = partial.setdefault((number, letter.columns), {})
            for row, pair in zip(values, turns, strict=True):
                table.setdefault((number, *row), []).extend(pair)
        return shared, own, partial

    def _relation_of(self, found: Mapping[Codes, Sequence[tuple[int, int]]], base: int) -> Relation:
        """Matches as a relation."""
        rows = [(*codes, first + base, last + base) for codes, places in found.items() for first, last in places]
        return _relation(rows, self.width)


class MatchPast(Match):
    """MATCHP: it matches from a time-point in the interval to here."""

    def _kept_at_first(self) -> dict[str, Relation]:
        # Two more columns: state and time of beginning; a valuation without runs has the state -1.
        return {"nobody": empty(2), "runs": empty(self.width + 2)}

    def kept_types(self) -> dict[str, tuple[Type | None, ...]]:
        """The types of the columns of what is kept; None is a state or a time."""
        return {"nobody": (None, None), "runs": (*self.types, None, None)}

    def _relation(self, line: Timeline, low: int, high: int, batch: list[Relation]) -> Relation:
        if low == high:
            return empty(self.width)
        times = line.times[low - line.base : high - line.base].tolist()
        unbound = self._runs_of(self.kept["nobody"], 0).get((), {})
        found, unbound, known = self._run(times, batch, low, unbound, self._runs_of(self.kept["runs"], self.width))
        self.kept = {"nobody": _kept({(): unbound}, 0, high - 1), "runs": _kept(known, self.width, high - 1)}
        return coalesce(self._relation_of(found, low))

    def _runs_of(self, rows: Relation, width: int) -> dict[Codes, Runs]:
        found: dict[Codes, Runs] = {}
        states = len(self._automaton.steps)
        for *codes, state, time in zip(*(column.tolist() for column in rows.columns), strict=True):
            runs = found.setdefault(tuple(codes), {})
            if 0 <= state < states:
                runs[state] = tuple(sorted((*runs.get(state, ()), time)))
        assert width == len(rows.columns) - 2
        return found


class MatchFuture(Match):
    """MATCHF: it matches from here to a time-point in the interval. Read from the last time-point to the first."""

    def _kept_at_first(self) -> dict[str, Relation]:
        return {f"letter{place}": empty(child.width) for place, child in enumerate(self.children)}

    def kept_types(self) -> dict[str, tuple[Type | None, ...]]:
        """The types of the columns of what is kept: the children's relations at undecided time-points."""
        return {f"letter{place}": child.types for place, child in enumerate(self.children)}

    def _compute(self, line: Timeline, low: int, high: int, batch: list[Relation]) -> tuple[Relation, int]:  # noqa: ARG002
        most, before = self._interval[1], self.done
        assert most is not None, "the planner refuses what has no bound"
        decided = int(line.first_at_least(np.array([line.next_time(high) - most], np.int64))[0])
        done = max(before, min(high, decided))
        held = [
            coalesce(concat([kept, rows], rows_width(kept)))
            for kept, rows in zip(self.kept.values(), batch, strict=True)
        ]
        found = empty(self.width)
        if done > before:
            times = [-each for each in reversed(line.times[before - line.base : high - line.base].tolist())]
            mirrored = [Relation(each.columns, high - 1 - each.last, high - 1 - each.first) for each in held]
            matches = self._run(times, mirrored, 0, {}, {})[0]
            rows = self._relation_of(matches, 0)
            found = Relation(rows.columns, high - 1 - rows.last, high - 1 - rows.first).clip(before, done)
        self.kept = {f"letter{place}": rows.clip(done, high) for place, rows in enumerate(held)}
        return coalesce(found), done


def rows_width(rows: Relation) -> int:
    """The number of a relation's columns."""
    return len(rows.columns)


def _relation(rows: Sequence[Sequence[int]], width: int) -> Relation:
    """Rows of codes, and first and last time-point, as a relation."""
    if not rows:
        return empty(width)
    *columns, first, last = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    return Relation(columns, first, last)


def _kept(runs: Mapping[Codes, Runs], width: int, point: int) -> Relation:
    rows = []
    for codes, own in runs.items():
        pairs = [(state, time) for state, times in own.items() for time in times]
        rows += [(*codes, state, time, point, point) for state, time in pairs or [(-1, 0)]]
    return _relation(rows, width + 2)


@dataclass
class _History:
    """What reading came to.

    Attributes
    ----------
    runs : Runs
        Behind the last time-point.
    matches : list of (int, int)
        Places at which the expression matches, as first and last; they may overlap.
    marks : list of (int, Runs)
        The runs from a place on, where they change.
    first : Runs
        Those before the first place.
    """

    runs: Runs
    matches: list[tuple[int, int]]
    marks: list[tuple[int, Runs]]
    first: Runs

    def before(self, place: int) -> Runs:
        """The runs right before a place."""
        found = bisect_left(self.marks, place, key=lambda mark: mark[0])
        return self.marks[found - 1][1] if found else self.first


class _Reader:
    """Reads stretches of one sequence of time-points."""

    def __init__(self, automaton: Automaton, interval: tuple[int, int | None], times: Sequence[int]) -> None:
        self._automaton, self._times = automaton, times
        self._least, self._most = interval
        self._timeless = self._least <= 0 and self._most is None  # it does not matter when a run began

    def read(self, first: int, runs: Runs, changes: _Changes) -> _History:
        """Read from a place to the end.

        Parameters
        ----------
        first : int
        runs : Runs
            Right before it.
        changes : list of (int, int)
            In order; those before the place tell what is true there.
        """
        end, final = len(self._times), self._automaton.final
        found = _History(runs, [], [], runs)
        place, next_change, truth = first, 0, _Truth()
        while place < end:
            next_change = truth.turn(changes, next_change, place)
            before, runs = runs, self._stepped(runs, truth.bits, place)
            if runs != before or not found.marks:
                found.marks.append((place, runs))
            until = min(end, changes[next_change][0]) if next_change < len(changes) else end
            if until > place + 1 and not self._is_lasting(runs, truth.bits, place):
                until = place + 1
            found.matches += self._matches(runs.get(final, ()), place, until)
            place = until
        found.runs = runs
        return found

    def _stepped(self, runs: Runs, truth: int, place: int) -> Runs:
        """The runs of a place, from those of the place before."""
        automaton, now = self._automaton, self._times[place]
        found: dict[int, set[int]] = {}
        for state, times in runs.items():
            for each in automaton.moves(state, truth):
                found.setdefault(each, set()).update(times)
        for each in automaton.reached(0, truth):
            found.setdefault(each, set()).add(-NEVER if self._timeless else now)
        return {state: kept for state, times in found.items() if (kept := self._kept(times, now))}

    def _is_lasting(self, runs: Runs, truth: int, place: int) -> bool:
        """Whether the runs of a place are those of all places behind it, as long as nothing changes."""
        if self._automaton.reached(0, truth) and not self._timeless:
            return False  # with each time-point a run begins
        return self._stepped(runs, truth, place + 1) == runs

    def _kept(self, times: set[int], now: int) -> tuple[int, ...]:
        """The beginnings that can still matter: of those that are old enough the last one, the latest to be too old."""
        if len(times) == 1 and self._most is None:
            return tuple(times)
        counting = [time for time in times if time <= now - self._least]
        found = [time for time in times if time > now - self._least]
        if counting and (self._most is None or max(counting) >= now - self._most):
            found.append(max(counting))
        return tuple(sorted(found))

    def _matches(self, begun: Sequence[int], first: int, end: int) -> Iterator[tuple[int, int]]:
        """Where runs that are at the final state from one place on and before another are in the interval."""
        times = self._times
        for time in begun:
            low = bisect_left(times, time + self._least, first, end)
            high = end if self._most is None else bisect_right(times, time + self._most, first, end)
            if low < high:
                yield low, high - 1


class _Truth:
    """Which letters are true; one that two overlapping periods make true is so until both have ended."""

    def __init__(self) -> None:
        self.bits = 0
        self._counts: dict[int, int] = {}

    def turn(self, changes: _Changes, following: int, place: int) -> int:
        """Take the changes up to a place: the number of the first one behind it."""
        while following < len(changes) and changes[following][0] <= place:
            turn = changes[following][1]
            letter = abs(turn) - 1
            count = self._counts[letter] = self._counts.get(letter, 0) + (1 if turn > 0 else -1)
            self.bits = self.bits | 1 << letter if count else self.bits & ~(1 << letter)
            following += 1
        return following
