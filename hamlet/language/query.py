"""The query as it was written: an abstract syntax tree whose nodes know their place in the text.

Every node carries a `Span` that takes no part in comparisons, so two queries are equal when they say the same
thing wherever they stand. The tree is what the parser returns, what `hamlet.language.printing` turns back into text,
what the compiler reads, and the only thing that the brute-force oracle shares with the engine.

Source: HAMLET (SIGMOD'21) §2.1, Def. 2.1 (pattern), Def. 2.2 (query).
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Union

from hamlet.errors import NOWHERE as NOWHERE
from hamlet.errors import Span as Span  # of all nodes; who reads a tree finds it here
from hamlet.errors import span_field
from hamlet.frontend.units import SECONDS

# ---------------------------------------------------------------------------------------------- patterns


@dataclass(frozen=True, slots=True)
class Atom:
    """``Travel T``: one event of a type, bound to a variable. Without a variable the type is its own variable."""

    type: str
    variable: str
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Sequence:
    """``SEQ(p, q, ...)``: the parts one after the other."""

    parts: tuple[Pattern, ...]
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Alternation:
    """``p OR q``: at least two branches."""

    branches: tuple[Pattern, ...]
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Conjunction:
    """``p AND q``: pairs of trends. The grammar takes it anywhere; the check allows two operands at the top only."""

    operands: tuple[Pattern, ...]
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Repetition:
    """``p+``, ``p*``, ``p?``, ``p{n}``, ``p{n,}``, ``p{n,m}``: from `low` to `high` times; None is no upper bound."""

    body: Pattern
    low: int
    high: int | None
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Negation:
    """``NOT p``: no match of p in the gap where it stands."""

    body: Pattern
    span: Span = span_field()


Pattern = Union[Atom, Sequence, Alternation, Conjunction, Repetition, Negation]


def children(pattern: Pattern) -> tuple[Pattern, ...]:
    """The direct parts of a pattern, in the order of the text."""
    match pattern:
        case Atom():
            return ()
        case Sequence(parts=parts):
            return parts
        case Alternation(branches=branches):
            return branches
        case Conjunction(operands=operands):
            return operands
        case Repetition(body=body) | Negation(body=body):
            return (body,)


def atoms(pattern: Pattern) -> Iterator[Atom]:
    """All atoms of a pattern, negated ones too, in the order of the text."""
    if isinstance(pattern, Atom):
        yield pattern
    for part in children(pattern):
        yield from atoms(part)


def negations(pattern: Pattern) -> Iterator[Negation]:
    """All negated parts of a pattern, in the order of the text."""
    if isinstance(pattern, Negation):
        yield pattern
    for part in children(pattern):
        yield from negations(part)


# ------------------------------------------------------------------------------- expressions and conditions


class Shift(enum.Enum):
    """Which event of a pair of neighbours a reference speaks of."""

    NONE = ""
    NEXT = "NEXT"
    PREV = "PREV"


@dataclass(frozen=True, slots=True)
class Literal:
    """A number, string, truth value or duration. `bare` marks a word without quotes (``R.type = Pool``)."""

    value: int | float | str | bool | Duration
    bare: bool = field(default=False, compare=False)
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Reference:
    """``T.speed``, ``NEXT(T).speed`` or ``PREV(T).speed``."""

    variable: str
    attribute: str
    shift: Shift = Shift.NONE
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Unary:
    """``-e`` or ``+e``."""

    operator: str
    operand: Expression
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Binary:
    """``e + e``, with ``+ - * / %``."""

    operator: str
    left: Expression
    right: Expression
    span: Span = span_field()


# ------------------------------------------------------------------------------------------ what results are made of


@dataclass(frozen=True, slots=True)
class Attribute:
    """``T.district`` or ``district`` in RETURN, HAVING, TOP and GROUP-BY: an attribute of the whole trend."""

    name: str
    variable: str | None = None
    span: Span = span_field()


DISTINCT = ("COUNT_DISTINCT", "APPROX_COUNT_DISTINCT")  # functions that count values, not occurrences


@dataclass(frozen=True, slots=True)
class Aggregate:
    """``COUNT(*)`` (no variable), ``COUNT(T)`` (no attribute), or a function of an attribute.

    The functions of an attribute are SUM, AVG, MIN and MAX, and those of `DISTINCT`: ``COUNT(DISTINCT T.driver)`` has
    the function ``COUNT_DISTINCT``. With `events`, as in ``SUM(EVENTS T.price)``, each event counts once, however many
    trends take it.
    """

    function: str
    variable: str | None = None
    attribute: str | None = None
    events: bool = False
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Taken:
    """``FIRST(v.a)``, ``LAST(v.a)`` or ``COUNT(v)`` in GROUP-BY, and the value of a group elsewhere.

    The attribute of the first or last event that a trend binds to the variable, or how many it binds.
    """

    function: str
    variable: str
    attribute: str | None = None
    span: Span = span_field()

    @property
    def column(self) -> str:
        """The name of its result column."""
        names = (self.function.lower(), self.variable, self.attribute)
        return "_".join(name for name in names if name is not None)


@dataclass(frozen=True, slots=True)
class Log2:
    """``LOG2(e)`` of any result expression; a column that is LOG2 of an aggregate is a `ReturnItem` with `log2`."""

    operand: Expression
    span: Span = span_field()


# In WHERE an expression is made of literals and references, in RETURN, HAVING and TOP of literals, attributes of the
# trend, aggregates and logarithms; the parser sees to it.
Expression = Union[Literal, Reference, Unary, Binary, Attribute, Taken, Aggregate, Log2]
Group = Union[Attribute, Taken]  # what GROUP-BY names


@dataclass(frozen=True, slots=True)
class Equivalence:
    """``[driver, rider]``: all events of a trend agree on these attributes."""

    attributes: tuple[str, ...]
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Comparison:
    """``e cmp e`` with cmp one of ``= <> < <= > >=`` (``==`` and ``!=`` are read as ``=`` and ``<>``)."""

    operator: str
    left: Expression
    right: Expression
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Membership:
    """``e [NOT] IN (e, ...)``."""

    operand: Expression
    choices: tuple[Expression, ...]
    negated: bool = False
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Between:
    """``e [NOT] BETWEEN low AND high``, both ends included."""

    operand: Expression
    low: Expression
    high: Expression
    negated: bool = False
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class NullTest:
    """``e IS [NOT] NULL``."""

    operand: Expression
    negated: bool = False
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class And:
    """All operands, at least two."""

    operands: tuple[Condition, ...]
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Or:
    """Any operand, at least two."""

    operands: tuple[Condition, ...]
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite in three-valued logic."""

    operand: Condition
    span: Span = span_field()


