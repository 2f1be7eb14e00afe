"""A checked specification as the evaluator reads it: every name resolved, every expression typed, constants folded in.

What `hamlet.streams.resolve` makes of the syntax tree. Streams, windows and instance aggregates are numbered, an access
names its target by number and says what it reads (`Access`), and pacing is in a normal form: `EventPacing` is a
disjunction of sets of inputs, `PeriodicPacing` an exact period. Nothing here refers back to the syntax tree but the
spans, which are for messages.

A step of the evaluation, at an event or at a deadline:

1. the inputs that have values are extended (an event), or none is (a deadline: then nothing is fresh);
2. the tasks of `Program.layers`, layer by layer: a task is the spawn of a stream or its evaluation;
3. the close clauses, of all streams;
4. triggers are outputs: their rows come in the order of `Program.streams`, and so of the text.

At an event a clause with `EventPacing` is active when the pacing holds of the set of fresh inputs; at a deadline a
clause with `PeriodicPacing` is active when one of its due times is that deadline.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias, Union

from hamlet.language.query import NOWHERE, Span

# ---------------------------------------------------------------------------------------------------------- types


@dataclass(frozen=True, slots=True)
class Scalar:
    """A type without parts.

    Attributes
    ----------
    name : str
        ``Bool``, ``String``, or `family` and `bits` together: ``Int8`` ... ``UInt64``, ``Float32``, ``Float64``.
        Values have 64 bits whatever the width; widths matter to the check only.
    """

    name: str

    @property
    def family(self) -> str:
        """``Bool``, ``String``, ``Int``, ``UInt`` or ``Float``."""
        return self.name.rstrip("0123456789")

    @property
    def bits(self) -> int:
        """The width that the type's name says; 0 where it has none."""
        digits = self.name[len(self.family) :]
        return int(digits) if digits else 0

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class TupleOf:
    """A tuple type; values are Python tuples. ``()`` is the type of a stream without an expression."""

    parts: tuple[ValueType, ...]

    def __str__(self) -> str:
        return f"({', '.join(str(part) for part in self.parts)})"


@dataclass(frozen=True, slots=True)
class OptionalOf:
    """``T?``: a value of the inner type, or none (Python None). Only expressions have it, never a stream."""

    inner: ValueType

    def __str__(self) -> str:
        return f"{self.inner}?"


ValueType: TypeAlias = Union[Scalar, TupleOf, OptionalOf]
Value: TypeAlias = "bool | int | float | str | tuple[Value, ...]"

BOOL, STRING = Scalar("Bool"), Scalar("String")
INT64, UINT64, FLOAT64 = Scalar("Int64"), Scalar("UInt64"), Scalar("Float64")

# --------------------------------------------------------------------------------------------------------- pacing


@dataclass(frozen=True, slots=True)
class EventPacing:
    """When an event extends a stream: a positive Boolean formula over inputs, as a minimal disjunction.

    Attributes
    ----------
    terms : tuple of int
        Each a set of inputs as a bit mask (bit i is input i); the pacing holds when all inputs of some term are
        fresh. No term contains another; sorted. ``(0,)`` holds at every event.
    """

    terms: tuple[int, ...]

    def holds(self, fresh: int) -> bool:
        """Whether an event that extends these inputs (a bit mask) is one of this pacing."""
        return any(term & fresh == term for term in self.terms)

    def inputs(self) -> tuple[tuple[int, ...], ...]:
        """The terms as numbers of inputs."""
        return tuple(bits_of(term) for term in self.terms)


@dataclass(frozen=True, slots=True)
class PeriodicPacing:
    """When time extends a stream: at whole periods after the start, or after the spawn of an instance.

    Attributes
    ----------
    period : Fraction
        Seconds, exact. Deadline k (from 1) is ``floor(k * period * 10**9)`` ns after the start: `deadline`.
    local : bool
        Counted from the instance's spawn (only in the eval and close clauses of a stream with a spawn clause).
    """

    period: Fraction
    local: bool = False

    def deadline(self, k: int) -> int:
        """Nanoseconds from the start to deadline k."""
        return k * self.period.numerator * 1_000_000_000 // self.period.denominator


Pacing: TypeAlias = Union[EventPacing, PeriodicPacing]

ANY_EVENT = EventPacing((0,))


def bits_of(mask: int) -> tuple[int, ...]:
    """The places of the ones of a bit mask, ascending."""
    places = []
    while mask:
        lowest = mask & -mask
        places.append(lowest.bit_length() - 1)
        mask ^= lowest
    return tuple(places)


# ---------------------------------------------------------------------------------------------------- expressions


def _type() -> ValueType:
    return field(default=BOOL, kw_only=True)


