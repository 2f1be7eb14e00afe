"""COUNT and SUM columns of a batch job as numbers, where numbers hold them: the count type ``auto`` on Spark.

Spark's types are chosen when a plan is made, and how large counts are is known only when there are rows. So `run` makes
text first, keeps it, and looks at it (`as_numbers`); `submit` looks at the partial rows it keeps anyway (`fitted`).
Spark's decimals have at most 38 digits; Parquet's have 76.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.functions import expr

from hamlet.output.fitting import DECIMAL, INT64, REAL, TEXT, holding, is_counted, is_real, largest_of, type_note
from hamlet.output.query_rows import ResultColumn
from hamlet.spark.frames import quoted
from hamlet.spark.job import ROW, Job
from hamlet.spark.rows import Presenter
from hamlet.spark.slices import Batches, mapped
from hamlet.spark.tasks import Shipment

Types = tuple[tuple[str | None, ...], ...]  # of each query's columns

_FOUND = pa.schema([("query", pa.int32()), ("place", pa.int32()), ("rows", pa.int64()), ("largest", pa.string())])
_FOUND_TYPE = "query int, place int, rows long, largest string"
_SPARK = {INT64: "bigint", DECIMAL: "decimal(38,0)", REAL: "double"}
_INFINITE = "infinite"  # in place of a largest value


# ---------------------------------------------------------------------------------------------- a DataFrame


def as_numbers(frame: DataFrame, queries: Sequence[Sequence[ResultColumn]]) -> tuple[DataFrame, list[str]]:
    """Result rows whose COUNT and SUM columns are text, with numbers in place of the text where they fit.

    Parameters
    ----------
    frame : DataFrame
        Is computed once more for the largest values, so it should be kept.
    queries : sequence of sequences of ResultColumn
        The columns of each query; those of one name are one column.

    Returns
    -------
    (DataFrame, list of str)
        The rows, and a note for each column that is not int64 (nor a double).
    """
    counted = [each for columns in queries for each in columns if is_counted(each)]
    names = list(dict.fromkeys(each.name for each in counted))
    if not names:
        return frame, []
    # The text is of integers or, with floats, as 3.0 and 1.2345678901234567e+456, all of which a decimal reads.
    found = frame.agg(*(expr(each) for name in names for each in _measures(quoted(name)))).first()
    assert found is not None, "an aggregate over all rows has one row"
    chosen: dict[str, str] = {}
    for place, name in enumerate(names):
        sums = {is_real(each) for each in counted if each.name == name}
        chosen[name] = _chosen(sums, *found[3 * place : 3 * place + 3])
    columns = [expr(_as(quoted(name), chosen.get(name, TEXT))).alias(name) for name in frame.columns]
    notes = (type_note(None, name, kind) for name, kind in chosen.items())
    return frame.select(*columns), [each for each in notes if each is not None]


def _measures(name: str) -> tuple[str, str, str]:
    """Whether some number needs more than a decimal, whether more than int64, and the largest double."""
    decimal = f"try_cast({name} as decimal(38,0))"
    return (
        f"coalesce(bool_or({decimal} is null and {name} is not null), false)",
        f"coalesce(bool_or({decimal} not between -9223372036854775808 and 9223372036854775807), false)",
        f"coalesce(max(abs(try_cast({name} as double))), 0.0D)",
    )


def _as(name: str, kind: str) -> str:
    if kind == INT64:  # by way of a decimal, which reads 3.0 too
        return f"cast(cast({name} as decimal(38,0)) as bigint)"
    return name if kind == TEXT else f"cast({name} as {_SPARK[kind]})"


def _chosen(sums: set[bool], beyond_decimal: bool, beyond_int64: bool, largest: float) -> str:
    if True in sums:
        return REAL if sums == {True} and largest != float("inf") else TEXT
    if beyond_decimal:
        return TEXT
    return DECIMAL if beyond_int64 else INT64


# --------------------------------------------------------------------------------------------------- files


def fitted(job: Job, rows: DataFrame) -> Types:
    """What the columns of each query are in Parquet: the narrowest types that hold the results of partial rows.

    The largest values of the partial rows, and how many there are, often tell; where they do not, the partial rows are
    merged to see.

    Parameters
    ----------
    job : Job
    rows : DataFrame
        Its partial rows, which are kept.
    """
    columns = job.columns
    parts = _largest(job, rows)
    whole = all(route.whole for route in job.routes)
    bounds = _types(columns, parts, False), _types(columns, parts, not whole)
    if bounds[0] == bounds[1]:
        return bounds[0]
    met = rows.repartition(job.partitions, *ROW).sortWithinPartitions(*ROW)
    return _types(columns, _largest(job, met), False)


Found = dict[tuple[int, int], list[tuple[int, int | None]]]  # rows, and their largest value


def _largest(job: Job, rows: DataFrame) -> Found:
    """Per query and column what each task has found; partial rows of one window and group that are neighbours merge."""
    found: Found = {}
    for each in mapped(rows, partial(_looked, job.shipment), _FOUND_TYPE).collect():
        value = None if each["largest"] == _INFINITE else int(each["largest"], 16)
        found.setdefault((each["query"], each["place"]), []).append((each["rows"], value))
    return found


def _looked(shipment: Shipment, batches: Batches) -> Batches:
    found: Found = {}
    for query, rows in Presenter(shipment).rows(batches):
        for place, column in enumerate(rows.columns):
            if is_counted(column):
                largest = found.setdefault((query, place), [])
                largest += ((len(piece.starts), largest_of(piece.values[place])) for piece in rows.pieces)
    for (query, place), each in found.items():
        count, most = sum(rows for rows, _ in each), _most(each)
        text = _INFINITE if most is None else f"{most:x}"
        yield pa.RecordBatch.from_pylist([{"query": query, "place": place, "rows": count, "largest": text}], _FOUND)


def _most(found: Iterable[tuple[int, int | None]]) -> int | None:
    most = 0
    for _, value in found:
        if value is None:
            return None
        most = max(most, value)
    return most


def _types(columns: Sequence[Sequence[ResultColumn]], found: Found, merging: bool) -> Types:
    """The types of all columns; `merging` says that values may be sums of all that was found."""
    types: list[tuple[str | None, ...]] = []
    for query, each in enumerate(columns):
        own: list[str | None] = []
        for place, column in enumerate(each):
            parts = found.get((query, place), [])
            most = _most(parts)
            if not is_counted(column):
                own.append(None)
            elif is_real(column):
                own.append(TEXT if most is None else REAL)
            else:
                own.append(TEXT if most is None else holding(most * (sum(n for n, _ in parts) if merging else 1)))
        types.append(tuple(own))
    return tuple(types)


def notes_of(names: Sequence[str], columns: Sequence[Sequence[ResultColumn]], types: Types) -> list[str]:
    """A note for each column of the files that is neither int64 nor a double."""
    each = (
        type_note(name, column.name, kind)
        for name, own, kinds in zip(names, columns, types, strict=True)
        for column, kind in zip(own, kinds, strict=True)
        if kind is not None
    )
    return [note for note in each if note is not None]
