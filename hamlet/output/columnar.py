"""Rows in Arrow columns as JSON lines, CSV, Parquet or MonPoly's lines: a batch of rows at a time, column by column.

Values look as in `hamlet.output.query_text`.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from hamlet.arrays import np, npt, pa, pc
from hamlet.errors import OptionError, OutputError, one_of
from hamlet.input.buffers import from_numpy, values_of, where_null
from hamlet.language.schema import Clock
from hamlet.output._lines import Columns, rows_of, tuples_of
from hamlet.output.digits import seconds_text
from hamlet.output.holds import HOLDS
from hamlet.output.plain_rows import Rows, arrow_rows, joined_rows
from hamlet.output.time_text import time_text
from hamlet.output.typed import places_in, typed_rows, typed_schema

FORMATS = ("json", "csv", "parquet", "monpoly")
EXTENSIONS = {"json": "json", "csv": "csv", "parquet": "parquet", "monpoly": "log"}
_Null = TypeVar("_Null", str, None)
_NATIVE = {"int64": "int", "double": "float", "bool": "bool", "i8": "int", "f8": "float", "b1": "bool"}  # Arrow, numpy


class Encoder:
    """Turns batches of rows of one schema into text."""

    def head(self) -> str:
        """What stands before the first row."""
        return ""

    def lines(self, rows: Any) -> str:
        """The text of rows."""
        raise NotImplementedError

    def tail(self) -> str:
        """What the last row still needs."""
        return ""


def encoder_of(
    output_format: str,
    names: Sequence[str],
    *,
    lead: Mapping[str, str] | None = None,
    sparse: bool = False,
    tuples: Sequence[str] | None = None,
    header: Sequence[str] | None = None,
) -> Encoder:
    """An encoder for rows of some columns.

    Parameters
    ----------
    output_format : {'json', 'csv', 'monpoly'}
    names : sequence of str
        Of the columns.
    lead : mapping of str to str, optional
        Columns before all others that are the same in every row.
    sparse : bool
        Whether JSON leaves NULL out.
    tuples : sequence of str, optional
        The columns of a tuple in MonPoly's lines.
    header : sequence of str, optional
        The columns of a CSV file where they are others; what a row lacks is empty.

    Raises
    ------
    OptionError
        If the format is not known here.
    """
    lead = dict(lead or {})
    if output_format == "json":
        return JsonEncoder(names, lead, sparse)
    if output_format == "csv":
        return CsvEncoder(lead, header if header is not None else [*lead, *names])
    if output_format == "monpoly" and tuples is not None:
        return MonpolyEncoder(tuples)
    raise OptionError(f"output format {output_format!r} cannot be text; it must be {one_of(('json', 'csv'))}")


class JsonEncoder(Encoder):
    """JSON lines."""

    def __init__(self, names: Sequence[str], lead: Mapping[str, str], sparse: bool) -> None:
        first = "".join(f"{quoted(name)}: {quoted(value)}, " for name, value in lead.items())
        self._first = "{" + first
        self._keys = [f"{quoted(name)}: " for name in names]
        self._sparse = sparse

    def lines(self, rows: Rows) -> str:
        """A line per row."""
        if self._sparse:
            found = []
            values = [_texts(column, _json_value, None) for column in rows.columns]  # an infinite one is there, as null
            for texts in zip(*values, strict=True):
                pairs = [key + value for key, value in zip(self._keys, texts, strict=True) if value is not None]
                found.append(self._first + ", ".join(pairs) + "}\n")
            return "".join(found)
        columns = _Told("null")
        for column in rows.columns:
            columns.tell(column, json_texts, finite=True)
        befores = [f"{', ' * (place > 0)}{key}" for place, key in enumerate(self._keys)]
        befores[:1] = [f"{self._first}{each}" for each in befores[:1]]
        return rows_of(befores, columns.whole(), "}\n", rows.num_rows) if befores else ""


class CsvEncoder(Encoder):
    """CSV with a header."""

    def __init__(self, lead: Mapping[str, str], header: Sequence[str]) -> None:
        self._lead = {name: csv_field(value) for name, value in lead.items()}
        self._header = list(header)

    def head(self) -> str:
        """The names of the columns; nothing where these would have been known by the first row."""
        return ",".join(map(csv_field, self._header)) + "\n" if self._header else ""

    def lines(self, rows: Rows) -> str:
        """A line per row."""
        befores: list[str] = []
        columns = _Told("")
        before, count = "", int(rows.num_rows)
        for place, name in enumerate(self._header):
            before += "," * (place > 0)
            if name in self._lead:
                before += self._lead[name]
            elif name in rows.column_names:
                columns.tell(rows.column(name), csv_texts)
                befores.append(before)
                before = ""
        if not befores:
            return (before + "\n") * count
        return rows_of(befores, columns.whole(), before + "\n", count)


class MonpolyEncoder(Encoder):
    """MonPoly's lines: a time-point with all its tuples, ``@41 (time point 0): (2,4,2003) (2,5,2003)``.

    Where batches have a column `HOLDS`, every time-point has a line, in the form that MonPoly has with ``-verbose``:
    ``@41 (time point 0): ((2,4,2003),(2,5,2003))``.

    Rows come in the order of time-points; a line ends where the next time-point begins, so the rows of the last one are
    held back. The tuples of a line are in the order of their values, which is not the order of the rows where their
    columns are others.
    """

    def __init__(self, tuples: Sequence[str]) -> None:
        self._tuples = list(tuples)
        self._held: list[Rows] = []  # rows of the time-point that is open

    def lines(self, rows: Rows) -> str:
        """The lines of time-points that are complete."""
        points = values_of(rows.column("time_point"))
        if not self._tuples or not len(points):  # then each row is a line
            return self._shown([rows]) if len(points) else ""
        found = []
        begin = 0
        if self._held:
            others = points != values_of(self._held[0].column("time_point"))[0]
            begin = int(np.argmax(others)) if others.any() else len(points)
            self._held.append(rows.slice(0, begin))
            if begin == len(points):
                return ""
            found.append(self.tail())
        last = int(np.searchsorted(points, points[-1]))
        if last > begin:
            found.append(self._shown([rows.slice(begin, last - begin)]))
        self._held.append(rows.slice(last))
        return "".join(found)

    def tail(self) -> str:
        """The line that is open."""
        held, self._held = self._held, []
        return self._shown(held) if held else ""

    def _shown(self, parts: list[Rows]) -> str:
        """The lines of complete time-points."""
        rows = joined_rows(parts)
        points = values_of(rows.column("time_point"))
        starts = np.flatnonzero(np.append(True, points[1:] != points[:-1]))
        every = rows.column_names[-1] == HOLDS
        holds = values_of(rows.column(HOLDS)) if every else np.ones(rows.num_rows, np.bool_)
        times = rows.column("time")
        times = times.take(starts if isinstance(times, np.ndarray) else from_numpy(starts))
        told = zip(csv_texts(times), points[starts].tolist(), strict=True)
        heads = [f"@{time} (time point {point}): " for time, point in told]
        if not self._tuples:
            return "".join(
                [f"{head}{str(held).lower()}\n" for head, held in zip(heads, holds[starts].tolist(), strict=True)]
            )
        columns = [rows.column(name) for name in self._tuples]
        order = np.arange(rows.num_rows)
        if rows.column_names[2 : 2 + len(columns)] != self._tuples:
            order = np.lexsort([*(_ranks(column) for column in reversed(columns)), points])
        told_columns = _Told("")
        for column in columns:
            told_columns.tell(column, lambda values: _texts(values, _monpoly_value, ""))
        signs = ("(", ",", ")") if every else ("", " ", "")
        ends = np.append(starts, rows.num_rows)
        return tuples_of(heads, ends, order, told_columns.whole(), *signs, holds.view(np.uint8))


def _native(column: Any) -> str | None:
    """What values are that can be written as they are, int64, doubles or Booleans; None where they are texts."""
    return _NATIVE.get(column.dtype.str[1:] if isinstance(column, np.ndarray) else str(column.type))


class _Told:
    """Columns as they are written, one after the other, and what is written for NULL."""

    def __init__(self, null: str) -> None:
        self.null = null
        self.kinds: list[str] = []
        self.values: list[Any] = []
        self.missing: list[Any] = []

    def tell(self, column: Any, texts: Callable[[Any], list[str]], finite: bool = False) -> None:
        """One more, as it is or as texts; of doubles perhaps only where all are finite."""
        if isinstance(column, list):  # these are texts already
            self._put("text", column, None)
            return
        kind = _native(column)
        values: Any = None if kind is None else values_of(column)
        if kind is None or (finite and kind == "float" and not np.isfinite(values).all()):
            kind, values, missing = "text", texts(column), None
        else:
            missing = where_null(column)
        self._put(kind, values.view(np.uint8) if kind == "bool" else values, missing)

    def _put(self, kind: str, values: Any, missing: npt.NDArray[np.bool_] | None) -> None:
        self.kinds.append(kind)
        self.values.append(values)
        self.missing.append(None if missing is None else missing.view(np.uint8))

    def whole(self) -> Columns:
        """All of them."""
        return Columns(self.kinds, self.values, self.missing, self.null)


def _ranks(column: Any) -> npt.NDArray[Any]:
    """Numbers that are in the order of a column's values, NULL first."""
    if _native(column) is not None and where_null(column) is None:
        return values_of(column)
    values = column.to_pylist()
    ranks = {value: place for place, value in enumerate(sorted({*values} - {None}), 1)}
    return np.array([ranks.get(value, 0) for value in values], np.int64)


