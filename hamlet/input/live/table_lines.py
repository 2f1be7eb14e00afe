"""Lines of JSON and CSV as tables, a block at a time: the types of columns are learnt as the lines come.

What a column is, its first values say; integers widen to doubles. A line of another kind is a bad one: whoever calls
cuts the block until it stands alone.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json

from hamlet.errors import DataError
from hamlet.frontend.time_column import TIME
from hamlet.input.buffers import as_stream
from hamlet.input.csvfile import NULLS, preferred, whole_numbers, with_nulls
from hamlet.input.file_form import MARKS, repeated_column, told_better
from hamlet.input.json_line import MOST_BRACKETS, brackets_in, first_names
from hamlet.input.jsonbad import BadLines
from hamlet.input.jsonfile import TIMES, ZONED, means
from hamlet.input.missing import missing_column
from hamlet.input.moments import NUMBER, NoTimeError, as_seconds, clock_of
from hamlet.input.ordering import SortKey
from hamlet.input.widening import EXACT_SECONDS, FRACTION, is_clock, is_text, widen

_NO_OBJECT = re.compile(rb"^[ \t\r]*[^{\s]", re.MULTILINE)  # a first line with a bare null crashes Arrow's reader
ALIKE = "give all times with a point, or none"
_BLANK = re.compile(rb"(?:\A|\n)[ \t\r]*\n|(?:\A|\n)[ \t\r]+\Z")  # a line
_LONG_INTEGER = re.compile(rb"\d{19}")
_LONG_FIELD = r"^\s*[+-]?\d{19,}\s*$"
_BEYOND_64_BITS = 2.0**63
_FRACTION = "has a fraction, and no time before has one; give bounds a unit, such as [0,5s], or all times a fraction"
_FINER = "has more than six digits behind the point, and no time before has; give the first with nine digits"
_LOOKS_LIKE_TIME = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d|$)")


class BadLineError(DataError):
    """Some line of a block is no event."""


@dataclass(frozen=True)
class ParsedEvents:
    """Events of lines; with `closed`, a column that is not there is a mistake."""

    table: pa.Table
    closed: bool


class Columns:
    """What is known of the columns of a stream, by all its sources.

    Parameters
    ----------
    key : SortKey
    type_column : str
    declared : mapping of str to pyarrow.DataType
        Types that somebody has declared.

    Attributes
    ----------
    types : dict of str to pyarrow.DataType
    written : bool
        Whether times are text in JSON.
    settled : bool
        Whether events have come, and so the time column is known.
    coded : bool or None
        Whether event types are integers in JSON, as the first of them is; None before one comes.
    keeps_seconds : bool
        Whether times that begin with whole seconds must go on so, since something is measured in their unit.
    """

    written = settled = keeps_seconds = False
    coded: bool | None = None

    def __init__(self, key: SortKey, type_column: str, declared: Mapping[str, pa.DataType] | None = None) -> None:
        self.key = key
        self.type_column = type_column
        self.types: dict[str, pa.DataType] = dict(declared or {})
        self.declared = frozenset(self.types)
        if type_column not in key.names:
            self.types[type_column] = pa.string()

    def settle(self, names: Iterable[str]) -> None:
        """Learn from the first events which column has the times."""
        if not self.settled and self.key.time == TIME:
            self.key = self.key.among(names)
            if self.key.time != TIME and self.types.pop(self.key.time, None) is not None:
                self.declared -= {self.key.time}

    def saved(self) -> pa.Schema:
        """What was learnt, as a schema with a note."""
        note = {"time": self.key.time, "settled": self.settled, "written": self.written, "coded": self.coded}
        return pa.schema(list(self.types.items()), {"learnt": json.dumps(note)})

    def resume(self, saved: pa.Schema) -> None:
        """Go on with what was learnt."""
        note = json.loads((saved.metadata or {}).get(b"learnt", b"{}"))
        if note:
            self.settle([note["time"]])
            self.settled, self.written, self.coded = note["settled"], note["written"], note["coded"]
        self.types |= dict(zip(saved.names, saved.types, strict=True))

    def lasting(self, name: str, moments: pa.ChunkedArray) -> pa.ChunkedArray:
        """The first timestamps of a column, in microseconds where that loses nothing: others may have a fraction."""
        if self.keeps_seconds and name == self.key.time and moments.type.unit == "s":
            return moments
        try:
            return moments.cast(pa.timestamp("us", moments.type.tz))
        except pa.ArrowInvalid:
            return moments

    def finer(self, name: str, kind: pa.DataType) -> BadLineError:
        """That a time is finer than those before."""
        return BadLineError(f"{name!r} {_FRACTION if kind.unit == 's' else _FINER}")

    def learn(self, table: pa.Table) -> None:
        """Take the types of a table that was good throughout."""
        self.settled = True
        for field in table.schema:
            if not pa.types.is_null(field.type):
                self.types[field.name] = field.type

    def with_types(self, table: pa.Table) -> pa.Table:
        """A good table, its event types as text where they are integers; whether they are is known from then on."""
        place = table.schema.get_field_index(self.type_column)
        if place < 0 or self.types.get(self.type_column) != pa.string():
            return table
        column = table.column(place)
        if self.coded is None and column.null_count < len(column):
            self.coded = pa.types.is_integer(column.type)
        return table.set_column(place, self.type_column, column.cast(pa.string()))

    def kind_of_types(self, found: pa.DataType) -> pa.DataType:
        """What the event types of a block are read as, where they look like this; BadLineError where none is."""
        if not (is_text(found) or pa.types.is_timestamp(found) or pa.types.is_integer(found) or found == pa.null()):
            raise BadLineError(f"{self.type_column!r} holds {found}, and event types are text or integers")
        is_coded = pa.types.is_integer(found) if self.coded is None else self.coded
        return pa.int64() if is_coded else pa.string()

    def in_json(self) -> dict[str, pa.DataType]:
        """The known types as JSON has them: times may be text, and event types integers, taken as their digits."""
        types = {**self.types, self.key.time: pa.string()} if self.written else self.types
        if types.get(self.type_column) != pa.string() or self.coded is False:
            return types
        return {**types, self.type_column: pa.int64() if self.coded else pa.null()}

    def check(self, table: pa.Table) -> None:
        """Raise BadLineError where an event has no time, or one of another kind."""
        for name in self.key.names:
            if name not in table.schema.names:
                raise BadLineError(f"there is no {name!r}")
            column = table.column(name)
            if column.null_count:
                raise BadLineError(f"{name!r} is NULL")
            if not is_clock(column.type):
                raise BadLineError(f"{name!r} holds {column.type}, which is no time")
            if column.type == FRACTION and pa.types.is_integer(self.types.get(name, column.type)):
                raise BadLineError(f"{name!r} has a fraction, and no time before has one; {ALIKE}")


class JsonLines:
    """Lines of JSON objects.

    Parameters
    ----------
    columns : Columns
    """

    closed = False
    header = False

    def __init__(self, columns: Columns) -> None:
        self._columns = columns

    def begin(self, line: bytes) -> None:
        """There is no header."""

    def parse(self, block: bytes) -> pa.Table | None:
        """The events of a block of lines, None where all are blank.

        Raises
        ------
        BadLineError
        """
        rows = lines_in(block)
        if not rows:
            return None
        if not self._columns.settled:
            self._columns.settle(first_names(block.splitlines()))
        try:
            table = self._table(block)
        except pa.ArrowException as error:
            raise BadLineError(str(error)) from None
        if table.num_rows != rows:
            raise BadLineError("a line holds several objects")
        self._columns.check(table)
        table = self._columns.with_types(table)
        self._columns.learn(table)
        return table

    def _table(self, block: bytes) -> pa.Table:
        """The lines as a table; columns that are known keep their types, which may widen."""
        if not block.isascii():
            try:
                str(block, "utf-8")
            except UnicodeDecodeError:
                raise BadLineError("the line is not UTF-8 text") from None
        if _NO_OBJECT.search(block) or brackets_in(block) > block.count(b"\n") + MOST_BRACKETS:
            for line in block.split(b"\n"):
                if line.strip() and (reason := self.reason(line)) is not None:
                    raise BadLineError(reason)
        if _LONG_INTEGER.search(block):
            for line in block.split(b"\n"):
                if _LONG_INTEGER.search(line) and (reason := self.reason(line)) is not None:
                    raise BadLineError(reason)
        known, kinds = self._columns.types, self._columns.type_column
        time = self._columns.key.time
        asked = {name: pa.string() if pa.types.is_timestamp(kind) else kind for name, kind in known.items()}
        if self._columns.coded:
            asked[kinds] = pa.int64()
        if self._columns.written:
            asked[time] = pa.string()
        elif known.get(time) == FRACTION:
            asked[time] = EXACT_SECONDS
        try:
            table = _read_json(block, pa.schema(list(asked.items())))
        except pa.ArrowException:
            found = _read_json(block, None)  # an integer column with a double in it
            for field in found.schema:
                wide = widen(known.get(field.name, pa.null()), field.type)
                fixed = field.name in self._columns.declared or field.name not in asked
                if not fixed and wide is not None and not pa.types.is_timestamp(wide):
                    asked[field.name] = wide
            if kinds in found.schema.names and known.get(kinds) == pa.string():
                asked[kinds] = self._columns.kind_of_types(found.schema.field(kinds).type)
            table = _read_json(block, pa.schema(list(asked.items())))
        place = table.schema.get_field_index(time)
        if place >= 0 and pa.types.is_floating(table.schema.field(place).type):
            asked[time] = EXACT_SECONDS
            table = _read_json(block, pa.schema(list(asked.items())))
        return self._with_times(table, block)

    def _with_times(self, table: pa.Table, block: bytes) -> pa.Table:
        """Columns that hold times, as such: what is a time is known by the first values of a column."""
        known = self._columns.types
        texts = None
        for place, name in enumerate(table.schema.names):
            kind = known.get(name)
            column = table.column(name)
            if name == self._columns.key.time and self._is_number(column):
                table = table.set_column(place, name, self._seconds(column))
                continue
            if kind is None and pa.types.is_timestamp(column.type) and not ZONED.search(block):
                table = table.set_column(place, name, self._columns.lasting(name, column))
                continue
            if kind is None and pa.types.is_timestamp(column.type):  # Arrow's guess, which forgets zones
                texts = texts if texts is not None else _as_text(block, table)
                column = texts.column(name)
                table = table.set_column(place, name, column)
            if name == self._columns.key.time and is_text(column.type):
                column = pc.ascii_trim_whitespace(column)
            if kind is not None and pa.types.is_timestamp(kind):
                try:
                    table = table.set_column(place, pa.field(name, kind), column.cast(kind))
                except pa.ArrowInvalid:
                    if kind.unit != "ns" and means(column, pa.timestamp("ns", kind.tz)):
                        raise self._columns.finer(name, kind) from None
                    raise
            elif kind is None and is_text(column.type):
                moments = _moments(column)
                if moments is not None:
                    table = table.set_column(place, pa.field(name, moments.type), moments)
        return table

    def _is_number(self, column: pa.ChunkedArray) -> bool:
        """Whether times are decimals, or text that is a number."""
        first = pc.first(column).as_py() if is_text(column.type) else None
        return bool(column.type == EXACT_SECONDS) or (first is not None and NUMBER.fullmatch(first) is not None)

    def _seconds(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """Times that are numbers as a clock; raises BadLineError where one is none."""
        known = self._columns.types.get(self._columns.key.time)
        try:
            found = as_seconds(column, "") if FRACTION in (known, column.type) else clock_of(column)
        except (NoTimeError, DataError) as error:
            raise BadLineError(str(error)) from None
        self._columns.written = is_text(column.type)
        return found

    def reason(self, line: bytes) -> str | None:
        """What is wrong with a line by itself, None where nothing is."""
        bad = BadLines(self._columns.key)
        known = self._columns.types.get(self._columns.key.time)
        if known is not None and pa.types.is_integer(known) and not self._columns.written:
            found = re.search(rb'"%b"\s*:\s*-?\d+[.eE]' % re.escape(self._columns.key.time.encode()), line)
            if found is not None:
                return f"{self._columns.key.time!r} has a fraction, and no time before has one; {ALIKE}"
        if not bad.find(line, 1, self._columns.in_json()):
            return None
        return bad.dropped.examples[0].removeprefix("line 1: ")


class Lines(ABC):
    """A reader of lines that says by `parse` alone what is wrong with one."""

    @abstractmethod
    def parse(self, block: bytes) -> Any:
        """The events of a block of lines; BadLineError where there are none."""

    def reason(self, line: bytes) -> str | None:
        """What is wrong with a line by itself, None where nothing is."""
        try:
            self.parse(line)
        except BadLineError as error:
            return str(error)
        return None


class CsvLines(Lines):
    """Lines of CSV behind a header.

    Parameters
    ----------
    columns : Columns
    name : str
        Of the source, for messages.
    delimiter : str, optional
        By default the header tells.
    names : sequence of str, optional
        The columns, where no header comes.
    may_read : callable
        Whether somebody may read a column; in others may be what is no text in UTF-8.
    """

    closed = True

    def __init__(
        self,
        columns: Columns,
        name: str,
        delimiter: str | None = None,
        names: Sequence[str] | None = None,
        may_read: Callable[[str], bool] = lambda _: True,
    ) -> None:
        self._may_read = may_read
        self._columns = columns
        self._name = name
        self._asked = delimiter
        self.delimiter = delimiter or ","
        self.names = None if names is None else list(names)
        self._fixed = names is not None
        if names is not None:
            self._look_at_names(list(names))

    @property
    def header(self) -> bool:
        """Whether a header comes first."""
        return not self._fixed

    def begin(self, line: bytes) -> None:
        """Take a header.

        Raises
        ------
        DataError
            If it is none.
        """
        names, self.delimiter = header_of(line, self._asked, self._name)
        self._look_at_names(names)
        self.names = names

    def _look_at_names(self, names: Sequence[str]) -> None:
        if (repeated := repeated_column(names)) is not None:
            raise DataError(f"{self._name}: {repeated}")
        self._columns.settle(names)
        needed = {"time": self._columns.key.time, "order": self._columns.key.order, "type": self._columns.type_column}
        for role, name in needed.items():
            if name and name not in names:  # tables of SQL have no such column
                if any(re.fullmatch(r"[+-]?\d+(\.\d+)?", each, re.ASCII) for each in names):
                    raise DataError(
                        f"{self._name}:1: the first line must name the columns, and it is {','.join(names)[:60]!r}; "
                        "put a line such as time,type,... before it, or give --columns time,type,..."
                    )
                raise DataError(f"{self._name}: {missing_column(name, names, role, f'--{role}-column')}")

    def parse(self, block: bytes) -> pa.Table | None:
        """The events of a block of lines, None where all are blank.

        Raises
        ------
        BadLineError
        """
        if not block.strip(b"\r\n"):
            return None
        known = {name: self._columns.types[name] for name in self.names or () if name in self._columns.types}
        try:
            table = self._read(block, known)
        except pa.ArrowException:
            try:
                table = self._read(block, self._widened(block, known))
            except pa.ArrowException as error:
                raise BadLineError(without_place(str(error), self.names or ())) from None
        self._refuse_long_integers(table, block)
        self._columns.check(table)
        self._columns.learn(table)
        return table

    def _widened(self, block: bytes, known: Mapping[str, pa.DataType]) -> dict[str, pa.DataType]:
        """The known types, wide enough for a block."""
        found = self._read(block, {})
        wide = {}
        for name, kind in known.items():
            given = found.schema.field(name).type
            if name == self._columns.key.time and pa.types.is_integer(kind) and pa.types.is_floating(given):
                raise BadLineError(f"{name!r} has a fraction, and no time before has one; {ALIKE}")
            if pa.types.is_binary(given):
                wide[name] = given
                continue
            if pa.types.is_timestamp(kind) and pa.types.is_timestamp(given) and given.unit == "ns" != kind.unit:
                raise self._columns.finer(name, kind)
            other = widen(kind, given)
            keep = name in self._columns.declared or kind == FRACTION or pa.types.is_timestamp(kind) or is_text(kind)
            wide[name] = kind if keep or other is None else other
        return wide

    def _read(self, block: bytes, types: Mapping[str, pa.DataType]) -> pa.Table:
        types = {name: EXACT_SECONDS if kind == FRACTION else kind for name, kind in types.items()}
        time = self._columns.key.time
        has_plus = b"+" in block
        whole = [name for name, kind in types.items() if has_plus and kind == pa.int64()]
        table = pa_csv.read_csv(
            as_stream(block),
            read_options=pa_csv.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=self.names),
            parse_options=pa_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=b'"' in block),
            convert_options=pa_csv.ConvertOptions(
                column_types={**types, **dict.fromkeys(whole, pa.string())},
                include_columns=[name for name in self.names or () if name],
                null_values=NULLS,
                strings_can_be_null=False,
            ),
        )
        for place, field in enumerate(table.schema):
            kind = preferred(field.type)
            if field.name in whole:
                table = table.set_column(place, field.name, whole_numbers(table.column(place)))
                continue
            if has_plus and field.name not in types and pa.types.is_floating(kind):
                with suppress(pa.ArrowInvalid):
                    return self._read(block, {**types, field.name: pa.int64()})
            if pa.types.is_binary(kind) and self._may_read(field.name):
                raise BadLineError(f"column {field.name!r} is not UTF-8 text")
            if field.name not in types and pa.types.is_timestamp(kind):
                table = table.set_column(place, field.name, self._columns.lasting(field.name, table.column(place)))
                continue
            if field.name == time and pa.types.is_floating(kind):
                return self._read(block, {**types, time: FRACTION})
            if field.name == time and kind == EXACT_SECONDS:
                try:
                    table = table.set_column(place, time, as_seconds(table.column(place), time))
                except DataError as error:
                    raise BadLineError(str(error)) from None
                continue
            if not kind.equals(field.type):
                table = table.set_column(place, pa.field(field.name, kind), table.column(place).cast(kind))
        (batch,) = table.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]
        return pa.Table.from_batches([with_nulls(batch)])

    def _refuse_long_integers(self, table: pa.Table, block: bytes) -> None:
        """Integers of more than 64 bits would be read as doubles, and different keys as equal ones."""
        huge = {}
        for name, column in zip(table.schema.names, table.columns, strict=True):
            if pa.types.is_floating(column.type) and column.null_count < len(column):
                largest = pc.max(pc.abs(column)).as_py()
                if largest is not None and largest >= _BEYOND_64_BITS:
                    huge[name] = pa.string()
        for name in huge:
            texts = self._read(block, huge).column(name)
            if pc.any(pc.match_substring_regex(texts, _LONG_FIELD)).as_py():
                raise BadLineError(f"{name!r} holds an integer of more than 64 bits")


def header_of(line: bytes, delimiter: str | None, name: str) -> tuple[list[str], str]:
    """The names in a header, and what separates them.

    Raises
    ------
    DataError
    """
    try:
        text = str(line, "utf-8").strip("\r\n")
    except UnicodeDecodeError as error:
        raise DataError(f"{name}:1: the header is not UTF-8 text: {error.reason}") from error
    if "\r" in text and '"' not in text:
        raise DataError(f"{name}:1: lines end with a carriage return alone; end them with a newline (tr '\\r' '\\n')")
    if delimiter is None:
        delimiter = "," if "," in text else max(MARKS, key=text.count)
        delimiter = delimiter if delimiter in text else ","
    reader = pa_csv.read_csv(as_stream(text.encode() + b"\n"), parse_options=pa_csv.ParseOptions(delimiter=delimiter))
    return [each.strip() for each in reader.schema.names], delimiter


def _read_json(block: bytes, schema: pa.Schema | None) -> pa.Table:
    parse = pa_json.ParseOptions() if schema is None else pa_json.ParseOptions(schema, False, "infer")
    read = pa_json.ReadOptions(use_threads=False, block_size=len(block) + 1)
    return pa_json.read_json(as_stream(block), read, parse)


def _as_text(block: bytes, table: pa.Table) -> pa.Table:
    """A block whose columns of times are texts."""
    fields = [(each.name, pa.string() if pa.types.is_timestamp(each.type) else each.type) for each in table.schema]
    return _read_json(block, pa.schema(fields))


def _moments(texts: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Texts as the timestamps that they mean; None where some is none."""
    first = next((each for each in texts.to_pylist() if each is not None), None)
    if first is None or not _LOOKS_LIKE_TIME.match(first):
        return None
    for kind in TIMES:
        try:
            return texts.cast(kind)
        except pa.ArrowInvalid:
            continue
    return None


def lines_in(block: bytes) -> int:
    """How many lines of a block are not blank."""
    count = block.count(b"\n") + (not block.endswith(b"\n") and bool(block))
    if _BLANK.search(block):
        count = sum(1 for line in block.split(b"\n") if line.strip())
    return count


def without_place(text: str, names: Sequence[str]) -> str:
    """Arrow's complaint without its counts of rows, which are those of a block, and with the name of the column."""
    text = re.sub(r"(CSV parse error: )?Row #\d+: ", "", text)
    place = re.match(r"In CSV column #(\d+): ", text)
    if place is not None and int(place[1]) < len(names):
        return f"column {names[int(place[1])]!r}: {text.removeprefix(place[0])}"
    return told_better(text)