Condition = Union[Equivalence, Comparison, Membership, Between, NullTest, And, Or, Not]


# ------------------------------------------------------------------------------------------ RETURN and the rest


@dataclass(frozen=True, slots=True)
class ReturnItem:
    """One result column: an attribute, an aggregate, LOG2 of an aggregate, or another expression, perhaps renamed.

    Attributes
    ----------
    value : Expression
        What is computed; for LOG2 of a lone aggregate, that aggregate.
    log2 : bool
        Whether the column is LOG2 of the aggregate.
    alias : str or None
        What AS calls it.
    place : int
        Of an expression: its number among the expressions of RETURN, from 1; 0 for other columns.
    """

    value: Expression
    log2: bool = False
    alias: str | None = None
    place: int = 0
    span: Span = span_field()

    @property
    def column(self) -> str:
        """The name of the result column."""
        if self.alias is not None:
            return self.alias
        if isinstance(self.value, Attribute):
            return self.value.name
        if isinstance(self.value, Taken):
            return self.value.column
        if not isinstance(self.value, Aggregate):
            return "expr" if self.place <= 1 else f"expr_{self.place}"
        events = "events" if self.value.events else None
        names = [self.value.function.lower(), events, self.value.variable, self.value.attribute]
        return "_".join(["log2"] * self.log2 + [name for name in names if name is not None])

    @property
    def expression(self) -> Expression:
        """What is computed, with LOG2 as a node."""
        return Log2(self.value, span=self.span) if self.log2 else self.value


