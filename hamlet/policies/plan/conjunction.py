"""Builds conjunctions: what binds comes first, tests and negations as soon as their variables are bound."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hamlet.errors import Span
from hamlet.policies.analysis.rewriting import conjunction, shown, variables_of
from hamlet.policies.plan.planned_operands import TESTS, Built, UnsafeError, pushed
from hamlet.policies.syntax import formula as mfotl

if TYPE_CHECKING:
    from hamlet.policies.plan.planning import Planner


class Conjunction:
    """Builds an AND, part by part."""

    def __init__(self, planner: Planner, parts: list[mfotl.Formula], span: Span) -> None:
        self._planner = planner
        self._parts = list(dict.fromkeys(parts))
        self._variables = {id(part): frozenset(variables_of(part)) for part in parts}
        self._span = span
        self._done: list[mfotl.Formula] = []
        self._built: Built | None = None

    def built(self) -> Built:
        """The operator of the whole.

        Raises
        ------
        UnsafeError
            If a variable stays unbound.
        """
        waiting = list(self._parts)
        while waiting:
            place = self._next(waiting)
            if place is None:
                raise self._complaint(waiting)
            self._done.append(waiting.pop(place))
        assert self._built is not None
        return self._built

    def _next(self, waiting: list[mfotl.Formula]) -> int | None:
        """Take in the part that fits best; its place among those that wait."""
        ways = (self._test, self._negation, self._binder, self._equation, self._constant, self._inside)
        for way in ways:
            for place in self._order(waiting) if way == self._binder else range(len(waiting)):
                if way(waiting[place]):
                    return place
        return None

    @property
    def _names(self) -> set[str]:
        return set(self._built.names) if self._built is not None else set()

    def _order(self, waiting: list[mfotl.Formula]) -> Iterator[int]:
        """First the parts that share a variable with what is bound."""
        names = self._names
        alone = []
        for place, part in enumerate(waiting):
            if names.isdisjoint(self._variables[id(part)]):
                alone.append(place)
            else:
                yield place
        yield from alone

    def _base(self) -> Built:
        return self._built if self._built is not None else self._planner.truth()

    def _test(self, part: mfotl.Formula) -> bool:
        test = part.body if isinstance(part, mfotl.Not) else part
        if not isinstance(test, TESTS) or not set(variables_of(test)) <= self._names:
            return False
        self._built = self._planner.filtered(self._base(), test, part is not test)
        return True

    def _negation(self, part: mfotl.Formula) -> bool:
        if not isinstance(part, mfotl.Not) or isinstance(part.body, TESTS):
            return False
        if not set(variables_of(part.body)) <= self._names or (self._built is None and variables_of(part)):
            return False
        built = self._planner.attempt(part.body)
        if built is None:
            return False
        self._built = self._planner.without(self._base(), built)
        return True

    def _binder(self, part: mfotl.Formula) -> bool:
        if isinstance(
            part, mfotl.Not | mfotl.And | mfotl.Comparison | mfotl.Substring | mfotl.Matches
        ) and not _is_unlike(part):
            return False
        built = self._planner.attempt(part)
        if built is None:
            return False
        self._built = built if self._built is None else self._planner.joined(self._built, built)
        return True

    def _equation(self, part: mfotl.Formula) -> bool:
        if not isinstance(part, mfotl.Comparison) or part.operator != "=":
            return False
        for one, two in ((part.left, part.right), (part.right, part.left)):
            if isinstance(one, mfotl.Variable) and one.name not in self._names:
                needed = set(mfotl.term_variables(two))
                if needed <= self._names and (needed or self._built is not None):
                    self._built = self._planner.extended(self._base(), one.name, two)
                    return True
        return False

    def _constant(self, part: mfotl.Formula) -> bool:
        """``x = 5`` where nothing else is bound; ``NOT (x = x)``, which nothing fulfils."""
        if (
            isinstance(part, mfotl.Not)
            and isinstance(part.body, mfotl.Comparison)
            and part.body.left == part.body.right
        ):
            if isinstance(part.body.left, mfotl.Variable) and part.body.operator in ("=", "<=", ">="):
                empty = self._planner.never(variables_of(part))
                self._built = empty if self._built is None else self._planner.joined(self._built, empty)
                return True
            return False
        if not isinstance(part, mfotl.Comparison) or part.operator != "=" or self._built is not None:
            return False
        for one, two in ((part.left, part.right), (part.right, part.left)):
            if isinstance(one, mfotl.Variable) and not set(mfotl.term_variables(two)):
                self._built = self._planner.extended(self._planner.truth(), one.name, two)
                return True
        return False

    def _inside(self, part: mfotl.Formula) -> bool:
        """Move what is bound into a part that is not finite alone."""
        if self._built is None:
            if isinstance(part, mfotl.Not) and isinstance(part.body, mfotl.And) and not self._done:
                built = self._planner.attempt(pushed(part.body))
                if built is not None:
                    self._built = built
                    return True
            return False
        if id(part) in self._planner.sealed:
            return False
        if set(variables_of(part)) <= self._names:
            built = self._planner.satisfying(self._built, part, conjunction(self._done))
            if built is not None:
                self._built = built
                return True
        for made in self._planner.guarded(part, conjunction(self._done)):
            built = self._planner.attempt(made)
            if built is not None:
                beside = isinstance(made, mfotl.Temporal | mfotl.Since | mfotl.Until | mfotl.Aggregation)
                self._built = self._planner.joined(self._built, built) if beside else built
                return True
        return False

    def _complaint(self, waiting: list[mfotl.Formula]) -> UnsafeError:
        """What to say about the parts that could not be taken in."""
        for part in waiting:
            unbound = [name for name in variables_of(part) if name not in self._names]
            inner = part.body if isinstance(part, mfotl.Not) else part
            if isinstance(inner, TESTS) and unbound:
                name = shown(unbound[0])
                return UnsafeError(
                    f"the variable '{name}' is not bound: the comparison holds for infinitely many values",
                    part.span,
                    _one_name(unbound) or f"put a predicate that binds '{name}' beside it: p({name}) AND ...",
                )
        for part in waiting:
            inner = part.body if isinstance(part, mfotl.Not) else part
            try:
                self._planner.build(inner)
            except UnsafeError as error:
                return error
        part = waiting[0]
        unbound = [name for name in variables_of(part) if name not in self._names]
        name = shown(unbound[0]) if unbound else "x"
        return UnsafeError(
            f"the variable '{name}' is not bound: the negation holds for infinitely many values",
            part.span,
            f"put what binds '{name}' beside it: p({name}) AND NOT ...",
        )


def _one_name(unbound: list[str]) -> str | None:
    """A hint for ``x/3`` and ``x-1``, which are names as in MonPoly."""
    for name in map(shown, unbound):
        spaced = re.sub(r"(?<=\w)([-/])(?=\w)", r" \1 ", name)
        if spaced != name:
            return f"'{name}' is one name; with blanks it is arithmetic: {spaced}"
    return None


def _is_unlike(part: mfotl.Formula) -> bool:
    return isinstance(part, mfotl.Not) and isinstance(part.body, mfotl.Equiv)
