"""Random WHERE conditions on one variable and on two neighbours, as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

COMPARISONS = ["<", ">", "<=", ">=", "=", "!="]


class Decisions(Protocol):
    """What conditions are drawn with."""

    def pick(self, choices: Sequence[Any]) -> Any: ...

    def percent(self, share: int) -> bool: ...


class Conditions:
    """Draws conditions over the attributes v INT, w DOUBLE, s STRING, the keys k INT and g STRING, and the time.

    Parameters
    ----------
    decisions : Decisions
        Where decisions come from.
    keys : bool
        False where some type may be declared without k or g: v and s are taken instead.
    """

    def __init__(self, decisions: Decisions, *, keys: bool = True) -> None:
        self.k, self.g = ("k", "g") if keys else ("v", "s")
        self.pick = decisions.pick
        self.percent = decisions.percent

    def local(self, variable: str) -> str:
        """A condition on one event."""
        return self._combined(lambda: self._single(variable))

    def adjacent(self, earlier: str, later: str) -> str:
        """A condition on an `earlier` event and a `later` one that directly follows it."""
        if self.percent(30):
            first, second = f"PREV({earlier})", later
        else:
            first, second = earlier, f"NEXT({later})"
        return self._pair(first, second)

    def _single(self, variable: str) -> str:
        x = variable
        comparison = self.pick(COMPARISONS)
        forms = [
            lambda: f"{x}.v {comparison} {self.pick([1, 0, 2, 3, -1, 1.5])}",
            lambda: f"{x}.w {comparison} {self.pick([0, 0.5, 1, -0.25])}",
            lambda: f"{x}.s {self.pick(['=', '!='])} {self.pick(['x', chr(39) + 'y' + chr(39)])}",
            lambda: f"{x}.v % {self.pick([2, 3])} {self.pick(['=', '<>'])} {self.pick([0, 1, -1])}",
            lambda: f"{self._number(x)} {comparison} {self._number(x)}",
            lambda: f"{self._number(x)} / {self._number(x)} {comparison} 1",
            lambda: f"{x}.v {self.pick(['IN', 'NOT IN'])} (1, 2, {self.pick([0, 3, f'{x}.{self.k}'])})",
            lambda: f"{x}.s {self.pick(['IN', 'NOT IN'])} ('x', y)",
            lambda: f"{x}.v {self.pick(['BETWEEN', 'NOT BETWEEN'])} {self.pick([0, 1, -2])} AND {self.pick([2, 4])}",
            lambda: f"{x}.{self.pick(['v', 'w', 's', self.k])} IS {self.pick(['NULL', 'NOT NULL'])}",
            lambda: f"{x}.s {comparison} {x}.{self.g}",
            lambda: f"{x}.time % 2 = {self.pick([0, 1])}",
        ]
        return str(self.pick(forms)())

    def _combined(self, term: Callable[[], str]) -> str:
        shape = self.pick([0, 0, 0, 0, 1, 2, 3, 4])
        if shape == 0:
            return term()
        if shape == 1:
            return f"({term()} OR {term()})"
        if shape == 2:
            return f"NOT ({term()})"
        if shape == 3:
            return f"NOT ({term()} AND {term()})"
        return f"({term()} AND {term()} OR {term()})"

    def _number(self, event: str) -> str:
        """An expression over one event: ``X.v``, ``NEXT(X).v + 1`` and the like."""
        attribute = self.pick(["v", "v", "v", "w", self.k])
        plain = f"{event}.{attribute}"
        return str(
            self.pick([plain, plain, plain, f"{plain} + 1", f"-{plain}", f"2 * {plain}", f"({plain} - {event}.w)"])
        )

    def _pair(self, first: str, second: str) -> str:
        comparison = self.pick(COMPARISONS)
        forms = [
            lambda: f"{first}.v {comparison} {second}.v",
            lambda: f"{second}.v {comparison} {first}.v",
            lambda: f"{first}.w {comparison} {second}.w",
            lambda: f"{first}.s {self.pick(['=', '!=', '<'])} {second}.s",
            lambda: f"{first}.{self.k} {self.pick(['=', '!='])} {second}.{self.k}",
            lambda: f"{self._number(first)} {comparison} {self._number(second)}",
            lambda: f"{first}.v + {second}.v {comparison} {self.pick([0, 2, 5])}",
            lambda: f"{second}.time - {first}.time <= {self.pick([1, 2, 3])}",
            lambda: f"({first}.v {comparison} {second}.v OR {first}.s = 'x')",
            lambda: f"({first}.v {comparison} {second}.v OR {second}.v > 2)",
            lambda: f"NOT ({first}.v {comparison} {second}.v)",
            lambda: f"{first}.v BETWEEN {second}.v - 1 AND {second}.v + 1",
            lambda: f"{first}.v IN ({second}.v, {second}.{self.k})",
        ]
        return str(self.pick(forms)())
