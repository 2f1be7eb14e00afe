"""Random result expressions and conditions on results, as text."""

from __future__ import annotations

from collections.abc import Sequence

from tests.conditions import COMPARISONS, Decisions


class Expressions:
    """Draws expressions over aggregates of v and of the grouping.

    Parameters
    ----------
    decisions : Decisions
        Where decisions come from.
    variables : sequence of str
        Of the pattern, outside NOT.
    grouping : sequence of str
        What GROUP-BY names; k is an INT, g a STRING.
    matched : bool
        Whether aggregates over EVENTS occur.
    """

    def __init__(
        self, decisions: Decisions, variables: Sequence[str], grouping: Sequence[str], matched: bool = False
    ) -> None:
        self.matched = matched
        self.pick, self.percent = decisions.pick, decisions.percent
        self.variables = variables
        self.grouping = grouping

    def count(self) -> str:
        """A whole number that is never NULL."""
        forms = ["COUNT(*)", f"COUNT({self.pick(self.variables)})", "COUNT(*)"]
        if self.matched:
            forms.append(f"COUNT(EVENTS {self.pick(self.variables)})")
        return str(self.pick(forms))

    def operand(self) -> str:
        """A number, or NULL."""
        x = self.pick(self.variables)
        forms = [self.count(), self.count(), f"SUM({x}.v)", f"MAX({x}.v)", "LOG2(COUNT(*))", "2", "-3", "0.5"]
        if self.matched:
            forms.append(f"SUM(EVENTS {x}.v)")
        forms += [each for each in self.grouping if each == "k" or each.endswith(".v)")]
        return str(self.pick(forms))

    def value(self) -> str:
        """An aggregate, or something that is calculated."""
        forms = [
            self.count,
            lambda: f"{self.operand()} / {self.operand()}",
            lambda: f"{self.operand()} {self.pick('+-*')} {self.operand()}",
            lambda: f"{self.operand()} * ({self.operand()} - {self.operand()})",
            lambda: f"({self.count()} - 3) % {self.pick([2, 3, 0, self.count()])}",
            lambda: f"-({self.operand()})",
            lambda: f"LOG2({self.operand()} + 1)",
        ]
        return str(self.pick(forms)())

    def item(self, number: int) -> str:
        """A column."""
        text = f"{self.count()} / {self.operand()}" if self.percent(30) else f"0 + {self.value()}"
        return text + f" AS expr_n{number}" * self.percent(30)

    def condition(self) -> str:
        """A condition on rows, mostly true of some."""
        shape = self.pick([0, 0, 0, 1, 2, 3])
        if shape == 0:
            return self.term()
        if shape == 1:
            return f"({self.term()} OR {self.term()})"
        if shape == 2:
            return f"NOT ({self.term()} AND {self.term()})"
        return f"{self.term()} AND {self.term()}"

    def term(self) -> str:
        comparison = self.pick(COMPARISONS)
        forms = [
            lambda: f"{self.count()} {comparison} {self.pick([1, 2, 3, 5])}",
            lambda: f"{self.value()} {comparison} {self.operand()}",
            lambda: f"{self.value()} IS {self.pick(['NULL', 'NOT NULL'])}",
            lambda: f"{self.count()} {self.pick(['IN', 'NOT IN'])} (1, 2, {self.operand()})",
            lambda: f"{self.value()} {self.pick(['BETWEEN', 'NOT BETWEEN'])} 1 AND {self.pick([3, self.operand()])}",
        ]
        if "g" in self.grouping:
            forms.append(lambda: f"g {self.pick(['=', '<>', '<='])} 'p'")
        return str(self.pick(forms)())
