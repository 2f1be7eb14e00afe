"""JSON lines: one object per line, an attribute that a line lacks is NULL.

The file is read in chunks of whole lines. A first pass over all chunks finds the union of the attributes, their types,
the number of rows and whether these are in time order; then each chunk is read with that schema. Errors name the line.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pa_json

from hamlet.errors import DataError
from hamlet.input.buffers import as_stream
from hamlet.input.file_form import Dropped, FileForm
from hamlet.input.input_schema import other_type
from hamlet.input.json_line import MOST_BRACKETS, all_blank, brackets_in, brief, first_names, object_of
from hamlet.input.jsonbad import BadLines
from hamlet.input.moments import FORMS, NUMBER, NoTimeError, as_seconds, clock_of, nanoseconds_of
from hamlet.input.ordering import OrderCheck, SortKey
from hamlet.input.records import table_of_records
from hamlet.input.widening import EXACT_SECONDS, FRACTION, cast, is_clock, is_text, widen, widen_clocks, written_types

_CHUNK = 1 << 23  # bytes
_LONGEST_LINE = 1 << 28  # bytes
_MOST_LINES = 100  # that are looked at for one with a time
_NO_OBJECT = re.compile(rb"^[ \t\r]*[^{\s]", re.MULTILINE)  # a first line with a bare null crashes Arrow's reader
_LONG_INTEGER = re.compile(rb"\d{19}")
_BEYOND_64_BITS = 2.0**63
TIMES = (pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.timestamp("ns"), pa.timestamp("ns", "UTC"))
_TIME_TEXT = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d|$)")
ZONED = re.compile(rb'"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:Z|[+-]\d\d(?::?\d\d)?)"')


class JsonFile:
    """A file of JSON lines whose schema is known to hold for all its lines.

    Parameters
    ----------
    path : pathlib.Path
        May end in .gz, .bz2 or .zst.
    key : SortKey
        The time and order columns; text there is read as ISO 8601 timestamps, and so is an attribute that holds nothing
        else. Arrow's reader knows those of whole seconds only, and forgets their zones.
    form : FileForm, optional
        Bad lines are those of `hamlet.input.jsonbad`.
    known : mapping of str to pyarrow.DataType, optional
        Types of attributes in files that were read before: a value of another type is an error.

    Attributes
    ----------
    key : SortKey
        With the time column that the first events have (`SortKey.among`).
    """

    def __init__(
        self,
        path: Path,
        key: SortKey,
        form: FileForm | None = None,
        known: Mapping[str, pa.DataType] | None = None,
    ) -> None:
        self.name = str(path)
        self._form = form = form or FileForm()
        self._bad: BadLines | None = None
        _, chunk = next(self._chunks(), (1, b""))
        self.key = key = key.among(first_names(chunk.split(b"\n", _MOST_LINES)[:_MOST_LINES]))
        self._texts = frozenset(form.texts).difference(key.names)
        self._parsed: dict[str, pa.DataType] = {}  # columns that come as text: the timestamps that it means
        self._moments: dict[str, pa.DataType | None] = {}  # attributes that come as text, likewise; None: it is text
        self._seconds: set[str] = set()  # columns that a chunk holds as timestamps
        self._types: dict[str, pa.DataType] = {}  # as Arrow reads them
        self._absent: dict[str, int] = {}  # key columns that a whole chunk lacks: the chunk's first line
        self._bad = BadLines(key, form.reads) if form.drops else None
        self._fractions = False  # whether times are seconds with a fraction, which are read as decimals
        before = {name: copy.copy(value) for name, value in vars(self).items()}
        try:
            check = self._survey_all(known or {})
        except _LateFractionError:  # all times are seconds then
            vars(self).update(before)
            self._bad, self._fractions = BadLines(key, form.reads) if form.drops else None, True
            check = self._survey_all(known or {})
        self.rows: int | None = check.rows
        self.ordered: bool | None = check.ordered
        if not check.rows and not self.dropped.rows:
            raise DataError(all_blank(self.name))
        for name, line in self._absent.items():
            if not pa.types.is_null(self._types.get(name, pa.null())):
                raise DataError(f"{self.name}:{line}: the column {name!r}, which orders the events, is NULL")
        self._parsed |= self._times_throughout()
        self._types = written_types(self._types, key.time if form.whole_seconds else None)
        for name, kind in (known or {}).items():
            self._keep_to(name, kind)
        self.schema = pa.schema([(name, self._parsed.get(name, kind)) for name, kind in self._types.items()])

    def _survey_all(self, known: Mapping[str, pa.DataType]) -> OrderCheck:
        """The first pass."""
        check = OrderCheck(self.key)
        for line, chunk in self._chunks():
            if self._bad is None:
                self._survey(chunk, line, check)
            else:
                check = self._survey_good(self._bad, chunk, line, check, known)
        return check

    @property
    def dropped(self) -> Dropped:
        """Lines that are left out."""
        return Dropped() if self._bad is None else self._bad.dropped

    def _survey_good(
        self, bad: BadLines, chunk: bytes, line: int, check: OrderCheck, known: Mapping[str, pa.DataType]
    ) -> OrderCheck:
        """Survey the good lines of a chunk, whose bad ones are looked for only where something is wrong with it."""
        state = ("_parsed", "_moments", "_seconds", "_types", "_absent")
        before = {name: copy.copy(getattr(self, name)) for name in state}
        tried = copy.copy(check)
        try:
            if known:  # what is right in itself may be of other types than in the files before
                raise DataError(self.name)
            self._survey(chunk, line, tried)
            kinds = [self._parsed.get(name, self._types.get(name, pa.null())) for name in self.key.names]
            if not self._absent and all(map(is_clock, kinds)):
                return tried
        except DataError:
            pass
        vars(self).update(before)
        bad.find(chunk, line, {**self._types, **self._parsed, **known})
        chunk = bad.without(chunk, line)
        if not chunk.isspace() and chunk:
            self._survey(chunk, line, check)
        return check

    def _keep_to(self, name: str, kind: pa.DataType) -> None:
        """Read an attribute as the type that it has in the files before; raises DataError where a value is another."""
        found = self._types.get(name)
        if found is None:
            return
        if kind == FRACTION and name == self.key.time and (found == FRACTION or pa.types.is_integer(found)):
            self._types[name] = FRACTION
            return
        if is_text(kind) and (is_text(found) or pa.types.is_timestamp(found)):  # text that looks like a time is text
            self._parsed.pop(name, None)
            self._types[name] = pa.string()
            return
        wide = widen(kind, self._parsed.get(name, found))
        if wide is not None and wide.equals(kind):
            return
        for line, chunk in self._chunks():
            for number, text in enumerate(chunk.split(b"\n"), line):
                value = self._object_at(text, number).get(name) if text.strip() else None
                if value is not None and not _is_of(value, kind):
                    raise DataError(f"{self.name}:{number}: {other_type(name, brief(value), kind)}")
        raise DataError(f"{self.name}: {other_type(name, f'values of the type {found}', kind)}")

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows in the order of the file."""
        kinds = {column: self._types[column] for column in columns}
        as_written = self.key.time if self._form.written_times and self.key.time in columns else None
        if as_written is not None and pa.types.is_timestamp(kinds[as_written]):
            kinds[as_written] = pa.string()
        schema = pa.schema([(name, EXACT_SECONDS if kind == FRACTION else kind) for name, kind in kinds.items()])
        for line, chunk in self._chunks():
            table = self._read(chunk, line, schema).select(list(columns))
            yield from self._with_times(table, line, as_written).to_batches()

    def _chunks(self) -> Iterator[tuple[int, bytes]]:
        """Pieces of whole lines, each with the number of its first line; none blank."""
        line, rest = 1, b""
        try:
            with pa.input_stream(self.name, compression="detect") as stream:
                while block := stream.read(_CHUNK):
                    if line == 1 and not rest:
                        block = block.removeprefix(b"\xef\xbb\xbf")  # a byte order mark
                    end = block.rfind(b"\n") + 1
                    chunk, rest = (rest + block[:end], block[end:]) if end else (b"", rest + block)
                    if len(rest) > _LONGEST_LINE:
                        raise DataError(f"{self.name}:{line}: the line is longer than {_LONGEST_LINE} bytes")
                    good = self._good(chunk, line)
                    if not good.isspace() and good:
                        yield line, good
                    line += chunk.count(b"\n")
        except OSError as error:
            raise DataError(f"cannot read {self.name}: {error}") from error
        rest = self._good(rest, line)
        if rest and not rest.isspace():
            yield line, rest

    def _good(self, chunk: bytes, line: int) -> bytes:
        return chunk if self._bad is None else self._bad.without(chunk, line)

    def _survey(self, chunk: bytes, line: int, check: OrderCheck) -> None:
        self._check_text(chunk, line)
        table = self._with_zones(self._read(chunk, line, None), chunk, line)
        table = self._with_fractions(table, chunk, line)
        if table.num_rows != chunk.count(b"\n") + (not chunk.endswith(b"\n")):
            self._raise_unless_blank(chunk, line, table.num_rows)
        if _LONG_INTEGER.search(chunk):
            self._refuse_long_integers(table, chunk, line)
        for field in table.schema:
            known = self._types.get(field.name, pa.null())
            if field.name in self._texts and pa.types.is_timestamp(field.type):
                field = field.with_type(pa.string())
            wide = (widen_clocks if field.name == self.key.time else widen)(known, field.type)
            if wide is None and {is_text(known), is_text(field.type)} == {True, False}:
                other = field.type if is_text(known) else known
                wide = pa.string() if pa.types.is_timestamp(other) else None  # some text happens to look like a time
            if wide is None and self._form.records is not None and pa.types.is_nested(known):
                wide = known if pa.types.is_nested(field.type) else None  # whoever reads them looks at each value
            if wide is None:
                self._raise_clash(field.name, known, table, line, chunk)
            self._types[field.name] = wide
        self._look_at_keys(table, line, check)
        self._look_at_attributes(table)

    def _with_fractions(self, table: pa.Table, chunk: bytes, line: int) -> pa.Table:
        """A chunk's table with times that have a fraction as seconds, all their digits read."""
        time = self.key.time
        place = table.schema.get_field_index(time)
        kind = table.schema.field(place).type if place >= 0 else pa.null()
        if not (pa.types.is_floating(kind) or (self._fractions and pa.types.is_integer(kind))):
            return table
        if pa.types.is_integer(self._types.get(time, pa.null())):
            raise _LateFractionError
        try:
            exact = self._read(chunk, line, pa.schema([(time, EXACT_SECONDS)]))
        except DataError:
            self._raise_bad_seconds(chunk, line)
            raise
        return table.set_column(place, pa.field(time, FRACTION), self._with_times(exact, line).column(0))

    def _with_zones(self, table: pa.Table, chunk: bytes, line: int) -> pa.Table:
        """A chunk's table with text in place of timestamps if zones are among them."""
        times = [field.name for field in table.schema if pa.types.is_timestamp(field.type)]
        if not times or not ZONED.search(chunk):
            return table
        kinds = [(field.name, pa.string() if field.name in times else field.type) for field in table.schema]
        return self._read(chunk, line, pa.schema(kinds))

    def _look_at_attributes(self, table: pa.Table) -> None:
        """See which attributes that come as text hold timestamps only."""
        for name, texts in zip(table.schema.names, table.columns, strict=True):
            if name in self._texts or name in self.key.names or self._moments.get(name, TIMES[0]) is None:
                continue
            if pa.types.is_timestamp(texts.type):
                self._seconds.add(name)
            elif is_text(texts.type):
                self._moments[name] = _moment_type(texts, self._moments.get(name))

    def _times_throughout(self) -> dict[str, pa.DataType]:
        """The attributes that come as text and hold timestamps of one type in all chunks."""
        found = {name: kind for name, kind in self._moments.items() if kind is not None}
        if doubtful := [name for name in found if name in self._seconds]:  # whole seconds of a zone that was not seen
            schema = pa.schema([(name, pa.string()) for name in doubtful])
            for line, chunk in self._chunks():
                for name, texts in zip(doubtful, self._read(chunk, line, schema).columns, strict=True):
                    if name in found and not means(texts, found[name]):
                        del found[name]
        return found

    def _look_at_keys(self, table: pa.Table, line: int, check: OrderCheck) -> None:
        for name in self.key.names:
            kind = self._types.get(name)
            if kind is not None and is_text(kind) and name not in self._parsed:
                self._parsed[name] = self._time_type(table, name, line)
        present = [name for name in self.key.names if name in table.schema.names]
        table = self._with_times(table.select(present), line)
        types = {field.name: field.type for field in table.schema}
        for name in self.key.names:
            if pa.types.is_null(types.get(name, pa.null())):
                self._absent.setdefault(name, line)
        if all(is_clock(types.get(name, pa.null())) for name in self.key.names):
            check.feed(table)
        else:
            check.rows += table.num_rows  # whoever opens the events says what is wrong with the columns

    def _time_type(self, table: pa.Table, name: str, line: int) -> pa.DataType:
        texts = table.column(name)
        first = pc.first(texts).as_py() if is_text(texts.type) else None
        if name == self.key.time and first is not None and NUMBER.fullmatch(first):
            return clock_of(texts).type if self._are_times(texts) else FRACTION
        if not is_text(texts.type):
            raise DataError(f"{self.name}: the column {name!r} holds times in several formats; use one of them")
        for kind in TIMES:
            if means(pc.ascii_trim_whitespace(texts), kind):
                return kind
        return self._raise_bad_time(texts, name, line, TIMES[0])

    def _with_times(self, table: pa.Table, line: int, as_written: str | None = None) -> pa.Table:
        """Key columns that come as text, as the timestamps that the text means, but for one."""
        for place, name in enumerate(table.schema.names):
            if name == as_written:
                continue
            texts = table.column(place)
            kind = FRACTION if texts.type == EXACT_SECONDS else self._parsed.get(name)
            if kind is not None and texts.type != kind:
                try:
                    times = as_seconds(texts, name) if kind == FRACTION else as_times(texts, kind)
                except (pa.ArrowInvalid, DataError, NoTimeError):
                    self._raise_bad_time(texts, name, line, kind)
                table = table.set_column(place, pa.field(name, kind), times)
        return table

    @staticmethod
    def _are_times(texts: Any) -> bool:
        """Whether texts of numbers are times."""
        try:
            clock_of(texts)
        except NoTimeError:
            return False
        return True

    def _raise_bad_seconds(self, chunk: bytes, line: int) -> None:
        """The error for the first line whose time nanoseconds cannot hold; none where there is no such line."""
        time = self.key.time
        for number, text in enumerate(chunk.split(b"\n"), line):
            value = json.loads(text, parse_float=Decimal).get(time) if text.strip() else None
            try:
                nanoseconds_of(value or 0)
            except NoTimeError as error:
                raise DataError(f"{self.name}:{number}: the column {time!r} holds {error}, {error.why}").about(
                    row=number, column=time
                ) from None

    def _raise_bad_time(self, texts: Any, name: str, line: int, kind: pa.DataType) -> NoReturn:
        for row, text in enumerate(texts):
            try:
                if kind == FRACTION:
                    nanoseconds_of(text.as_py() or 0)
                else:
                    as_times(pa.chunked_array([[text.as_py()]], pa.string()), kind)
            except (pa.ArrowInvalid, ValueError) as error:
                value = text.as_py()
                shown = repr(value) if isinstance(value, str) else format(value.normalize(), "f")
                why = error.why if isinstance(error, NoTimeError) else f"and it must hold {FORMS}"
                raise DataError(f"{self.name}:{line + row}: the column {name!r} holds {shown}, {why}").about(
                    row=line + row, column=name
                ) from error
        raise DataError(f"{self.name}: the column {name!r} holds times in several formats; use one of them")

    def _read(self, chunk: bytes, line: int, schema: pa.Schema | None) -> pa.Table:
        """A chunk as a table: of these columns, or of all that somebody reads."""
        form = self._form
        if form.records is not None:
            return self._of_objects(chunk, line, schema, form.records)
        parse = pa_json.ParseOptions(schema, False, "infer" if schema is None else "ignore")
        if schema is None and (large := [each for each in form.declared.items() if pa.types.is_uint64(each[1])]):
            parse = pa_json.ParseOptions(pa.schema(large), False, "infer")
        read = pa_json.ReadOptions(use_threads=False, block_size=len(chunk) + 1)
        try:
            table = pa_json.read_json(as_stream(chunk), read, parse)
        except pa.ArrowException as error:
            if form.only is None:
                self._raise_unreadable(chunk, line, error)
            return self._of_objects(chunk, line, schema, partial(table_of_records, wide=True))
        return table if schema is not None or form.only is None else table.select(self._read_of(table.schema.names))

    def _read_of(self, names: Iterable[str]) -> list[str]:
        """Which attributes somebody reads."""
        return [name for name in names if name in self.key.names or self._form.reads(name)]

    def _of_objects(
        self, chunk: bytes, line: int, schema: pa.Schema | None, table_of: Callable[[list[dict[str, Any]]], pa.Table]
    ) -> pa.Table:
        """A chunk that Arrow cannot read: attributes that nobody reads may hold anything."""
        rows = []
        for number, text in enumerate(chunk.split(b"\n"), line):
            if text.strip():
                event = self._object_at(text, number)
                rows.append({name: event[name] for name in self._read_of(event)})
        try:
            table = table_of(rows)
        except DataError as error:
            self._raise_unreadable(chunk, line, error)
        if schema is None:
            return table
        known = table.schema.names
        columns = {each.name: table.column(each.name) if each.name in known else pa.nulls(len(rows)) for each in schema}
        for name, kind in zip(schema.names, schema.types, strict=True):
            if kind == EXACT_SECONDS and not pa.types.is_null(columns[name].type):
                columns[name] = as_seconds(columns[name], name)
            if not pa.types.is_nested(kind):
                columns[name] = cast(columns[name], kind, name)
        return pa.table(columns)

    # ------------------------------------------------------------------------------------- what can be wrong

    def _check_text(self, chunk: bytes, line: int) -> None:
        """Refuse what Arrow does not check, or would crash on: bytes that are no UTF-8, bare values, deep nesting."""
        try:
            str(chunk, "utf-8")
        except UnicodeDecodeError as error:
            bad = line + chunk.count(b"\n", 0, error.start)
            raise DataError(f"{self.name}:{bad}: the line is not UTF-8 text: {error.reason}") from error
        other = _NO_OBJECT.search(chunk)
        if other is not None:
            last = chunk.find(b"\n", other.end())
            for number, text in enumerate(chunk[: last if last >= 0 else None].split(b"\n"), line):
                if text.strip():
                    self._object_at(text, number)  # the first line that is wrong, perhaps one before
        if brackets_in(chunk) <= chunk.count(b"\n") + MOST_BRACKETS:
            return
        for number, text in enumerate(chunk.split(b"\n"), line):
            if brackets_in(text) > MOST_BRACKETS:
                self._object_at(text, number)

    def _raise_unreadable(self, chunk: bytes, line: int, error: Exception) -> NoReturn:
        """The error for a chunk that cannot be read, with the line that is wrong."""
        seen: dict[str, tuple[int, type]] = {}
        for number, text in enumerate(chunk.split(b"\n"), line):
            if not text.strip():
                continue
            event = self._object_at(text, number)
            for name in self._read_of(event):
                value = event[name]
                kind: type = float if isinstance(value, int) and not isinstance(value, bool) else type(value)
                if value is None:
                    continue
                first, known = seen.setdefault(name, (number, kind))
                if kind is not known:
                    raise DataError(
                        f"{self.name}:{number}: attribute {name!r} is {brief(value)}, but {_KIND_NAMES[known]} in "
                        f"line {first}; an attribute must keep one type"
                    ) from error
        raise DataError(f"{self.name}: lines {line} to {number} cannot be read: {error}") from error

    def _object_at(self, text: bytes, number: int) -> dict[str, Any]:
        """The object on a line; raises DataError if there is none."""
        try:
            return object_of(text)
        except ValueError as error:
            raise DataError(f"{self.name}:{number}: {error}") from error

    def _raise_unless_blank(self, chunk: bytes, line: int, rows: int) -> None:
        """Rows and lines must agree: an object over several lines would break where a chunk ends."""
        lines = [(number, text) for number, text in enumerate(chunk.split(b"\n"), line) if text.strip()]
        if len(lines) != rows:
            for number, text in lines:
                self._object_at(text, number)

    def _refuse_long_integers(self, table: pa.Table, chunk: bytes, line: int) -> None:
        """Integers of more than 64 bits would be read as doubles, and different keys as equal ones."""
        declared = self._form.declared
        doubles = [
            field.name
            for field in table.schema
            if pa.types.is_floating(field.type) and not pa.types.is_floating(declared.get(field.name, pa.null()))
        ]
        largest = {name: pc.max(pc.abs(table.column(name))).as_py() for name in doubles}
        huge = [name for name, value in largest.items() if value is not None and value >= _BEYOND_64_BITS]
        for number, text in enumerate(chunk.split(b"\n") if huge else (), line):
            if _LONG_INTEGER.search(text):
                event = self._object_at(text, number)
                for name in huge:
                    value = event.get(name)
                    if isinstance(value, int) and not -(2**63) <= value < 2**63:
                        raise DataError(
                            f"{self.name}:{number}: attribute {name!r} holds an integer of {value.bit_length()} bits, "
                            "and Hamlet reads integers of 64 bits (signed)"
                        )

    def _raise_clash(self, name: str, known: pa.DataType, table: pa.Table, line: int, chunk: bytes) -> NoReturn:
        """The error for an attribute that had another type in the chunks before."""
        for number, text in enumerate(chunk.split(b"\n"), line):
            if text.strip() and (value := self._object_at(text, number).get(name)) is not None:
                raise DataError(
                    f"{self.name}:{number}: attribute {name!r} is {brief(value)}, but {known} in the lines before; "
                    "an attribute must keep one type"
                )
        raise DataError(f"{self.name}: attribute {name!r} is {known} and {table.schema.field(name).type}")


