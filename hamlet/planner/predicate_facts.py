"""The predicates of a query in the optimizer's neutral form.

Source: docs/language.md ("Predicates"); `optimizer.condition`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from hamlet.language.conditions import rewritten, walk
from hamlet.language.meaning import AnalysedQuery, Pair
from hamlet.language.printing import to_text
from hamlet.language.query import (
    And,
    AttributeType,
    Between,
    Binary,
    Comparison,
    Condition,
    Duration,
    Expression,
    Literal,
    Membership,
    NullTest,
    Or,
    Reference,
    Shift,
    Unary,
)
from optimizer import condition as neutral

TypeOf = Callable[[str, str], AttributeType | None]  # (variable, attribute)


def local_predicates(query: AnalysedQuery, type_of: TypeOf) -> dict[str, neutral.Condition]:
    """What each variable's events must satisfy; variables without a local predicate are left out.

    Parameters
    ----------
    query : AnalysedQuery
    type_of : callable
        Type of a variable's attribute, None where it is not known.
    """
    return {variable: _all(conditions, type_of) for variable, conditions in query.local.items() if conditions}


def adjacent_predicates(query: AnalysedQuery, type_of: TypeOf) -> dict[Pair, neutral.Condition]:
    """What neighbours must satisfy, by pair of variables; pairs without an adjacent predicate are left out.

    Parameters are those of `local_predicates`.
    """
    return {pair: _all(conditions, type_of) for pair, conditions in query.adjacent.items() if conditions}


def _all(conditions: Iterable[Condition], type_of: TypeOf) -> neutral.Condition:
    return neutral.normal(neutral.AllOf(tuple(_condition(each, type_of) for each in conditions)))


def _condition(condition: Condition, type_of: TypeOf) -> neutral.Condition:
    match condition:
        case And(operands=operands):
            return neutral.AllOf(tuple(_condition(each, type_of) for each in operands))
        case Or(operands=operands):
            return neutral.AnyOf(tuple(_condition(each, type_of) for each in operands))
        case Comparison() | Membership() | Between() | NullTest() if _speaks_of_time(condition, type_of):
            # Compared as a whole: what the parts say of each other is not known to the optimizer.
            return neutral.IsNull(neutral.Field(to_text(rewritten(condition, _anonymous)), None, False), False)
        case Comparison(operator=operator, left=left, right=right):
            return neutral.Compare(operator, _value(left, type_of), _value(right, type_of))
        case NullTest(operand=operand, negated=negated):
            return neutral.IsNull(_value(operand, type_of), negated)
        case Membership(operand=operand, choices=choices, negated=negated):
            tested = _value(operand, type_of)
            operator = "<>" if negated else "="
            found = tuple(neutral.Compare(operator, tested, _value(choice, type_of)) for choice in choices)
            return neutral.AllOf(found) if negated else neutral.AnyOf(found)
        case Between(operand=operand, low=low, high=high, negated=negated):
            tested = _value(operand, type_of)
            above = neutral.Compare("<" if negated else ">=", tested, _value(low, type_of))
            below = neutral.Compare(">" if negated else "<=", tested, _value(high, type_of))
            return neutral.AnyOf((above, below)) if negated else neutral.AllOf((above, below))
    raise TypeError(f"analysis leaves no {type(condition).__name__} in a predicate")


def _speaks_of_time(condition: Condition, type_of: TypeOf) -> bool:
    """Whether a condition has durations, or times beside anything else than times."""
    inner = list(walk(condition))
    durations = any(isinstance(each, Literal) and isinstance(each.value, Duration) for each in inner)
    texts = any(isinstance(each, Literal) and isinstance(each.value, str) for each in inner)
    named = [each for each in inner if isinstance(each, Reference)]
    times = [
        type_of(each.variable, each.attribute) in (AttributeType.TIMESTAMP, AttributeType.DURATION) for each in named
    ]
    computed = any(isinstance(each, (Binary, Unary)) for each in inner)
    return durations or ((texts or computed or not all(times)) and any(times))


def _anonymous(reference: Reference) -> Reference:
    return replace(reference, variable="event")


def _value(expression: Expression, type_of: TypeOf) -> neutral.Value:
    match expression:
        case Literal(value=value):
            assert not isinstance(value, Duration), "compared as a whole"
            return neutral.constant(value)
        case Reference(variable=variable, attribute=attribute, shift=shift):
            kind = type_of(variable, attribute)
            return neutral.Field(attribute, None if kind is None else kind.value, shift is Shift.NEXT)
        case Unary(operator=operator, operand=operand):
            inner = _value(operand, type_of)
            return neutral.Negative(inner) if operator == "-" else neutral.Negative(neutral.Negative(inner))
        case Binary(operator=operator, left=left, right=right):
            return neutral.Arithmetic(operator, _value(left, type_of), _value(right, type_of))
    raise TypeError(f"analysis leaves no {type(expression).__name__} in a predicate")