def json_texts(column: Any) -> list[str]:
    """The values of a column as JSON, each; shape (rows,)."""
    return _texts(column, _json_value, "null")


def csv_texts(column: Any) -> list[str]:
    """The values of a column as CSV fields; shape (rows,)."""
    return _texts(column, _csv_value, "")


def _texts(column: Any, value_text: Callable[[Any], str], null: _Null) -> list[str | _Null]:
    """Texts of values, of Arrow's or numpy's, `null` for none; each distinct text or time is turned once."""
    if isinstance(column, np.ndarray):
        return [null if value is None else value_text(value) for value in column.tolist()]
    kind = column.type
    if pa.types.is_timestamp(kind):
        return _time_texts(column, value_text, null)
    if pa.types.is_duration(kind):
        ticks = column.cast(pa.int64()).to_pylist()
        return [null if each is None else seconds_text(np.timedelta64(each, kind.unit)) for each in ticks]
    if pa.types.is_integer(kind) and not column.null_count:
        return list(map(str, column.to_pylist()))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind):
        coded = column if pa.types.is_dictionary(kind) else pc.dictionary_encode(column)
        texts = [null if value is None else value_text(value) for value in coded.dictionary.to_pylist()]
        return [null if code is None else texts[code] for code in coded.indices.to_pylist()]
    if pa.types.is_union(kind):
        return _union_texts(column, value_text, null)
    if pa.types.is_nested(kind):
        whole = csv_field if value_text is _csv_value else str
        return [null if each is None else whole(each) for each in _nested_texts(column)]
    return [null if value is None else value_text(value) for value in column.to_pylist()]


