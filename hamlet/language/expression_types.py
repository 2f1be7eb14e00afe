"""The types of expressions, as far as they are known: of attributes, aggregates and what is computed of them."""

from __future__ import annotations

from functools import partial

from hamlet.frontend.units import UNITS_PER_SECOND
from hamlet.language.layering import ROW_COLUMNS
from hamlet.language.meaning import AnalysedQuery
from hamlet.language.query import (
    DISTINCT,
    Aggregate,
    Attribute,
    AttributeType,
    Binary,
    Duration,
    Expression,
    Literal,
    Log2,
    Reference,
    Taken,
    Unary,
)
from hamlet.language.schema import Clock, Schema
from hamlet.language.times import TIMES, Times

INT, DOUBLE = AttributeType.INT, AttributeType.DOUBLE
NUMBERS = (INT, DOUBLE)


def type_of(expression: Expression, query: AnalysedQuery, schema: Schema | None) -> AttributeType | None:
    """The type of an expression's values; None where it is not known before reading.

    Parameters
    ----------
    expression : Expression
        Of a condition of `query`.
    query : AnalysedQuery
        Knows the declared types of its variables.
    schema : Schema or None
        The input. Its column types come before declared ones, which they agree with; an open schema's are not used,
        since they may still widen.
    """
    match expression:
        case Literal(value=value):
            return _literal_type(value, schema)
        case Reference(variable=variable, attribute=attribute):
            return type_of_attribute(variable, attribute, query, schema)
        case Attribute(name=name):
            return _type_of_key(name, query, schema)
        case Taken():
            return _type_of_taken(expression, query, schema)
        case Aggregate():
            return _type_of_aggregate(expression, query, schema)
        case Log2():
            return DOUBLE
        case Unary() | Binary():
            return times_of(query, schema).typed(expression).type
    raise TypeError(f"no expression: {expression!r}")


def type_of_attribute(
    variable: str, attribute: str, query: AnalysedQuery, schema: Schema | None
) -> AttributeType | None:
    """The type of an attribute of a variable's events; None where it is not known before reading."""
    upstream = query.upstream.get(query.types.get(variable, ""))
    if upstream is not None:
        return row_types(upstream, schema).get(attribute)
    if schema is not None:
        if attribute == schema.clock.column:
            return _type_of_times(schema.clock)
        if attribute == schema.type_column:
            return AttributeType.STRING
        known = schema.type_of(attribute) if schema.closed else None
        if known is not None:
            return known
    return query.declared.get(variable, {}).get(attribute)


def _type_of_times(clock: Clock) -> AttributeType:
    """What a time is where it is a value: an instant, a number of units, or of seconds."""
    return AttributeType.TIMESTAMP if clock.is_timestamp else DOUBLE if clock.is_fraction else INT


def row_types(query: AnalysedQuery, schema: Schema | None = None) -> dict[str, AttributeType | None]:
    """The columns of a query's rows with their types, as other queries see them; None where a type is not known yet."""
    time = None if schema is None else _type_of_times(schema.clock)
    found: dict[str, AttributeType | None] = {name: kind or time for name, kind in ROW_COLUMNS.items()}
    found.update((item.column, type_of(item.expression, query, schema)) for item in query.query.items)
    return found


def _type_of_key(name: str, query: AnalysedQuery, schema: Schema | None) -> AttributeType | None:
    """The type of an attribute of the whole trend."""
    for variable in query.types:
        known = type_of_attribute(variable, name, query, schema)
        if known is not None:
            return known
    return schema.type_of(name) if schema is not None else None


def _type_of_aggregate(aggregate: Aggregate, query: AnalysedQuery, schema: Schema | None) -> AttributeType | None:
    if aggregate.function in ("COUNT", *DISTINCT):
        return INT
    if aggregate.variable is None or aggregate.variable not in query.types or aggregate.attribute is None:
        return None
    known = type_of_attribute(aggregate.variable, aggregate.attribute, query, schema)
    known = schema.type_of(aggregate.attribute) if known is None and schema is not None else known
    return _as_aggregated(aggregate, known)


