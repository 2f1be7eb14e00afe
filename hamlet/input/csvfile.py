"""CSV files of events: a header line, then one event per line.

The whole file is read once before it counts as open, so that types are those of all rows, not of the first block; the
same pass tells whether the rows are in time order. An empty field is NULL; in columns of numbers, dates and truth
values NA, N/A, NULL, null, NaN and nan are NULL too, in columns of text they are text.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from hamlet.errors import DataError
from hamlet.input.buffers import as_stream, from_texts, scalar
from hamlet.input.clocked import batch_of
from hamlet.input.file_form import Dropped, FileForm, repeated_column, told_better, uneven_row
from hamlet.input.formats import COMPRESSIONS, may_contain
from hamlet.input.input_schema import other_type
from hamlet.input.missing import missing_column
from hamlet.input.moments import FORMS, as_seconds, nanoseconds_of
from hamlet.input.ordering import OrderCheck, SortKey
from hamlet.input.widening import EXACT_SECONDS, FRACTION, is_clock, is_text, widen, written_types

_BLOCK = 1 << 22  # bytes; a row must fit in one block
NULLS = ["", "NA", "N/A", "NULL", "null", "NaN", "nan"]
_BAD_VALUE = re.compile(
    r"In CSV column #(?P<column>\d+): (?:Row #(?P<line>\d+): )?CSV conversion error to .*?: "
    r"(?:invalid value '(?P<value>.*)'|expected (?:a|no) zone offset in '(?P<zoned>[^']*)')",
    re.DOTALL,
)
_BAD_TEXT = re.compile(
    r"In CSV column #(?P<column>\d+): (?:Row #(?P<line>\d+): )?CSV conversion error to string: invalid UTF8 data"
)
_BAD_ROW = re.compile(r"CSV parse error: (?:Row #(?P<line>\d+): )?(?P<problem>.*)", re.DOTALL)
_NO_SECONDS = "a time that nanoseconds cannot hold"
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?", re.ASCII)
_LONG_INTEGER = r"^\s*[+-]?\d{19,}\s*$"
_BEYOND_64_BITS = 2.0**63
_TIGHT = (pa.int64(), pa.uint64(), pa.float64(), pa.bool_())  # of columns whose bad values are told one by one


@dataclass(frozen=True)
class Misfit:
    """A value that is not of the type that its column is declared to have.

    Attributes
    ----------
    value : str
    place : str
        The file, with the line where that is known.
    kind : pyarrow.DataType
        The type.
    """

    value: str
    place: str
    kind: pa.DataType


class CsvFile:
    """A CSV file whose column types are known to hold for all its rows.

    Parameters
    ----------
    path : pathlib.Path
        May end in .gz, .bz2 or .zst.
    key : SortKey
        The time column, which must not widen to text, and the order column; `SortKey.among` the names of the header.
    type_column : str
        The column of the event types, which is text whatever it looks like.
    form : FileForm, optional
    known : mapping of str to pyarrow.DataType, optional
        Columns that must be there, and the types of their values in files that were read before: a value of another
        type is an error, where without it the type would widen.

    Attributes
    ----------
    dropped : Dropped
        Rows that are left out.
    misfits : dict of str to Misfit
        Of columns of a declared type (`hamlet.input.file_form.FileForm`), the first value that is none of it.
    """

    def __init__(
        self,
        path: Path,
        key: SortKey,
        type_column: str,
        form: FileForm | None = None,
        known: Mapping[str, pa.DataType] | None = None,
    ) -> None:
        self.name = str(path)
        self._known = known or {}
        self._form = form = form or FileForm()
        self.dropped = Dropped()
        self.misfits: dict[str, Misfit] = {}
        self._names: list[str] = []  # of all columns of the file, without blanks around them
        self._spelled: dict[str, str] = {}  # such names as the header has them
        self._drops = form.bad_rows == "drop"
        self._delimiter = form.of(path)
        self._nulls = NULLS if form.nulls is None else list(form.nulls)
        self._no_text = ("",) if form.nulls is None else tuple(each for each in form.nulls if each)
        self._loose: dict[str, pa.DataType] = {}  # key columns with text in them, of rows that are dropped
        self._type_column = type_column
        self._texts = (type_column, *form.texts)
        self._key = key
        self._signed: list[str] = []  # columns of integers with a plus sign, which are doubles to Arrow
        self._types = self._first_types()
        self._huge: list[str] = []  # columns of doubles that may have been integers of more than 64 bits
        self.rows: int | None
        self.ordered: bool | None
        self.rows, self.ordered = self._survey()
        self._types = written_types(self._types, key.time if form.whole_seconds else None)
        for name in self.misfits:
            self._types[name] = form.declared[name]
        self.schema = pa.schema([(name, self._types.get(name, pa.null())) for name in self._names if name])
        self._refuse_long_integers()

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows in the order of the file."""
        types = {column: self._types[column] for column in columns}
        if self._form.written_times and self._key.time in types and self._key.time not in self._loose:
            types[self._key.time] = pa.string()
        for batch in self._scan(types):
            yield with_nulls(batch, self._no_text)

    def _parsing(self, told: bool = False) -> pa_csv.ParseOptions:
        """How lines are cut into fields; `told` counts those that are dropped."""

        def bad(row: pa_csv.InvalidRow) -> str:
            if told:
                line = f"line {row.number}: " if row.number is not None else ""
                self.dropped.add(f"{line}{uneven_row(row.actual_columns, row.expected_columns, row.text)}")
            return "skip"

        handler = bad if self._drops else None
        return pa_csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=True, invalid_row_handler=handler)

    def _scan(
        self, types: dict[str, pa.DataType], threads: bool = True, *, told: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """The file's columns in these types; pyarrow's errors pass through.

        Only a single thread knows the line numbers of its errors.
        """
        if self._loose and not set(self._loose) <= set(types):
            wanted = list(types)
            types = {**types, **{name: self._types[name] for name in self._loose}}
            for batch in self._scan(types, threads, told=told):
                yield batch.select(wanted)
            return
        fractional = [name for name, kind in types.items() if kind == FRACTION and name not in self._loose]
        types = {
            name: pa.string() if name in self._loose else EXACT_SECONDS if name in fractional else kind
            for name, kind in types.items()
        }
        signed = [name for name in self._signed if types.get(name) == pa.int64()]
        types |= dict.fromkeys(signed, pa.string())
        read = {self._spelled.get(name, name): kind for name, kind in types.items()}
        reader = pa_csv.open_csv(
            self.name,
            read_options=pa_csv.ReadOptions(use_threads=threads, block_size=_BLOCK),
            parse_options=self._parsing(told),
            convert_options=pa_csv.ConvertOptions(
                column_types=read, include_columns=list(read), null_values=self._nulls, strings_can_be_null=False
            ),
        )
        with reader:
            for batch in reader:
                batch = batch.rename_columns(list(types)) if types and types.keys() != read.keys() else batch
                batch = self._as_seconds(batch) if self._key.time in fractional else batch
                for place in map(batch.schema.get_field_index, signed):
                    numbers = whole_numbers(batch.column(place), self._nulls)
                    batch = batch.set_column(place, batch.schema.names[place], numbers)
                yield self._tight(batch, told) if self._loose else batch

    def _as_seconds(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Times that are read as decimals, as the seconds that they are."""
        place = batch.schema.get_field_index(self._key.time)
        try:
            times = as_seconds(batch.column(place), self._key.time)
        except DataError as error:
            raise pa.ArrowInvalid(f"{_NO_SECONDS}: {error}") from error
        return batch.set_column(place, pa.field(self._key.time, FRACTION), times)

    def _tight(self, batch: pa.RecordBatch, told: bool) -> pa.RecordBatch:
        """A batch without the rows whose key is no time."""
        for name, kind in self._loose.items():
            place = batch.schema.get_field_index(name)
            texts = batch.column(place)
            values = pa.array([_key_of(text, kind) for text in texts.to_pylist()], kind)
            good = values.is_valid()
            if name not in self._key.names:  # a value that is not there is none that is wrong
                good = pc.or_(good, pc.is_in(texts, pa.array(self._nulls)))
            if told:
                for text in texts.filter(pc.invert(good)).to_pylist():
                    self.dropped.add(f"{name} is {text!r}")
            batch = batch.set_column(place, pa.field(name, kind), values).filter(good)
        return batch

    def _first_types(self) -> dict[str, pa.DataType]:
        """Column types by the first block; blocks behind it may widen them."""
        options = pa_csv.ConvertOptions(null_values=self._nulls, strings_can_be_null=False)
        parse = self._parsing()
        read = pa_csv.ReadOptions(use_threads=False, block_size=_BLOCK)
        try:
            with pa_csv.open_csv(self.name, read_options=read, parse_options=parse, convert_options=options) as reader:
                schema: pa.Schema = reader.schema
                names = self._names = [name.strip() for name in schema.names]
        except UnicodeDecodeError as error:
            raise DataError(f"{self.name}:1: the header is not UTF-8 text: {error.reason}") from error
        except pa.ArrowException as error:
            self._raise_unreadable(error)
        if (repeated := repeated_column(names)) is not None:
            raise DataError(f"{self.name}: {repeated}")
        self._spelled = dict(zip(names, schema.names, strict=True))
        self._key = self._key.among(names)
        if self._key.time not in names:
            self._look_at_header(names)
        reads = {name for name in names if name and (name in self._key.names or self._form.reads(name))}
        types = {  # spreadsheets give empty columns
            name: preferred(kind) for name, kind in zip(names, schema.types, strict=True) if name in reads
        }
        types |= {name: pa.string() for name in self._texts if name in types and name not in self._key.names}
        for name in self._known:
            if name not in types:
                raise DataError(f"{self.name}:1: {missing_column(name, names)}")
        if pa.types.is_floating(types.get(self._key.time, pa.null())):
            types[self._key.time] = FRACTION
        types |= self._known
        types |= {name: kind for name, kind in self._declared().items() if name in types}
        for name in self._key.names:
            kind = types.get(name, pa.null())
            if self._drops and not (is_clock(kind) or pa.types.is_null(kind)):
                self._loose[name] = types[name] = self._usual(name)
            elif is_text(kind):
                first = next(self._scan({name: types[name]}, threads=False)).column(0)[0].as_py()
                self._raise_bad_key(name, first, preferred(_type_of(first)))
        return types

    def _declared(self) -> dict[str, pa.DataType]:
        """The columns that are values of a type whatever they look like; times and orders are what they are."""
        return {name: kind for name, kind in self._form.declared.items() if name not in self._key.names}

    def _usual(self, name: str) -> pa.DataType:
        """What most values of a key column are that are no text, in the first block that has any; null in none."""
        types = {self._spelled[name]: pa.string()}
        reader = pa_csv.open_csv(
            self.name,
            read_options=pa_csv.ReadOptions(use_threads=False, block_size=_BLOCK),
            parse_options=self._parsing(),
            convert_options=pa_csv.ConvertOptions(column_types=types, include_columns=list(types)),
        )
        with reader:
            for batch in reader:
                found = (preferred(_type_of(text)) for text in batch.column(0).slice(0, 1000).to_pylist() if text)
                in_seconds = name == self._key.time
                kinds = Counter(FRACTION if pa.types.is_floating(kind) and in_seconds else kind for kind in found)
                usual = [kind for kind, _ in kinds.most_common() if is_clock(kind)]
                if FRACTION in usual and pa.int64() in usual:
                    usual.remove(pa.int64())
                if usual:
                    return usual[0]
        return pa.null()

    def _look_at_header(self, names: Sequence[str]) -> None:
        """The error for a header that is none."""
        if any(_NUMBER.fullmatch(name) for name in names):
            shown = ",".join(names)[:60]
            raise DataError(
                f"{self.name}:1: the first line must name the columns, and it is {shown!r}; put a line such as "
                "time,type,... before it"
            )

    def _survey(self) -> tuple[int, bool]:
        """Number of rows, and whether they are in order; on the way, types widen until they fit all rows."""
        while True:
            check = OrderCheck(self._key)
            self.dropped = Dropped()
            last = None
            try:
                for batch in self._scan(self._types, not self._drops, told=True):
                    if not self._look_at(batch, check):
                        break
                    last = batch if batch.num_rows else last
                else:
                    never = [name for name in self._key.names if pa.types.is_null(self._types.get(name, pa.int64()))]
                    if self._drops and check.rows and never:
                        self._loose |= dict.fromkeys(never, pa.null())
                        continue
                    self._refuse_open_quote(last)
                    self._find_signed()
                    return check.rows, check.ordered
            except pa.ArrowException as error:
                self._widen(error)

    def _find_signed(self) -> None:
        """Find columns of integers some of which have a plus sign."""
        kept = {*self._key.names, *self._known, *self._form.declared}
        names = [name for name, kind in self._types.items() if pa.types.is_floating(kind) and name not in kept]
        if not names or not may_contain(Path(self.name), b"+"):
            return
        for batch in self._scan(dict.fromkeys(names, pa.string())):
            for name in [*names]:
                try:
                    whole_numbers(batch.column(name), self._nulls)
                except pa.ArrowInvalid:
                    names.remove(name)
            if not names:
                return
        self._signed = names
        self._types |= dict.fromkeys(names, pa.int64())
        self._huge = [name for name in self._huge if name not in names]

    def _refuse_open_quote(self, last: pa.RecordBatch | None) -> None:
        """Raise DataError where a mark is not closed, so that all lines to the end of the file are the last value."""
        value = None if last is None or not last.num_columns else last.column(last.num_columns - 1)[-1].as_py()
        path = Path(self.name)
        if not isinstance(value, str) or "\n" not in value or path.suffix.lower() in COMPRESSIONS:
            return
        end = value.encode()
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - len(end)))
            if file.read() == end:
                shown = f"the last value is {value[:40]!r}, to the end"
                raise DataError(f"{self.name}: a quotation mark is opened and not closed: {shown}")

    def _look_at(self, batch: pa.RecordBatch, check: OrderCheck) -> bool:
        """Look at rows; false where some have no time, and shall be left out."""
        absent = [name for name in self._key.names if name in batch.schema.names and batch.column(name).null_count]
        if self._drops and absent and all(is_clock(self._types[name]) for name in absent):
            self._loose |= {name: self._types[name] for name in absent}
            return False
        if all(is_clock(self._types.get(name, pa.null())) for name in self._key.names):
            check.feed(batch)
        else:
            check.rows += batch.num_rows  # whoever opens the events says what is wrong with the columns
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if pa.types.is_floating(column.type) and name not in self._huge:
                largest = pc.max(pc.abs(column)).as_py()
                if largest is not None and largest >= _BEYOND_64_BITS:
                    self._huge.append(name)
        return True

    def _widen(self, error: pa.ArrowException) -> None:
        """Make the type of the column that an error names wide enough for the value that it names."""
        bytes_found = _BAD_TEXT.search(str(error))
        if bytes_found is not None:  # a column that no query reads may be of any encoding
            self._types[self._not_the_type(self._names[int(bytes_found["column"])])] = pa.binary()
            return
        found = _BAD_VALUE.search(str(error))
        if found is None and self._types.get(self._key.time) == FRACTION and self._key.time not in self._loose:
            if self._drops:
                self._loose[self._key.time] = FRACTION
                return
            self._raise_no_seconds()
        if found is None:
            self._raise_unreadable(error)
        name = self._names[int(found["column"])]
        value = found["value"] or found["zoned"] or ""
        known = self._types[name]
        declared = self._declared().get(name)
        if (name in self._known or declared is not None) and self._drops and known in _TIGHT:
            self._loose[name] = known
            return
        if declared is not None:
            self._types[name] = pa.string()
            self.misfits[name] = self._misfit(name, declared, value)
            return
        if name in self._known:
            self._raise_other_type(name, value)
        wide = widen(known, preferred(_type_of(value)))
        if name == self._key.time and pa.types.is_floating(wide or pa.null()):
            wide = FRACTION
        if wide is None or wide.equals(known):
            # The value looks like the type and yet does not fit: finer fractions of a second, or just text.
            micros = pa.types.is_timestamp(known) and known.unit == "us"
            wide = pa.timestamp("ns", known.tz) if micros else pa.string()
        if self._drops and name in self._key.names and not is_clock(wide):
            self._loose[name] = self._types[name] = known if is_clock(known) else self._usual(name)
            return
        if is_text(wide) and name in self._key.names:
            self._raise_bad_key(name, value, known)
        self._types[name] = wide

    def _raise_no_seconds(self) -> None:
        """The error for the first time that nanoseconds cannot hold; none where all can be held."""
        first, time = 0, self._key.time
        for batch in self._scan({time: pa.string()}, threads=False):
            texts = with_nulls(pa.RecordBatch.from_arrays([batch.column(0)], [time]))
            absent = pc.is_in(texts.column(0), pa.array(NULLS))
            texts = texts.set_column(0, time, pc.if_else(absent, None, texts.column(0)))
            batch_of(texts, time, FRACTION, first, self.name)
            first += batch.num_rows

    def _not_the_type(self, name: str) -> str:
        """The name of a column whose text is not UTF-8; raises where it is that of the event types."""
        if name != self._type_column:
            return name
        line = ""
        try:
            for _ in self._scan({name: pa.string()}, threads=False):
                pass
        except pa.ArrowException as error:
            found = _BAD_TEXT.search(str(error))
            line = f":{found['line']}" if found is not None else ""
        raise DataError(f"{self.name}{line}: the type column {name!r} is not UTF-8 text; save the file as UTF-8")

    def _raise_bad_key(self, name: str, value: str, kind: pa.DataType) -> NoReturn:
        """The error for a time or order column with text in it: the first value that is not of a kind."""
        misfit = self._misfit(name, kind, value)
        line = misfit.place.removeprefix(self.name) or (":2" if is_text(kind) else "")
        role = "time" if name == self._key.time else "order"
        raise DataError(
            f"{self.name}{line}: the {role} column {name!r} holds {misfit.value!r}; it must hold "
            + (FORMS if role == "time" else "integers or timestamps")
        ).about(row=int(line[1:]) - 1 if line else None, column=name)

    def _raise_other_type(self, name: str, value: str) -> NoReturn:
        """The error for a value that is not of the type that its column has in the files before."""
        misfit = self._misfit(name, self._types[name], value)
        raise DataError(f"{misfit.place}: {other_type(name, repr(misfit.value), self._types[name])}")

    def _misfit(self, name: str, kind: pa.DataType, value: str) -> Misfit:
        """The first value of a column that is not of a type, which only a single thread knows the line of."""
        try:
            for _ in self._scan({name: kind}, threads=False):
                pass
        except pa.ArrowException as error:
            found = _BAD_VALUE.search(str(error))
            if found is not None:
                return Misfit(found["value"] or found["zoned"] or "", f"{self.name}:{found['line']}", kind)
        return Misfit(value, self.name, kind)

    def _raise_unreadable(self, error: pa.ArrowException) -> NoReturn:
        """The error for a row with too many or too few fields, or a file that is no CSV at all."""
        problem = str(error)
        if "Row #" not in problem:
            try:
                for _ in self._scan({}, threads=False):
                    pass
            except pa.ArrowException as again:
                problem = str(again)
        if "Empty CSV" in problem:
            raise DataError(f"{self.name} is empty") from error
        found = _BAD_ROW.search(problem)
        if found is None:
            raise DataError(f"{self.name} cannot be read as CSV: {problem}") from error
        line = f":{found['line']}" if found["line"] else ""
        raise DataError(f"{self.name}{line}: {told_better(found['problem'], int(found['line'] or 0))}") from error

    def _refuse_long_integers(self) -> None:
        """Integers of more than 64 bits would be read as doubles, and different keys as equal ones."""
        first = 1
        for batch in self._scan(dict.fromkeys(self._huge, pa.string())) if self._huge else ():
            for name in self._huge:
                found = pc.index(pc.match_substring_regex(batch.column(name), _LONG_INTEGER), True).as_py()
                if found >= 0:
                    raise DataError(
                        f"{self.name}: column {name!r} holds the integer {batch.column(name)[found].as_py()} in row "
                        f"{first + found} (the first row is 1), and Hamlet reads integers of 64 bits (signed)"
                    )
            first += batch.num_rows


def preferred(kind: pa.DataType) -> pa.DataType:
    """Arrow's guess, but microseconds for nanoseconds (they widen where needed) and text for times of the day."""
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return pa.timestamp("us", kind.tz)
    return pa.string() if pa.types.is_time(kind) else kind


def _type_of(value: str) -> pa.DataType:
    """What Arrow takes a single field for."""
    text = io.StringIO()
    csv.writer(text).writerow([value])
    options = pa_csv.ReadOptions(column_names=["value"])
    try:
        return pa_csv.read_csv(as_stream(text.getvalue().encode()), read_options=options).schema.field(0).type
    except pa.ArrowException:
        return pa.string()


def _key_of(text: str | None, kind: pa.DataType) -> Any:
    """A time or an order as text; None for what is none."""
    try:
        if kind == FRACTION:
            return None if not text else nanoseconds_of(text)
        return None if not text else scalar(text.strip()).cast(kind).as_py()
    except (pa.ArrowException, ValueError):
        return None


def whole_numbers(texts: pa.Array | pa.ChunkedArray, nulls: Sequence[str] = NULLS) -> Any:
    """Fields as integers, which may have a plus sign; raises ArrowInvalid where one is none."""
    trimmed = pc.utf8_trim_whitespace(texts)
    missing = pc.is_in(trimmed, pa.array(nulls))
    return pc.replace_substring_regex(pc.if_else(missing, None, trimmed), r"^\+(\d)", r"\1").cast(pa.int64())


def with_nulls(batch: pa.RecordBatch, texts: Sequence[str] = ("",)) -> pa.RecordBatch:
    """The batch with NULL in place of empty strings, or of these."""
    for place, field in enumerate(batch.schema):
        if is_text(field.type):
            column = batch.column(place)
            empty = pc.is_in(column, from_texts(texts).cast(field.type))
            if pc.any(empty).as_py():
                filled = pc.if_else(empty, pa.nulls(1, field.type)[0], column)
                batch = batch.set_column(place, field, filled)
    return batch