def _union_texts(column: pa.UnionArray, value_text: Callable[[Any], str], null: _Null) -> list[str | _Null]:
    """The values of a dense union, each as one of its own type."""
    codes, places = (each.to_pylist() for each in places_in(column))
    texts = [_texts(column.field(code), value_text, null) for code in range(column.type.num_fields)]
    return [texts[code][place] for code, place in zip(codes, places, strict=True)]


def _nested_texts(column: pa.Array) -> list[str | None]:
    """Lists and structs as JSON, what is in them as it is written alone; a map as a list of pairs."""
    kind = column.type
    if pa.types.is_struct(kind):
        names = [quoted(field.name) for field in kind]
        fields = zip(*map(json_texts, column.flatten()), strict=True) if names else [()] * len(column)
        texts = (", ".join(map(": ".join, zip(names, values, strict=True))) for values in fields)
        there = column.is_valid().to_pylist()
        return [f"{{{text}}}" if each else None for text, each in zip(texts, there, strict=True)]
    if pa.types.is_map(kind):
        lists = column.to_pylist()
        pairs = [pair for each in lists if each is not None for pair in each]
        sides = [[pair[side] for pair in pairs] for side in range(2)]
        shown = map(json_texts, map(pa.array, sides, (kind.key_type, kind.item_type)))
        parts = iter([f"[{key}, {value}]" for key, value in zip(*shown, strict=True)])
        lengths = [None if each is None else len(each) for each in lists]
    else:
        parts, lengths = iter(json_texts(column.flatten())), pc.list_value_length(column).to_pylist()
    return [None if each is None else f"[{', '.join(islice(parts, each))}]" for each in lengths]


