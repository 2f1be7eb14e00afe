"""Rows of policies as Arrow batches."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from hamlet.arrays import np, pa, pc
from hamlet.errors import DataError
from hamlet.input.buffers import from_list, from_numpy
from hamlet.output.holds import HOLDS
from hamlet.output.plain_rows import PlainRows
from hamlet.policies.plan.evaluation import Answer
from hamlet.policies.syntax.formula import Type

MOST_ROWS = 1 << 16  # of a batch
_ALL = slice(None)


def schema_of(names: Sequence[str], types: Sequence[Type], time_type: pa.DataType) -> pa.Schema:
    """The columns of a policy's rows: time, time_point and the free variables."""
    variables = ((name, arrow_type(kind)) for name, kind in zip(names, types, strict=True))
    return pa.schema([("time", time_type), ("time_point", pa.int64()), *variables])


def arrow_type(kind: Type) -> pa.DataType:
    """The type of a column of values."""
    return {"int": pa.int64(), "float": pa.float64(), "string": pa.string(), "bool": pa.bool_()}[kind]


def first_row(rows: pa.RecordBatch, tuples: Sequence[str]) -> tuple[pa.RecordBatch, bool]:
    """Rows up to the first one, of its time-point the least by these columns; and whether there is one.

    What comes before it are time-points that have none.
    """
    marked = rows.schema.names[-1] == HOLDS
    holds = rows.column(rows.num_columns - 1).to_pylist() if marked else [True] * rows.num_rows
    if True not in holds:
        return rows, False
    first = holds.index(True)
    rest = rows.slice(first)
    here = rest.filter(pc.equal(rest.column("time_point"), rest.column("time_point")[0]))
    least = here.sort_by([(name, "ascending") for name in tuples]).slice(0, 1) if tuples else here.slice(0, 1)
    return pa.Table.from_batches([rows.slice(0, first), least]).combine_chunks().to_batches()[0], True


def plain_rows(answer: Answer, names: Sequence[str], first: int, part: slice = _ALL) -> PlainRows | None:
    """Some rows of an answer without Arrow, None where their values need it; as `batch_of`, times are as they are."""
    columns = {"time": answer.times[part], "time_point": answer.points[part] + first}
    for place, name in enumerate(names):
        found = answer.plain_column(place, part)
        if found is None:
            return None
        columns[name] = found
    return PlainRows(columns)


def batch_of(answer: Answer, schema: pa.Schema, first: int, part: slice = _ALL) -> pa.RecordBatch:
    """Some rows of an answer; time-points are counted from `first` on."""
    from hamlet.input.moments import shown  # brings in Arrow

    times = from_numpy(answer.times[part])
    arrays = [shown(times, schema.field(0).type)]
    arrays.append(from_numpy(answer.points[part] + first))
    fields = [schema.field(0), schema.field(1)]
    for column, field in enumerate(list(schema)[2:]):
        array = array_of(answer.column(column, part), field.type, field.name)
        arrays.append(array)
        fields.append(field if array.type == field.type else pa.field(field.name, array.type))
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def batch_with_points(answer: Answer, schema: pa.Schema, first: int) -> pa.RecordBatch:
    """The rows of an answer, and one with nothing but its time for each time-point that has none."""
    from hamlet.input.moments import shown  # brings in Arrow

    assert answer.decided is not None
    rows = batch_of(answer, schema, first)
    begin, times = answer.decided
    lacking = np.setdiff1d(np.arange(begin, begin + len(times)), answer.points)
    stamps = from_numpy(times[lacking - begin])
    nulls = [pa.nulls(len(lacking), field.type) for field in list(rows.schema)[2:]]
    named = [shown(stamps, schema.field(0).type), from_numpy(lacking + first), *nulls]
    parts = [rows, pa.RecordBatch.from_arrays(named, schema=rows.schema)]
    marks = [np.ones(rows.num_rows, bool), np.zeros(len(lacking), bool)]
    both = pa.Table.from_batches(parts).append_column(HOLDS, from_numpy(np.concatenate(marks)))
    order = np.argsort(np.concatenate([answer.points, lacking]), kind="stable")
    return both.take(from_numpy(order)).combine_chunks().to_batches()[0]


def array_of(values: Any, kind: pa.DataType, name: str) -> pa.Array:
    """A column of values; integers of more than 64 bits make it one of decimals."""
    if isinstance(values, pa.Array):
        return values
    try:
        return from_list(values, kind)
    except (OverflowError, pa.ArrowInvalid):
        if kind != pa.int64():
            raise
    try:
        return pa.array([Decimal(value) for value in values], pa.decimal256(76, 0))
    except (OverflowError, pa.ArrowInvalid) as error:
        raise DataError(f"a value of {name} has more than 76 digits, and rows cannot hold it") from error