_KIND_NAMES = {
    float: "a number",
    str: "a string",
    bool: "true or false",
    list: "a list",
    dict: "an object",
}


def _is_of(value: Any, kind: pa.DataType) -> bool:
    """Whether a JSON value is one of a type."""
    try:
        return widen(kind, pa.scalar(value).type) == kind and (not pa.types.is_timestamp(kind))
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return False


def as_times(texts: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Texts as the integers or timestamps that they mean, blanks around them aside.

    Raises
    ------
    pyarrow.ArrowInvalid, NoTimeError
    """
    found = clock_of(texts) if pa.types.is_integer(kind) else pc.ascii_trim_whitespace(texts)
    return found.cast(kind)


def means(texts: pa.ChunkedArray, kind: pa.DataType) -> bool:
    """Whether all of a text is timestamps of a type."""
    try:
        texts.cast(kind)
    except pa.ArrowInvalid:
        return False
    return True


def _moment_type(texts: pa.ChunkedArray, known: pa.DataType | None) -> pa.DataType | None:
    """The timestamps that a text means, those of `known` or finer; None where it is just text."""
    first = pc.first(texts).as_py()
    if first is None or not _TIME_TEXT.match(first):
        return None
    kinds = TIMES if known is None else [kind for kind in TIMES[TIMES.index(known) :] if kind.tz == known.tz]
    return next((kind for kind in kinds if means(texts, kind)), None)


class _LateFractionError(Exception):
    """Times have a fraction, and those of the lines before had none."""