def _time_texts(column: pa.Array, value_text: Callable[[Any], str], null: _Null) -> list[str | _Null]:
    clock = Clock("time", column.type.unit, column.type)
    coded = pc.dictionary_encode(column.cast(pa.int64()))
    texts = [value_text(time_text(ticks, clock)) for ticks in coded.dictionary.to_pylist()]
    return [null if code is None else texts[code] for code in coded.indices.to_pylist()]


def quoted(text: str) -> str:
    """A text as a JSON string."""
    return json.dumps(text, ensure_ascii=False)


def _json_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else "null"
    if isinstance(value, (int, Decimal)):
        return str(value)
    return quoted(value if isinstance(value, str) else _value_text(value))


def _csv_value(value: Any) -> str:
    return csv_field(_value_text(value)) if isinstance(value, str) else _value_text(value)


def _value_text(value: Any) -> str:
    """A value as text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float, str)):
        return str(value)
    return _duration_text(value) if isinstance(value, pa.MonthDayNano) else str(value)


def _duration_text(value: pa.MonthDayNano) -> str:
    """An interval as ISO 8601 has it: ``P1M2DT30S``."""
    months, days, nanoseconds = value
    seconds = f"{nanoseconds / 1e9:.9f}".rstrip("0").rstrip(".")
    parts = [f"{months}M"] * bool(months) + [f"{days}D"] * bool(days)
    return f"P{''.join(parts)}" + (f"T{seconds}S" if nanoseconds or not parts else "")


# In MonPoly's quotes a backslash shields a quote or another one.
_TO_SHIELD = re.compile(r'["\\]')
_SHIELD = r"\\\g<0>"


def _monpoly_value(value: Any) -> str:
    if isinstance(value, str):
        return f'"{_TO_SHIELD.sub(_SHIELD, value)}"'
    return f"{value:g}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else str(value)


def csv_field(text: str) -> str:
    """A text as a field of CSV, in quotes where it needs them."""
    if not text or text != text.strip() or any(mark in text for mark in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


def folder_of(kind: str, name: str) -> str:
    """The name of a part's folder, percent-encoded."""
    return f"{kind}={quote(name, safe='')}"