@dataclass(frozen=True, slots=True)
class Top:
    """``TOP k BY e [ASC|DESC]``: the `count` rows of a window with the largest (ascending: smallest) `by`."""

    count: int
    by: Expression
    ascending: bool = False
    span: Span = span_field()


class Semantics(enum.Enum):
    """Which of a pattern's trends count: what may be skipped between two events of a trend."""

    ANY = "skip-till-any-match"
    NEXT = "skip-till-next-match"
    CONTIGUOUS = "contiguous"


@dataclass(frozen=True, slots=True)
class Duration:
    """A positive length of time, exact: ``1.5 min`` is 90 seconds."""

    amount: Fraction
    unit: str  # ms, s, min, h, d or w
    span: Span = span_field()

    @property
    def seconds(self) -> Fraction:
        """The length in seconds."""
        return self.amount * SECONDS[self.unit]

    def ticks(self, per_second: int) -> tuple[int, int]:
        """Whole ticks, and more than 0 beside them where some part of a tick is left."""
        unit = SECONDS[self.unit]  # no fraction is made: a workload may have thousands of lengths
        return divmod(self.amount.numerator * unit.numerator * per_second, self.amount.denominator * unit.denominator)


@dataclass(frozen=True, slots=True)
class Query:
    """One query of a workload, as written; `name` is set also where the text gives none.

    Attributes
    ----------
    within : Duration or None
        The length of windows; of sessions, the gap that ends one. None is ``WITHIN ALL``: one window over everything.
    slide : Duration or None
        None is `within`.
    offset : Duration or None
        How long after time 0 a window begins; None where the text says nothing.
    semantics : Semantics
        ANY where the text says nothing.
    session : bool
        Whether ``WITHIN SESSION gap`` was written.
    longest : Duration or None
        The length of SPAN: how long a trend may last.
    having : Condition or None
        On result rows, over attributes of the trend and aggregates.
    top : Top or None
    """

    name: str
    items: tuple[ReturnItem, ...]
    pattern: Pattern
    condition: Condition | None
    group_by: tuple[Group, ...]
    within: Duration | None
    slide: Duration | None
    semantics: Semantics = Semantics.ANY
    session: bool = False
    longest: Duration | None = None
    having: Condition | None = None
    top: Top | None = None
    offset: Duration | None = None
    span: Span = span_field()
    name_span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)

    @property
    def step(self) -> Duration | None:
        """From the beginning of a window to that of the next; None where there is one window only."""
        return self.slide or self.within


class AttributeType(enum.Enum):
    """The types of attributes."""

    INT = "INT"
    DOUBLE = "DOUBLE"
    STRING = "STRING"
    BOOLEAN = "BOOLEAN"
    TIMESTAMP = "TIMESTAMP"
    DURATION = "DURATION"


@dataclass(frozen=True, slots=True)
class DeclaredAttribute:
    """``driver INT`` inside an EVENT declaration."""

    name: str
    type: AttributeType
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class EventDeclaration:
    """``EVENT Request(driver INT, ...);``."""

    name: str
    attributes: tuple[DeclaredAttribute, ...]
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class WorkloadText:
    """A parsed workload file: its text, where it came from, and what it declares and asks."""

    text: str = field(compare=False, repr=False)
    source: str = field(compare=False)  # file name for messages, "<workload>" for text given directly
    declarations: tuple[EventDeclaration, ...]
    queries: tuple[Query, ...]
