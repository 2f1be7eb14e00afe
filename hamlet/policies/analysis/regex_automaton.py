"""The automaton of a regular expression over time: what steps, and what asks about the time-point it is at."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from hamlet.policies.syntax.formula import Formula
from hamlet.policies.syntax.regex import Alternation, Concatenation, Regex, Star, Step, Test


@dataclass(slots=True, eq=False)
class Automaton:
    """A nondeterministic automaton that reads time-points from the first to the last.

    Attributes
    ----------
    empty : list of list of int
        For each state those that are reached at once.
    tests : list of list of (int, bool, int)
        A letter's number, whether it must hold, and the state that is reached then.
    steps : list of list of int
        The states that are reached with the next time-point.
    final : int
        The state at which the expression matches; 0 is the first state.
    """

    empty: list[list[int]] = field(default_factory=list)
    tests: list[list[tuple[int, bool, int]]] = field(default_factory=list)
    steps: list[list[int]] = field(default_factory=list)
    final: int = 0
    _moves: dict[tuple[int, int], tuple[int, ...]] = field(default_factory=dict)
    _reached: dict[tuple[int, int], tuple[int, ...]] = field(default_factory=dict)

    def _state(self) -> int:
        self.empty.append([])
        self.tests.append([])
        self.steps.append([])
        return len(self.empty) - 1

    def _add(self, regex: Regex, start: int, letters: Mapping[Formula, tuple[int, bool]]) -> int:
        """Read an expression from a state on: the state behind it."""
        match regex:
            case Concatenation(left, right):
                return self._add(right, self._add(left, start, letters), letters)
            case Alternation(left, right):
                end = self._state()
                for each in (left, right):
                    self.empty[self._add(each, start, letters)].append(end)
                return end
            case Star(body):
                loop = self._state()
                self.empty[start].append(loop)
                self.empty[self._add(body, loop, letters)].append(loop)
                return loop
            case Test(formula):
                return self._test(start, formula, letters)
        end = self._state()
        self.steps[start].append(end)
        return self._test(end, regex.formula, letters) if isinstance(regex, Step) else end

    def _test(self, start: int, formula: Formula, letters: Mapping[Formula, tuple[int, bool]]) -> int:
        end = self._state()
        self.tests[start].append((*letters[formula], end))
        return end

    # ------------------------------------------------------------------------------------------- running

    def reached(self, state: int, truth: int) -> tuple[int, ...]:
        """The states, itself among them, that are reached at a time-point with some letters true.

        Only those are told from which a match can still come: that step on, or are final.
        """
        known = self._reached.get((state, truth))
        if known is None:
            found, todo = {state}, [state]
            while todo:
                place = todo.pop()
                after = list(self.empty[place])
                after += [end for letter, wanted, end in self.tests[place] if (truth >> letter & 1) == wanted]
                new = set(after) - found
                found |= new
                todo += new
            known = tuple(sorted(each for each in found if self.steps[each] or each == self.final))
            self._reached[state, truth] = known
        return known

    def moves(self, state: int, truth: int) -> tuple[int, ...]:
        """The states that are reached with the next time-point, where some letters are true."""
        known = self._moves.get((state, truth))
        if known is None:
            found = {each for step in self.steps[state] for each in self.reached(step, truth)}
            known = self._moves[state, truth] = tuple(sorted(found))
        return known


def automaton_of(regex: Regex, letters: Mapping[Formula, tuple[int, bool]], *, backwards: bool) -> Automaton:
    """The automaton of an expression.

    Parameters
    ----------
    regex : Regex
    letters : mapping of Formula to (int, bool)
        By formula its number, and whether the letter is that it holds, or that it does not.
    backwards : bool
        Whether time-points are read from the last to the first: the automaton of MATCHF, so that in both a bare
        formula is a step and then the question whether it holds there.
    """
    made = Automaton()
    made._state()
    made.final = made._add(_reversed(regex) if backwards else regex, 0, letters)
    return made


def _reversed(regex: Regex) -> Regex:
    match regex:
        case Concatenation(left, right):
            return Concatenation(_reversed(right), _reversed(left))
        case Alternation(left, right):
            return Alternation(_reversed(left), _reversed(right))
        case Star(body):
            return Star(_reversed(body))
    return regex


def unbound(
    automaton: Automaton, names: Sequence[Sequence[str]], every: Sequence[str], leaning: Collection[int] = ()
) -> tuple[str, int] | None:
    """What keeps an expression from being finite: a variable that nothing binds, and the letter that needs it or -1.

    A run binds all variables at the first letter with any: it holds, and has all of them. `names` are those of each
    letter; `leaning` letters are known only where another has bound all variables before.
    """
    todo, seen = [(0, not every)], {(0, not every)}
    while todo:
        state, bound = todo.pop()
        if state == automaton.final and not bound:
            return every[0], -1
        after = [(each, bound) for each in (*automaton.empty[state], *automaton.steps[state])]
        for letter, wanted, end in automaton.tests[state]:
            here = set(names[letter])
            if here and not bound and (here != set(every) or letter in leaning):
                return next((name for name in every if name not in here), every[0]), letter
            after.append((end, bound or (bool(here) and wanted)))
        for each in after:
            if each not in seen:
                seen.add(each)
                todo.append(each)
    return None