@contextlib.contextmanager
def file_writer(
    directory: Path,
    output_format: str,
    kind: str,
    name: str,
    schema: pa.Schema,
    sparse: bool = False,
    tuples: Sequence[str] | None = None,
    file: str | None = None,
) -> Iterator[Callable[[Rows], None]]:
    """A new file ``<kind>=<name>/part-00000.<format>`` below a directory, written a batch at a time.

    A part without rows has its file too: Parquet with the schema, CSV with the header, else an empty file.

    Parameters
    ----------
    directory : pathlib.Path
        Must exist.
    output_format : {'json', 'csv', 'parquet', 'monpoly'}
    kind, name : str
        Of the part.
    schema : pyarrow.Schema
        Of the batches.
    sparse, tuples
        As for `encoder_of`.
    file : str, optional
        The file's name, where it is one of several; then their folder is there.

    Yields
    ------
    callable
        Takes a batch of rows; raises OutputError where an integer does not fit into a Parquet file's 64 bits.
    """
    folder = directory / folder_of(kind, name)
    if file is None:
        folder.mkdir()
    path = folder / (file or f"part-00000.{EXTENSIONS[output_format]}")
    if output_format == "parquet":
        plain = typed_schema(schema)
        import pyarrow.parquet as pq  # needed for this format only

        with pq.ParquetWriter(path, plain) as writer:

            def write_batch(rows: Rows) -> None:
                writer.write_batch(_fitting(typed_rows(arrow_rows(rows)), plain))

            yield write_batch
        return
    encoder = encoder_of(output_format, schema.names, sparse=sparse, tuples=tuples)
    with path.open("w", encoding="utf-8", newline="\n") as text:
        text.write(encoder.head())

        def write(rows: Rows) -> None:
            text.write(encoder.lines(rows))

        yield write
        text.write(encoder.tail())


def write_part(
    directory: Path,
    output_format: str,
    kind: str,
    name: str,
    part: str,
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    sparse: bool = False,
    tuples: Sequence[str] | None = None,
) -> int:
    """Write a file ``<kind>=<name>/<part>.<format>`` in a folder that is there; gives how many rows it has.

    It has its name once it is whole, and another one, with a point before, until then: a task may be killed, or run
    twice at once.
    """
    suffix = EXTENSIONS[output_format]
    unfinished = f".{part}-{uuid.uuid4().hex[:12]}.{suffix}"
    rows = 0
    with file_writer(directory, output_format, kind, name, schema, sparse, tuples, unfinished) as put:
        for batch in batches:
            if batch.num_rows:
                put(batch)
                rows += batch.num_rows
    folder = directory / folder_of(kind, name)
    (folder / unfinished).replace(folder / f"{part}.{suffix}")
    return rows


def dicts_of(table: pa.Table | pa.RecordBatch, unit: str, **lead: str) -> list[dict[str, Any]]:
    """Rows as dicts; integers are Python's, whatever their size, and times are in the type they came in.

    Parameters
    ----------
    table : pyarrow Table or RecordBatch
    unit : str
        Of times.
    **lead
        What each row begins with.
    """
    columns: dict[str, list[Any]] = {name: [value] * table.num_rows for name, value in lead.items()}
    for field in table.schema:
        column = table.column(field.name)
        if pa.types.is_timestamp(field.type):
            clock = Clock(field.name, unit, field.type)
            ticks = column.cast(pa.int64()).to_pylist()
            columns[field.name] = [None if each is None else clock.present(each) for each in ticks]
        elif pa.types.is_decimal(field.type):
            columns[field.name] = [None if each is None else int(each) for each in column.to_pylist()]
        else:
            columns[field.name] = column.to_pylist()
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def plain_batch(rows: pa.RecordBatch, schema: pa.Schema | None) -> pa.RecordBatch:
    """Rows as Parquet can hold them, in the types of a schema where one is given."""
    plain = typed_rows(rows)
    return plain if schema is None else _fitting(plain, schema)


def _fitting(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The rows in the types of a schema; integers of more than 64 bits come as decimals."""
    if rows.schema == schema:
        return rows
    try:
        return rows.cast(schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        wide = [name for name in schema.names if rows.schema.field(name).type != schema.field(name).type]
        raise OutputError(
            f"a value of {wide[0]} has more than 64 bits, which Parquet's integers do not hold; choose json or csv"
        ) from error
