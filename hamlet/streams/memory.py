"""How much a specification keeps, known before any data is read.

Every access says what must be kept of its target: an offset of n the last n values, a hold the newest one, a window
the values that it covers, or a summary of each pane where the aggregate can be put together from such. A pane is the
time between two readings, so a window of duration d that is read every p seconds has d / p of them, however fast its
target is. Where neither the target's rate nor a pane summary bounds what a window holds, it is unbounded, and `Kept`
says what would bound it.

Source: Faymonville et al., Real-time Stream-based Monitoring, §3.1 (memory), §4.1 (panes).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

from hamlet.errors import Span
from hamlet.frontend.units import duration_text, frequency_text
from hamlet.streams.evaluate._store import Store
from hamlet.streams.program.ir import (
    Access,
    EventPacing,
    Expression,
    Kind,
    PeriodicPacing,
    Program,
    Read,
    ReadInstances,
    Scalar,
    Stream,
    TupleOf,
    ValueType,
    Window,
    walk,
)

# Bytes of a pane's summary, by aggregate: counts, sums and times of eight bytes each.
SUMMARIES = {
    "count": 8, "sum": 8, "avg": 16, "min": 8, "max": 8, "integral": 48, "last": 16, "var": 24, "sd": 24, "cov": 40,
    "exists": 8, "forall": 8,
}  # fmt: skip
_TIME = 8  # bytes of a value's time


@dataclass(frozen=True)
class Kept:
    """What one stream or window keeps.

    Attributes
    ----------
    what : str
        ``values`` of a stream, ``values with times`` or ``panes`` of a window.
    count : int or None
        How many at most; None where nothing bounds it.
    bytes_each : int
        Of one.
    why : str
        What asks for it.
    unbounded : str
        Where `count` is None: why, and after a semicolon what would bound it.
    """

    what: str
    count: int | None
    bytes_each: int
    why: str
    unbounded: str = ""

    @property
    def bytes(self) -> int | None:
        """All of them; None where nothing bounds it."""
        return None if self.count is None else self.count * self.bytes_each


@dataclass(frozen=True)
class StreamMemory:
    """What is kept because of one stream.

    Attributes
    ----------
    stream : Stream
    values : Kept
        Of its own values, one instance.
    windows : tuple of (Window, Kept)
        The windows over it, one instance each.
    spawned, closed : str
        What begins and ends its instances, as it is written; empty where nothing does.
    """

    stream: Stream
    values: Kept
    windows: tuple[tuple[Window, Kept], ...] = ()
    spawned: str = ""
    closed: str = ""

    @property
    def instances(self) -> bool:
        """Whether it has any number of instances."""
        return bool(self.stream.parameters)

    @property
    def never_closed(self) -> bool:
        """Whether instances are added and none is ever taken away."""
        return self.instances and self.stream.close is None

    @property
    def bytes(self) -> int | None:
        """Of one instance, windows over it included; None where nothing bounds it."""
        parts = [self.values.bytes, *(kept.bytes for _, kept in self.windows)]
        return None if None in parts else sum(part for part in parts if part is not None)


@dataclass(frozen=True)
class Memory:
    """What a whole specification keeps.

    Attributes
    ----------
    streams : tuple of StreamMemory
        As in the program.
    """

    streams: tuple[StreamMemory, ...]
    readers: dict[int, bool] = field(default_factory=dict, repr=False)  # windows that each instance of a reader has

    @property
    def total(self) -> int | None:
        """Bytes in all; None where something is unbounded or the number of instances is open."""
        parts: list[int] = []
        for each in self.streams:
            if each.instances or each.bytes is None or any(self.readers.get(window.id) for window, _ in each.windows):
                return None
            parts.append(each.bytes)
        return sum(parts)

    @property
    def texts(self) -> bool:
        """Whether values hold text, whose length is not counted."""
        return any(_has_text(each.stream.type) for each in self.streams if each.values.count or each.windows)


def memory(program: Program) -> Memory:
    """What a specification keeps, stream by stream.

    Parameters
    ----------
    program : Program
        A checked specification.

    Returns
    -------
    Memory
        Bounds that hold for every input.
    """
    offsets: dict[int, tuple[int, str]] = {}
    held: dict[int, str] = {}
    times: dict[int, int] = {}
    for stream in program.streams[program.inputs :]:
        for each in walk(*_expressions(stream)):
            if isinstance(each, Read):
                if each.access is Access.OFFSET and each.amount > offsets.get(each.stream, (0, ""))[0]:
                    offsets[each.stream] = (each.amount, f"{stream.name} reads {each.amount} back")
                elif each.access is Access.HOLD:
                    held.setdefault(each.stream, f"{stream.name} holds it")
                elif each.access is Access.TIME:
                    times[each.stream] = max(times.get(each.stream, 0), each.amount)
            elif isinstance(each, ReadInstances):
                target = program.aggregates[each.aggregate].target
                held.setdefault(target, f"{stream.name} aggregates its instances")
    found = []
    for stream in program.streams:
        values = _values(stream, offsets.get(stream.id), held.get(stream.id), times.get(stream.id))
        windows = tuple((each, _window(each, stream)) for each in program.windows if each.target == stream.id)
        spawned = "" if stream.spawn is None else _written(program, stream.spawn.span)
        closed = "" if stream.close is None else _written(program, stream.close.span)
        found.append(StreamMemory(stream, values, windows, spawned, closed))
    readers = {each.id: bool(program.streams[each.reader].parameters) for each in program.windows}
    return Memory(tuple(found), readers)


def held(program: Program, store: Store) -> int:
    """Bytes that a run holds now, counted as `memory` counts them; never more than its total, where there is one.

    Parameters
    ----------
    program : Program
    store : Store
        Of the evaluator of the program.
    """
    total = 0
    panes: dict[int, int] = {}
    for table in store.tables:  # one window expression may stand in several clauses
        panes[table.number] = panes.get(table.number, 0) + table.kept()
    streams = {each.number: each for each in store.streams}
    for each in memory(program).streams:
        total += streams[each.stream.id].kept(each.values.count) * each.values.bytes_each
        total += sum(panes.get(window.id, 0) * kept.bytes_each for window, kept in each.windows)
    return total


def _expressions(stream: Stream) -> list[Expression]:
    parts: list[Expression | None] = []
    if stream.spawn is not None:
        parts += [stream.spawn.condition, *stream.spawn.arguments]
    for clause in stream.evals:
        parts += [clause.condition, clause.expression]
    if stream.close is not None:
        parts.append(stream.close.condition)
    return [part for part in parts if part is not None]


def declaration_text(program: Program, stream: Stream) -> str:
    """A declaration as it is written, on one line."""
    ends = [each.span.end for each in _expressions(stream)]
    return _written(program, Span(stream.span.start, max([stream.span.end, *ends])))


def _written(program: Program, span: Span) -> str:
    return " ".join(program.text[span.start : span.end].split())


def _values(stream: Stream, offset: tuple[int, str] | None, held: str | None, ago: int | None) -> Kept:
    """The past values of a stream, one instance."""
    size = size_of(stream.type)
    count, why = offset or (0, "")
    if held is not None and count == 0:
        count, why = 1, held
    if ago is None:
        return Kept("values", count, size, why)
    period = _period(stream)
    text = duration_text(Fraction(ago, 10**9))
    if period is None:
        hint = f"{stream.name} has no known rate, and all values of {text} are needed; "
        hint += f"read a stream @1Hz that holds {stream.name} instead"
        return Kept("values with times", None, size + _TIME, f"a value of {text} ago is read", hint)
    needed = math.floor(Fraction(ago, 10**9) / period) + 1
    return Kept("values with times", max(needed, count), size + _TIME, f"a value of {text} ago is read")


def _window(window: Window, target: Stream) -> Kept:
    """What a window holds at most, for one instance."""
    size = size_of(target.type)
    if window.count is not None:
        why = f"the last {window.count} values"
        timed = window.function == "integral"
        return Kept("values with times" if timed else "values", window.count, size + _TIME * timed, why)
    assert window.duration is not None
    assert window.period is not None
    period = _period(target)
    summary = SUMMARIES.get(window.function)
    panes = math.ceil(window.duration / window.period)
    rest = window.duration % window.period
    if rest:
        panes *= 2  # its beginning lies inside a period: every period has two panes
    values = None if period is None else math.ceil(window.duration / period)
    text = f"{duration_text(window.duration)} read {frequency_text(window.period)}"
    if values is not None and (summary is None or values <= panes):
        return Kept("values with times", values, size + _TIME, f"{text}, {target.name} is {_rate(target)}")
    if summary is not None:
        return Kept("panes", panes, summary, text)
    reason = (
        f"{_name(window)} needs all values of {duration_text(window.duration)}, and {target.name} has no known rate"
    )
    remedy = f"aggregate a stream @1Hz that holds {target.name}, or over_discrete: a number of values"
    return Kept("values with times", None, size + _TIME, text, f"{reason}; {remedy}")


def _period(stream: Stream) -> Fraction | None:
    """How often a stream has a value at most; None where that is not known."""
    if not stream.periodic:
        return None
    periods = [each.pacing.period for each in stream.evals if isinstance(each.pacing, PeriodicPacing)]
    return min(periods)


def _rate(stream: Stream) -> str:
    period = _period(stream)
    return "of unknown rate" if period is None else frequency_text(period)


def _name(window: Window) -> str:
    if window.function != "pctl":
        return window.function
    return "median" if window.percentile == 50 else f"pctl{window.percentile}"


def size_of(kind: ValueType) -> int:
    """Bytes of a value: eight, sixteen for a text without its letters, and for a tuple those of its parts."""
    if isinstance(kind, TupleOf):
        return sum(size_of(part) for part in kind.parts)
    if isinstance(kind, Scalar):
        return 16 if kind.family == "String" else 8
    return 8 + size_of(kind.inner)


def _has_text(kind: ValueType) -> bool:
    if isinstance(kind, TupleOf):
        return any(_has_text(part) for part in kind.parts)
    return isinstance(kind, Scalar) and kind.family == "String"


def pacing_text(program: Program, stream: Stream) -> str:
    """When a stream is extended, as it is written: ``@a``, ``@(a || b)``, ``@2Hz``."""
    if stream.kind is Kind.INPUT:
        return f"@{stream.name}"
    shown = dict.fromkeys(_pace(program, each.pacing) for each in stream.evals)
    return " or ".join(shown)


def _pace(program: Program, pacing: EventPacing | PeriodicPacing) -> str:
    if isinstance(pacing, PeriodicPacing):
        text = frequency_text(pacing.period)
        return f"@Local({text})" if pacing.local else f"@{text}"
    terms = [" && ".join(program.streams[place].name for place in term) or "true" for term in pacing.inputs()[:6]]
    terms += ["..."] * (len(pacing.terms) > 6)
    if len(terms) == 1:
        return f"@({terms[0]})" if "&&" in terms[0] else f"@{terms[0]}"
    return f"@({' || '.join(f'({term})' if '&&' in term else term for term in terms)})"
