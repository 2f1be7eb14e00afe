"""What conjunctions are built of: operators with named columns, and tests and terms over columns."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hamlet.errors import Span
from hamlet.policies.analysis.rewriting import negation
from hamlet.policies.operators.node import Node
from hamlet.policies.syntax.formula import (
    Aggregation,
    And,
    Arithmetic,
    Call,
    Comparison,
    Formula,
    Matches,
    Negative,
    Not,
    Or,
    Predicate,
    Since,
    Substring,
    Temporal,
    Term,
    Until,
    Variable,
    children,
)

TESTS = (Comparison, Substring, Matches)


@dataclass(frozen=True, slots=True)
class Built:
    """An operator, and the variables of its columns."""

    node: Node
    names: tuple[str, ...]

    def places(self, names: tuple[str, ...]) -> tuple[int, ...]:
        """The columns of some variables."""
        return tuple(self.names.index(name) for name in names)


class UnsafeError(Exception):
    """The formula has no finite relation."""

    def __init__(self, message: str, span: Span, hint: str | None) -> None:
        super().__init__(message)
        self.message, self.span, self.hint = message, span, hint


def divides(formula: Formula) -> bool:
    """Whether a formula divides, so that the tests before it must come first."""
    match formula:
        case Comparison(_, left, right):
            return any(_termdivides(each) for each in (left, right))
        case Temporal() | Since() | Until() | Aggregation() | Predicate():
            return False
    return any(divides(child) for child in children(formula))


def _termdivides(term: Term) -> bool:
    match term:
        case Arithmetic(operator, left, right):
            return operator in ("/", "MOD") or _termdivides(left) or _termdivides(right)
        case Negative(inner) | Call(_, inner):
            return _termdivides(inner)
    return False


def pushed(formula: Formula) -> Formula:
    """The negation, pushed inwards as far as AND and OR go, and below ONCE and EVENTUALLY of a negation."""
    found = negation(formula)
    if isinstance(found, Not) and isinstance(found.body, And):
        return Or(pushed(found.body.left), pushed(found.body.right), span=found.span)
    if isinstance(found, Not) and (dual := opposite(found.body)) is not None:
        return dual
    if isinstance(found, And):
        return And(found.left, found.right, span=found.span)
    return found


def opposite(formula: Formula) -> Temporal | None:
    """What ONCE or EVENTUALLY of a negation is the negation of: HISTORICALLY or ALWAYS, finite if its body is."""
    if not isinstance(formula, Temporal) or formula.operator not in ("ONCE", "EVENTUALLY"):
        return None
    body = pushed(formula.body)
    if isinstance(body, Not):
        return None
    every = "HISTORICALLY" if formula.operator == "ONCE" else "ALWAYS"
    return Temporal(every, formula.interval, body, span=formula.span)


def test_of(test: Formula) -> tuple[Term, Term | str, str]:
    """The sides of a test, and its operator."""
    match test:
        case Comparison(operator, left, right):
            return left, right, operator
        case Substring(left, right):
            return left, right, "SUBSTRING"
        case Matches(term, pattern):
            return term, pattern, "MATCHES"
    raise TypeError(f"a {type(test).__name__} is no test")


def placed(term: Term, names: tuple[str, ...]) -> Term:
    """The term with the places of columns in place of variables."""
    match term:
        case Variable(name):
            return Variable(str(names.index(name)))
        case Negative(inner):
            return Negative(placed(inner, names))
        case Call(function, argument):
            return Call(function, placed(argument, names))
        case Arithmetic(operator, left, right):
            return Arithmetic(operator, placed(left, names), placed(right, names))
    return replace(term)
