"""Which events a condition or a workload has a use for, asked of the bounds of columns instead of events.

A part of an input is skipped where the bounds prove that no event of it fulfils the condition, or can be bound to a
variable of any query. What cannot be proved is read: conditions other than comparisons of a column with a constant,
and arithmetic, which may be an error that names its event.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from hamlet.frontend.units import UNITS_PER_SECOND
from hamlet.input.events import EventSource
from hamlet.input.statistics import Bounds, BoundsOf
from hamlet.language.conditions import Part, references, walk
from hamlet.language.expression_types import type_of_attribute
from hamlet.language.meaning import AnalysedQuery, Analysis
from hamlet.language.moments import seconds_of
from hamlet.language.query import (
    And,
    AttributeType,
    Between,
    Binary,
    Comparison,
    Condition,
    Expression,
    Literal,
    Membership,
    NullTest,
    Or,
    Reference,
    Semantics,
    Shift,
    Unary,
)
from hamlet.language.schema import Schema

if TYPE_CHECKING:
    from hamlet.planner.workload import Workload

BY_WHERE = "by --where"
OF_NO_USE = "of events that no query can use"
_MIRRORED = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
_HOLDS: dict[str, Callable[[Any, Any, Any], bool]] = {  # whether some value between two bounds compares so
    "=": lambda least, most, value: least <= value <= most,
    "<>": lambda least, most, value: not least == value == most,
    "<": lambda least, _, value: least < value,
    "<=": lambda least, _, value: least <= value,
    ">": lambda _, most, value: most > value,
    ">=": lambda _, most, value: most >= value,
}


class Conditions:
    """Conditions on single events, all of which must hold.

    Parameters
    ----------
    conditions : sequence of Condition
        Without `Not`.
    schema : Schema
        Of the input.
    kind_of : callable
        As what type a reference is read.

    Attributes
    ----------
    all : sequence of Condition
        As given.
    may_fail : bool
        Whether they may be an error for some event: INT arithmetic has 64 bits, and so have times of unlike units.
    """

    def __init__(
        self,
        conditions: Sequence[Condition],
        schema: Schema,
        kind_of: Callable[[Reference], AttributeType | None],
    ) -> None:
        self.all = conditions
        self._schema = schema
        self._kind_of = kind_of
        self.may_fail = any(self._may_overflow(part) for each in conditions for part in walk(each))

    def _may_overflow(self, part: Part) -> bool:
        kinds = [self._kind_of(each) for each in references(part)]
        if isinstance(part, (Binary, Unary)):
            return any(kind is not AttributeType.DOUBLE for kind in kinds)
        return (
            isinstance(part, (Comparison, Between, Membership)) and AttributeType.TIMESTAMP in kinds and len(kinds) > 1
        )

    def possible(self, bounds: BoundsOf) -> bool:
        """Whether an event with values between these bounds may fulfil all of them, or be an error."""
        return self.may_fail or all(self._holds(each, bounds) for each in self.all)

    def _holds(self, condition: Condition, bounds: BoundsOf) -> bool:
        match condition:
            case And(operands=operands):
                return all(self._holds(each, bounds) for each in operands)
            case Or(operands=operands):
                return any(self._holds(each, bounds) for each in operands)
            case Comparison(operator=operator, left=Reference() as left, right=right):
                return self._compares(operator, left, right, bounds)
            case Comparison(operator=operator, left=left, right=Reference() as right):
                return self._compares(_MIRRORED[operator], right, left, bounds)
            case Membership(operand=Reference() as operand, choices=choices, negated=negated):
                found = (self._compares("<>" if negated else "=", operand, each, bounds) for each in choices)
                return all(found) if negated else any(found)
            case Between(operand=Reference() as operand, low=low, high=high, negated=negated):
                below, above = ("<", ">") if negated else (">=", "<=")
                sides = (self._compares(below, operand, low, bounds), self._compares(above, operand, high, bounds))
                return any(sides) if negated else all(sides)
            case NullTest(operand=Reference() as operand, negated=negated):
                return self._is_null(operand, bounds, negated)
        return True

    def _is_null(self, reference: Reference, bounds: BoundsOf, negated: bool) -> bool:
        found = bounds(reference.attribute)
        if found.nulls is None or reference.shift is not Shift.NONE:
            return True
        if negated:
            return found.nulls < found.rows
        return found.nulls > 0 or not _counts_nulls(self._schema.type_of(reference.attribute))

    def _compares(self, operator: str, reference: Reference, other: Expression, bounds: BoundsOf) -> bool:
        """Whether some value of a column may compare so with a constant."""
        value = _constant(other)
        if value is None or reference.shift is not Shift.NONE:
            return True
        found = bounds(reference.attribute)
        if found.nulls is not None and found.nulls == found.rows:
            return False  # a comparison with NULL is unknown
        if self._kind_of(reference) is not self._schema.type_of(reference.attribute):
            return True
        constant = self._comparable(value, reference.attribute)
        return constant is None or not found.known or _HOLDS[operator](found.least, found.most, constant)

    def _comparable(self, value: int | float | str | bool, name: str) -> int | float | str | bool | Fraction | None:
        """A constant as the bounds of a column are: ticks for a time; None where the two cannot be compared."""
        kind = self._schema.type_of(name)
        if kind is AttributeType.TIMESTAMP and isinstance(value, str) and name in self._schema.units:
            seconds = seconds_of(value, self._schema.zone_of(name))
            return None if seconds is None else seconds * UNITS_PER_SECOND[self._schema.units[name][0]]
        if isinstance(value, bool):
            return value if kind is AttributeType.BOOLEAN else None
        if isinstance(value, str):
            return value if kind is AttributeType.STRING else None
        return value if kind in (AttributeType.INT, AttributeType.DOUBLE) else None


def _counts_nulls(kind: AttributeType | None) -> bool:
    """Whether statistics count all NULL values of a type: those of a DOUBLE do not count NaN."""
    return kind not in (AttributeType.DOUBLE, None)


def _constant(expression: Expression) -> int | float | str | bool | None:
    """The value of a literal, perhaps with a sign; None of anything else."""
    if isinstance(expression, Literal) and isinstance(expression.value, (int, float, str)):
        return expression.value
    if isinstance(expression, Unary) and isinstance(expression.operand, Literal):
        value = expression.operand.value
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return -value if expression.operator == "-" else value
    return None


class Needs:
    """Which events the queries of a workload can have a use for.

    Parameters
    ----------
    analysis : Analysis
    schema : Schema
        Of the input.

    Attributes
    ----------
    all : bool
        Whether every event may count, so that nothing can be skipped.
    """

    def __init__(self, analysis: Analysis, schema: Schema) -> None:
        self._schema = schema
        self._roles: dict[str, list[Conditions]] = {}  # of each type, the conditions of the variables bound to it
        self._keys: dict[str, None] = {}
        self.all = False
        for query in analysis.queries:
            self._add(query)

    def _add(self, query: AnalysedQuery) -> None:
        if query.query.semantics is Semantics.CONTIGUOUS:
            self.all = True  # any event between two others ends a trend
        self._keys.update(dict.fromkeys(query.partition))
        for variable, kind in query.types.items():
            # The gaps of a session are those between all events of its types; an event that is called like a query is
            # an error.
            whole = query.query.session or kind in query.upstream
            local = () if whole else query.local.get(variable, ())
            conditions = Conditions(
                local, self._schema, lambda each: type_of_attribute(each.variable, each.attribute, query, self._schema)
            )
            self.all = self.all or conditions.may_fail
            self._roles.setdefault(kind, []).append(conditions)

    def useless(self, bounds: BoundsOf) -> bool:
        """Whether no event with values between these bounds can matter to any query.

        Where a type occurs, and only its conditions are not fulfilled, events without a key must not be among them:
        they are counted for a note.
        """
        if self.all:
            return False
        types = bounds(self._schema.type_column)
        for kind, roles in self._roles.items():
            if not _may_be(types, kind):
                continue
            if any(each.possible(bounds) for each in roles):
                return False
            if any(not self._has_values(name, bounds) for name in self._keys):
                return False
        return True

    def _has_values(self, name: str, bounds: BoundsOf) -> bool:
        return _counts_nulls(self._schema.type_of(name)) and bounds(name).nulls == 0


def _may_be(types: Bounds, kind: str) -> bool:
    """Whether an event may be of a type."""
    if types.nulls is not None and types.nulls == types.rows:
        return False
    return not types.known or not isinstance(types.least, str) or types.least <= kind <= types.most


def leave_out_useless(workload: Workload, source: EventSource) -> int:
    """Have an input leave out row groups of events that no query can use; gives how many events these have."""
    if not source.row_groups.all:
        return 0
    needs = Needs(workload.analysis, source.schema)
    if needs.all:
        return 0
    read = [name for name in workload.attributes if name in source.schema.columns]
    return source.leave_out(needs.useless, OF_NO_USE, read)
