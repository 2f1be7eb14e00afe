"""The types of expressions, as far as they are known: of attributes, aggregates and what is computed of them."""

from __future__ import annotations

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
from hamlet.language.schema import Schema

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
            return _literal_type(value)
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
        case Unary(operand=operand):
            known = type_of(operand, query, schema)
            return known if known in NUMBERS else None
        case Binary(operator=operator, left=left, right=right):
            types = (type_of(left, query, schema), type_of(right, query, schema))
            if operator == "/" or DOUBLE in types:
                return DOUBLE
            return INT if types == (INT, INT) else None
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
            return AttributeType.TIMESTAMP if schema.clock.is_timestamp else INT
        if attribute == schema.type_column:
            return AttributeType.STRING
        known = schema.type_of(attribute) if schema.closed else None
        if known is not None:
            return known
    return query.declared.get(variable, {}).get(attribute)


def row_types(query: AnalysedQuery, schema: Schema | None = None) -> dict[str, AttributeType | None]:
    """The columns of a query's rows with their types, as other queries see them; None where a type is not known yet."""
    time = None
    if schema is not None:
        time = AttributeType.TIMESTAMP if schema.clock.is_timestamp else INT
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
    if aggregate.function == "AVG":
        return DOUBLE
    if aggregate.variable is None or aggregate.variable not in query.types or aggregate.attribute is None:
        return None
    known = type_of_attribute(aggregate.variable, aggregate.attribute, query, schema)
    return schema.type_of(aggregate.attribute) if known is None and schema is not None else known


def _type_of_taken(taken: Taken, query: AnalysedQuery, schema: Schema | None) -> AttributeType | None:
    if taken.attribute is None:
        return INT
    if taken.variable not in query.types:
        return None
    known = type_of_attribute(taken.variable, taken.attribute, query, schema)
    return schema.type_of(taken.attribute) if known is None and schema is not None else known


def _literal_type(value: int | float | str | bool | Duration) -> AttributeType | None:
    if isinstance(value, bool):
        return AttributeType.BOOLEAN
    if isinstance(value, str):
        return AttributeType.STRING
    if isinstance(value, Duration):
        return None
    return INT if isinstance(value, int) else DOUBLE


def kind_of(known: AttributeType | None) -> str | None:
    """Types of one kind can be compared."""
    return "number" if known in NUMBERS else known.value if known is not None else None
