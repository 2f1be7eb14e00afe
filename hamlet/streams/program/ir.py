"""A checked specification as the evaluator reads it: every name resolved, every expression typed, constants folded in.

What `hamlet.streams.check.lowering` makes of the syntax tree. Streams, windows and instance aggregates are numbered, an
access names its target by number and says what it reads (`Access`), and pacing is in a normal form: `EventPacing` is a
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

from hamlet.errors import Span, span_field
from hamlet.streams.program.typed import (
    Access,
    Binary,
    Call,
    Choice,
    Constant,
    Default,
    Expression,
    GetPart,
    MakeTuple,
    Parameter,
    Read,
    ReadInstances,
    ReadWindow,
    Unary,
    parts,
    walk,
)
from hamlet.streams.program.value_types import (
    BOOL,
    BYTES,
    FLOAT64,
    INT64,
    STRING,
    UINT64,
    OptionalOf,
    Scalar,
    TupleOf,
    Value,
    ValueType,
)

__all__ = [
    "ANY_EVENT",
    "BOOL",
    "BYTES",
    "FLOAT64",
    "INT64",
    "STRING",
    "UINT64",
    "Access",
    "Binary",
    "Call",
    "Choice",
    "Close",
    "Constant",
    "Default",
    "Eval",
    "EventPacing",
    "Expression",
    "GetPart",
    "InstanceAggregate",
    "Kind",
    "MakeTuple",
    "OptionalOf",
    "Pacing",
    "Parameter",
    "PeriodicPacing",
    "Program",
    "Read",
    "ReadInstances",
    "ReadWindow",
    "Scalar",
    "Spawn",
    "Stream",
    "Task",
    "TupleOf",
    "Unary",
    "Value",
    "ValueType",
    "Window",
    "bits_of",
    "parts",
    "walk",
]  # fmt: skip

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


# -------------------------------------------------------------------------------------------------------- streams


@dataclass(frozen=True, slots=True)
class Spawn:
    """When an instance begins: where active and true, the instance of the arguments' values, if it does not live."""

    pacing: Pacing
    condition: Expression | None
    arguments: tuple[Expression, ...]  # one for each parameter; none for a stream without parameters
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Eval:
    """When and how an instance (of a stream without spawn: the only one) is extended."""

    pacing: Pacing
    condition: Expression | None
    expression: Expression
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Close:
    """When an instance ends, at the end of the step. Reads without a value make the condition false."""

    pacing: Pacing
    condition: Expression | None
    span: Span = span_field()


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
    span: Span = span_field()

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
    span: Span = span_field()

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
    span: Span = span_field()


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
