"""What conjunctions are built of: operators with named columns, and tests and terms over columns."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hamlet.errors import Span
from hamlet.policies.analysis.rewriting import negation
from hamlet.policies.operators.node import Node
from hamlet.policies.syntax import formula as mfotl

TESTS = (mfotl.Comparison, mfotl.Substring, mfotl.Matches)


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


def divides(formula: mfotl.Formula) -> bool:
    """Whether a formula divides, so that the tests before it must come first."""
    match formula:
        case mfotl.Comparison(_, left, right):
            return any(_termdivides(each) for each in (left, right))
        case mfotl.Temporal() | mfotl.Since() | mfotl.Until() | mfotl.Aggregation() | mfotl.Predicate():
            return False
    return any(divides(child) for child in mfotl.children(formula))


def _termdivides(term: mfotl.Term) -> bool:
    match term:
        case mfotl.Arithmetic(operator, left, right):
            return operator in ("/", "MOD") or _termdivides(left) or _termdivides(right)
        case mfotl.Negative(inner) | mfotl.Call(_, inner):
            return _termdivides(inner)
    return False


def pushed(formula: mfotl.Formula) -> mfotl.Formula:
    """The negation, pushed inwards as far as AND and OR go, and below ONCE and EVENTUALLY of a negation."""
    found = negation(formula)
    if isinstance(found, mfotl.Not) and isinstance(found.body, mfotl.And):
        return mfotl.Or(pushed(found.body.left), pushed(found.body.right), span=found.span)
    if isinstance(found, mfotl.Not) and (dual := opposite(found.body)) is not None:
        return dual
    if isinstance(found, mfotl.And):
        return mfotl.And(found.left, found.right, span=found.span)
    return found


def opposite(formula: mfotl.Formula) -> mfotl.Temporal | None:
    """What ONCE or EVENTUALLY of a negation is the negation of: HISTORICALLY or ALWAYS, finite if its body is."""
    if not isinstance(formula, mfotl.Temporal) or formula.operator not in ("ONCE", "EVENTUALLY"):
        return None
    body = pushed(formula.body)
    if isinstance(body, mfotl.Not):
        return None
    every = "HISTORICALLY" if formula.operator == "ONCE" else "ALWAYS"
    return mfotl.Temporal(every, formula.interval, body, span=formula.span)


def test_of(test: mfotl.Formula) -> tuple[mfotl.Term, mfotl.Term | str, str]:
    """The sides of a test, and its operator."""
    match test:
        case mfotl.Comparison(operator, left, right):
            return left, right, operator
        case mfotl.Substring(left, right):
            return left, right, "SUBSTRING"
        case mfotl.Matches(term, pattern):
            return term, pattern, "MATCHES"
    raise TypeError(f"a {type(test).__name__} is no test")


def placed(term: mfotl.Term, names: tuple[str, ...]) -> mfotl.Term:
    """The term with the places of columns in place of variables."""
    match term:
        case mfotl.Variable(name):
            return mfotl.Variable(str(names.index(name)))
        case mfotl.Negative(inner):
            return mfotl.Negative(placed(inner, names))
        case mfotl.Call(function, argument):
            return mfotl.Call(function, placed(argument, names))
        case mfotl.Arithmetic(operator, left, right):
            return mfotl.Arithmetic(operator, placed(left, names), placed(right, names))
    return replace(term)