def _span() -> Span:
    return field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Constant:
    """A value known before any event: int for integers, float for Float, bool, str, tuples of these."""

    value: Value
    type: ValueType = _type()
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Parameter:
    """The value of a parameter of the instance whose clause this stands in."""

    index: int
    type: ValueType = _type()
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Unary:
    """``!`` (Bool), ``-`` (numbers), ``~`` (integers: all 64 bits, whatever the width)."""

    operator: str
    operand: Expression
    type: ValueType = _type()
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Binary:
    """Two operands of one type: ``+ - * / % ** && || = != < <= > >= & | ^ << >>``; ``->`` is written with ``!`` and
    ``||`` already. ``&&`` and ``||`` leave the right side out where the left side says it."""

    operator: str
    left: Expression
    right: Expression
    type: ValueType = _type()
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Choice:
    """``if condition then left else right``; only the chosen side is computed."""

    condition: Expression
    left: Expression
    right: Expression
    type: ValueType = _type()
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class MakeTuple:
    """``(a, b)``; ``()`` has no parts."""

    parts: tuple[Expression, ...]
    type: ValueType = _type()
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class GetPart:
    """``tuple.index``. Of an optional tuple it is the optional part."""

    operand: Expression
    index: int
    type: ValueType = _type()
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Default:
    """``optional.defaults(to: value)``: the operand where it is not None, else the value."""

    operand: Expression
    value: Expression
    type: ValueType = _type()
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Call:
    """A function of values.

    ``abs sqrt sin cos tan arcsin arccos arctan exp ln`` (one argument), ``log`` (value, base), ``min max`` (two),
    ``round`` (value, digits: of Float64), ``cast widen`` (one; the target is `type`), ``format`` (the template, then
    the values) and ``matches`` (text, regular expression; the expression is a `Constant` that compiles).
    """

    function: str
    arguments: tuple[Expression, ...]
    type: ValueType = _type()
    span: Span = _span()


class Access(enum.Enum):
    """What a `Read` reads of its stream."""

    NOW = "now"  # the value of this step; a condition that reads one which is not there is false
    OFFSET = "offset"  # the value `amount` values back, counted from 1 for the newest of the steps before
    HOLD = "hold"  # the newest value, of this step or before
    GET = "get"  # the value of this step, or none
    FRESH = "fresh"  # Bool: whether there is a value of this step
    TIME = "time"  # the newest value that is at least `amount` ns old


@dataclass(frozen=True, slots=True)
class Read:
    """A value of a stream.

    Attributes
    ----------
    stream : int
        Which; for a parameterised one `arguments` say which instance. One without a living instance has no value.
    access : Access
        Which value. All but NOW and FRESH are optional.
    amount : int
        OFFSET: n > 0, values back. TIME: ns back. Else 0.
    """

    stream: int
    access: Access
    arguments: tuple[Expression, ...] = ()
    amount: int = 0
    type: ValueType = _type()
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class ReadWindow:
    """What `Program.windows[window]` holds now, of the instance that `arguments` say."""

    window: int
    arguments: tuple[Expression, ...] = ()
    type: ValueType = _type()
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class ReadInstances:
    """`Program.aggregates[aggregate]` over the instances that live now."""

    aggregate: int
    type: ValueType = _type()
    span: Span = _span()


Expression: TypeAlias = Union[
    Constant, Parameter, Unary, Binary, Choice, MakeTuple, GetPart, Default, Call, Read, ReadWindow, ReadInstances
]


def parts(expression: Expression) -> tuple[Expression, ...]:
    """The expressions directly inside one."""
    match expression:
        case Unary(operand=operand) | GetPart(operand=operand):
            return (operand,)
        case Binary(left=left, right=right):
            return (left, right)
        case Choice(condition=condition, left=left, right=right):
            return (condition, left, right)
        case MakeTuple(parts=inner):
            return inner
        case Default(operand=operand, value=value):
            return (operand, value)
        case Call(arguments=arguments) | Read(arguments=arguments) | ReadWindow(arguments=arguments):
            return arguments
    return ()


def walk(*expressions: Expression) -> list[Expression]:
    """The expressions and all inside them, outer before inner, left before right."""
    found: list[Expression] = []
    waiting = list(reversed(expressions))
    while waiting:
        each = waiting.pop()
        found.append(each)
        waiting.extend(reversed(parts(each)))
    return found


# -------------------------------------------------------------------------------------------------------- streams


@dataclass(frozen=True, slots=True)
class Spawn:
    """When an instance begins: where active and true, the instance of the arguments' values, if it does not live."""

    pacing: Pacing
    condition: Expression | None
    arguments: tuple[Expression, ...]  # one for each parameter; none for a stream without parameters
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Eval:
    """When and how an instance (of a stream without spawn: the only one) is extended."""

    pacing: Pacing
    condition: Expression | None
    expression: Expression
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Close:
    """When an instance ends, at the end of the step. Reads without a value make the condition false."""

    pacing: Pacing
    condition: Expression | None
    span: Span = _span()


