"""What a specification computes, as rows: what its triggers said, and the values of its outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from hamlet.errors import DataError
from hamlet.input.buffers import from_list
from hamlet.language.schema import Clock
from hamlet.output.html import Texts
from hamlet.output.result import Part, shown_rows
from hamlet.output.typed import typed_rows
from hamlet.streams.clock import presenter
from hamlet.streams.program import ir

Found = tuple[int, int, Any, Any]  # time (ns from the start), stream, key, value
_ARROW = {"Bool": pa.bool_(), "Int": pa.int64(), "UInt": pa.uint64(), "Float": pa.float64(), "String": pa.string()}


class RowForm:
    """How rows of a specification look.

    Parameters
    ----------
    program : ir.Program
    values : bool
        Whether values of outputs are among them.
    """

    def __init__(self, program: ir.Program, values: bool) -> None:
        self.program = program
        self.values = values
        self._names = {each.id: each.name for each in program.streams}
        self._trigger = {each.id for each in program.triggers}
        self._parameters = {each.id: tuple(name for name, _ in each.parameters) for each in program.streams}
        self.rowed = [
            each
            for each in program.streams[program.inputs :]
            if each.kind is ir.Kind.TRIGGER or (values and each.kind is ir.Kind.OUTPUT)
        ]

    def dicts(self, found: Sequence[Found], clock: Clock | None, start: int) -> list[dict[str, Any]]:
        """Rows as dicts.

        Parameters
        ----------
        found : sequence of (time, stream, key, value)
        clock : Clock
        start : int
            Nanoseconds.
        """
        rows: list[dict[str, Any]] = []
        last, shown = None, None
        if not found:
            return rows
        assert clock is not None
        shown_as = presenter(clock)
        for time, stream, key, value in found:
            if time != last or shown is None:
                last, shown = time, shown_as(start + time)
            row: dict[str, Any]
            if stream in self._trigger:
                row = {"trigger": value, "time": shown}
            else:
                row = {"stream": self._names[stream], "time": shown, "value": value}
            names = self._parameters[stream]
            if len(names) == 1:
                row[names[0]] = key
            elif names:
                row.update(zip(names, key, strict=True))
            rows.append(row)
        return rows

    def schema(self, clock: Clock | None) -> pa.Schema:
        """The columns of rows: trigger, (stream,) time, parameters (, value); what a row has not is NULL."""
        fields: dict[str, list[pa.DataType]] = {}
        if self._trigger or not self.values:
            fields["trigger"] = [pa.string()]
        if self.values:
            fields["stream"] = [pa.string()]
        fields["time"] = [self._time_type(clock)]
        for stream in self.rowed:
            for name, kind in stream.parameters:
                fields.setdefault(name, []).append(arrow_type(kind))
        if self.values:
            fields["value"] = [arrow_type(each.type) for each in self.rowed if each.kind is ir.Kind.OUTPUT] or [
                pa.null()
            ]
        return pa.schema([(name, _common(kinds)) for name, kinds in fields.items()])

    def _time_type(self, clock: Clock | None) -> pa.DataType:
        if clock is None:  # there were no events
            return pa.int64()
        if clock.is_timestamp:
            whole = clock.unit == "ns" or self._between(1000 if clock.unit == "us" else clock.tick)
            return pa.timestamp("ns" if whole else clock.unit, clock.type.tz)
        if clock.is_fraction:
            return pa.float64()
        return _common([pa.int64(), pa.float64()], narrow=False) if self._between(clock.tick) else pa.int64()

    def _between(self, tick: int) -> bool:
        """Whether a deadline can fall between two ticks."""
        from hamlet.streams.program.compile_clauses import clauses_of

        return any(
            (pacing.period * 1_000_000_000 / tick).denominator != 1
            for stream in self.program.streams
            for pacing, _, _ in clauses_of(stream)
            if isinstance(pacing, ir.PeriodicPacing)
        )

    def batch(self, found: Sequence[Found], clock: Clock | None, start: int) -> pa.RecordBatch:
        """Rows as a batch of the schema.

        Raises
        ------
        DataError
            If a value is beyond what its Arrow type holds.
        """
        schema = self.schema(clock)
        rows = self.dicts(found, clock, start)
        return pa.RecordBatch.from_arrays(
            [_array([row.get(field.name) for row in rows], field.type) for field in schema], schema=schema
        )


def arrow_type(kind: ir.ValueType) -> pa.DataType:
    """The Arrow type of values; a tuple is a struct of parts ``0``, ``1``, ..."""
    if isinstance(kind, ir.TupleOf):
        return pa.struct([(str(place), arrow_type(part)) for place, part in enumerate(kind.parts)])
    if isinstance(kind, ir.OptionalOf):
        return arrow_type(kind.inner)
    return _ARROW[kind.family]


def _common(kinds: Sequence[pa.DataType], *, narrow: bool = True) -> pa.DataType:
    """One type for several: itself, or a union of them."""
    distinct = list(dict.fromkeys(kinds))
    if narrow and len(distinct) == 1:
        return distinct[0]
    return pa.dense_union([pa.field(str(kind), kind) for kind in distinct])


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    try:
        if not pa.types.is_union(kind):
            return from_list([_struct(each) if type(each) is tuple else each for each in values], kind)
        return _union(values, kind)
    except (pa.ArrowException, OverflowError) as error:
        raise DataError(f"a row holds a value that {kind} cannot hold: {error}") from error


def _struct(value: Any) -> Any:
    if type(value) is tuple:
        return {str(place): _struct(part) for place, part in enumerate(value)}
    return value


def _union(values: list[Any], kind: pa.DataType) -> pa.Array:
    """A dense union: each value goes to the first of the types that takes it."""
    children = [kind.field(place).type for place in range(kind.num_fields)]
    parts: list[list[Any]] = [[] for _ in children]
    codes, offsets = [], []
    for value in values:
        place = next(place for place, child in enumerate(children) if _takes(child, value))
        codes.append(place)
        offsets.append(len(parts[place]))
        parts[place].append(_struct(value))
    arrays = [pa.array(part, child) for part, child in zip(parts, children, strict=True)]
    return pa.UnionArray.from_dense(
        pa.array(codes, pa.int8()),
        pa.array(offsets, pa.int32()),
        arrays,
        [kind.field(i).name for i in range(len(arrays))],
    )


def _takes(kind: pa.DataType, value: Any) -> bool:
    if value is None:
        return True
    if isinstance(value, bool):
        return bool(pa.types.is_boolean(kind))
    if isinstance(value, int):
        return (bool(pa.types.is_int64(kind)) and -(2**63) <= value < 2**63) or (
            bool(pa.types.is_uint64(kind)) and value >= 0
        )
    if isinstance(value, float):
        return bool(pa.types.is_float64(kind))
    if isinstance(value, str):
        return bool(pa.types.is_string(kind))
    if not pa.types.is_struct(kind) or kind.num_fields != len(value):
        return False
    return all(_takes(kind.field(place).type, part) for place, part in enumerate(value))


class RowsPart(Part):
    """All rows of a run, as `hamlet.output.result.Results` takes them."""

    name = "rows"
    word = column = "specification"

    def __init__(self, form: RowForm, found: Sequence[Found], clock: Clock | None, start: int) -> None:
        self._form, self._found, self._clock, self._start = form, found, clock, start

    def __len__(self) -> int:
        return len(self._found)

    def dicts(self) -> list[dict[str, Any]]:
        """Dicts: ``trigger, time`` and parameters of triggers; ``stream, time, value`` and parameters of outputs."""
        return self._form.dicts(self._found, self._clock, self._start)

    def table(self) -> pa.Table:
        """The rows as one table; columns that a row has not are NULL.

        Where values are of several types there is a column for each: ``value_int``, ``value_float``, ``value_text``.
        """
        return pa.Table.from_batches([typed_rows(self._form.batch(self._found, self._clock, self._start))])

    def shown(self, limit: int) -> Texts:
        """The first rows as texts."""
        first = self._form.dicts(self._found[:limit], self._clock, self._start)
        return shown_rows(first, self._form.schema(self._clock).names)