def _type_of_taken(taken: Taken, query: AnalysedQuery, schema: Schema | None) -> AttributeType | None:
    if taken.attribute is None:
        return INT
    if taken.variable not in query.types:
        return None
    known = type_of_attribute(taken.variable, taken.attribute, query, schema)
    return schema.type_of(taken.attribute) if known is None and schema is not None else known


def times_of(query: AnalysedQuery, schema: Schema | None) -> Times:
    """What is known of times in a query before its events are read."""
    return Times(partial(_leaf, query, schema), None if schema is None else schema.clock)


def _leaf(
    query: AnalysedQuery, schema: Schema | None, node: Expression
) -> tuple[AttributeType | None, int, str | None]:
    kind = type_of(node, query, schema)
    return kind, *unit_of(node, kind, query, schema)


def compiled_type(query: AnalysedQuery, schema: Schema, variable: str, attribute: str) -> AttributeType | None:
    """What an attribute is compiled as: its type as declared for the variable's event type, else the column's."""
    return query.declared.get(variable, {}).get(attribute) or schema.type_of(attribute)


def times_as_compiled(query: AnalysedQuery, schema: Schema) -> Times:
    """What is known of times when a query runs: also what the events have shown so far."""
    return Times(partial(_leaf_as_compiled, query, schema), schema.clock)


def _leaf_as_compiled(
    query: AnalysedQuery, schema: Schema, node: Expression
) -> tuple[AttributeType | None, int, str | None]:
    kind = None
    one = node if isinstance(node, (Reference, Taken, Aggregate)) else None
    if one is not None and one.variable is not None and one.attribute is not None:
        kind = compiled_type(query, schema, one.variable, one.attribute)
        if isinstance(node, Aggregate):
            kind = _as_aggregated(node, kind or DOUBLE if node.function == "AVG" else kind)  # so far it is of numbers
    elif isinstance(node, Attribute):
        kind = schema.type_of(node.name)
    elif isinstance(node, (Taken, Aggregate)):
        kind = INT
    return kind, *unit_of(node, kind, query, schema)


def unit_of(
    node: Expression, kind: AttributeType | None, query: AnalysedQuery, schema: Schema | None
) -> tuple[int, str | None]:
    """Ticks per second and time zone of an attribute or an aggregate that is a time; 0 of others."""
    if kind not in TIMES:
        return 0, None
    name = node.name if isinstance(node, Attribute) else getattr(node, "attribute", None)
    variable = getattr(node, "variable", None)
    upstream = query.upstream.get(query.types.get(variable or "", ""))
    if upstream is not None and schema is not None and name not in schema.units:
        item = next((item for item in upstream.query.items if item.column == name), None)
        if item is not None:
            found = times_of(upstream, schema).typed(item.expression)
            return found.per_second, found.zone
        return schema.clock.ticks_per_second, getattr(schema.clock.type, "tz", None)
    if schema is None or name is None:
        return 0, None
    unit, _ = schema.units.get(name, ("us", None))  # declared, and no value of it seen yet
    return UNITS_PER_SECOND[unit], schema.zone_of(name)


def _as_aggregated(aggregate: Aggregate, kind: AttributeType | None) -> AttributeType | None:
    """The type of an aggregate over an attribute of a type."""
    if aggregate.function in ("COUNT", *DISTINCT):
        return INT
    if aggregate.function == "AVG":
        return kind if kind is None or kind in TIMES else DOUBLE
    return kind


def _literal_type(value: int | float | str | bool | Duration, schema: Schema | None) -> AttributeType | None:
    if isinstance(value, bool):
        return AttributeType.BOOLEAN
    if isinstance(value, str):
        return AttributeType.STRING
    if isinstance(value, Duration):
        return AttributeType.DURATION if schema is not None and schema.clock.is_timestamp else None
    return INT if isinstance(value, int) else DOUBLE


def kind_of(known: AttributeType | None) -> str | None:
    """Types of one kind can be compared."""
    return "number" if known in NUMBERS else known.value if known is not None else None