class Kind(enum.Enum):
    """What a stream is."""

    INPUT = "input"
    OUTPUT = "output"
    TRIGGER = "trigger"


@dataclass(frozen=True, slots=True)
class Stream:
    """One stream.

    Attributes
    ----------
    id : int
        Its place in `Program.streams`: inputs first, then outputs and triggers in the order of the text.
    name : str
        Of a trigger ``trigger 1``, ``trigger 2`` ..., which is no name that a text can use.
    kind : Kind
        A trigger is an output of type String whose values are rows.
    type : ValueType
        Of its values; never optional.
    parameters : tuple of (str, ValueType)
        Empty for a stream without parameters, which may have spawn and close all the same.
    spawn : Spawn or None
        None: one instance from the start.
    evals : tuple of Eval
        The first that is active and true gives the value. All event-driven or all periodic. Empty for inputs.
    close : Close or None
        None: instances stay.
    """

    id: int
    name: str
    kind: Kind
    type: ValueType
    parameters: tuple[tuple[str, ValueType], ...] = ()
    spawn: Spawn | None = None
    evals: tuple[Eval, ...] = ()
    close: Close | None = None
    span: Span = _span()

    @property
    def periodic(self) -> bool:
        """Whether time, not events, extends it."""
        return bool(self.evals) and isinstance(self.evals[0].pacing, PeriodicPacing)


@dataclass(frozen=True, slots=True)
class Window:
    """A sliding window: read in one clause of one stream, over one stream.

    Attributes
    ----------
    id, reader, target : int
        Its place in `Program.windows`; the streams that read it and that it is over.
    duration : Fraction or None
        Seconds, exact; at time t it covers (t - duration, t]. None where `count` is given.
    count : int or None
        How many of the last values, the one of this step among them.
    exactly : bool
        None before the first full duration since the spawn of the reading instance (of a stream without spawn: since
        the start), whether or not the target lives; or before the first `count` values.
    function : str
        ``count sum avg min max integral last var sd cov exists forall pctl``; median is ``pctl`` of 50.
    percentile : int
        For ``pctl``, 0 to 100; else 0.
    period : Fraction or None
        Of the clause that reads it, where that is periodic (always, of a window over a duration).
    type : ValueType
        Of what is read: optional, or plain where an empty window has a value.
    """

    id: int
    reader: int
    target: int
    duration: Fraction | None
    count: int | None
    exactly: bool
    function: str
    percentile: int
    period: Fraction | None
    type: ValueType
    span: Span = _span()

    @property
    def nanoseconds(self) -> int:
        """The duration, rounded down; 0 for a count."""
        return 0 if self.duration is None else self.duration.numerator * 1_000_000_000 // self.duration.denominator


@dataclass(frozen=True, slots=True)
class InstanceAggregate:
    """An aggregate over the instances of a stream: of the newest value of each (all), or of those extended now (fresh).

    Attributes
    ----------
    selection : str
        ``all`` or ``fresh``. Instances without a value count in neither.
    function, percentile, type
        As for `Window`.
    """

    id: int
    reader: int
    target: int
    selection: str
    function: str
    percentile: int
    type: ValueType
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Task:
    """One thing to do in a layer: the spawn clause of a stream, or its eval clauses."""

    stream: int
    spawn: bool


@dataclass(frozen=True)
class Program:
    """A whole specification, checked.

    Attributes
    ----------
    streams : tuple of Stream
        Inputs first; `inputs` is how many.
    windows : tuple of Window
    aggregates : tuple of InstanceAggregate
    layers : tuple of tuple of Task
        In the order of synchronous dependencies: what a task reads without an offset is done in an earlier layer.
        Tasks of a layer are independent; they stand in the order of the text.
    text, source : str
        What was read, for messages.
    """

    streams: tuple[Stream, ...]
    inputs: int
    windows: tuple[Window, ...] = ()
    aggregates: tuple[InstanceAggregate, ...] = ()
    layers: tuple[tuple[Task, ...], ...] = ()
    text: str = field(default="", repr=False)
    source: str = "<specification>"

    @cached_property
    def by_name(self) -> dict[str, Stream]:
        """Inputs and outputs by name."""
        return {each.name: each for each in self.streams if each.kind is not Kind.TRIGGER}

    @property
    def triggers(self) -> tuple[Stream, ...]:
        """The triggers in the order of the text."""
        return tuple(each for each in self.streams if each.kind is Kind.TRIGGER)
