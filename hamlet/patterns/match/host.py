"""The host of expressions in process: a DuckDB of its own, closed to files and networks that were not given.

It is the only module that talks to DuckDB.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import re
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hamlet.errors import DataError, OptionError, UnsupportedError, similar_file
from hamlet.input.csvfile import NULLS
from hamlet.input.file_form import FileForm, without_drop
from hamlet.input.files import event_files, matching, may_contain, open_path, open_paths, refuse_urls
from hamlet.input.folder import Folder
from hamlet.input.folder import lacking as absent_columns
from hamlet.input.formats import COMPRESSIONS, format_of
from hamlet.input.missing import FileColumns, MissingColumns, finding, lacking
from hamlet.input.ordering import SortKey

if TYPE_CHECKING:
    import duckdb

_READERS = {"parquet": "read_parquet", "csv": "read_csv"}
_MOMENT = r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?"
_FINE_MOMENT = _MOMENT.replace("6", "9")
_ZONE = r"( ?[zZ]|[+-]\d\d(:?\d\d)?)"
_ZONED = "TIMESTAMP WITH TIME ZONE"
_FINER = {"TIMESTAMP": ("TIMESTAMP_NS", _FINE_MOMENT), _ZONED: ("TIMESTAMPTZ_NS", f"{_FINE_MOMENT}{_ZONE}")}
_MISSING = ", ".join(f"'{each}'" for each in NULLS)  # in columns of numbers
_INTEGER, _DECIMAL = r"[+-]?\d+", r"[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|(?i:inf(inity)?))"


def _number(kind: str, form: str) -> tuple[str, str, str]:
    value = f"CASE WHEN {{0}} NOT IN ({_MISSING}) THEN {{0}} END"
    fits = f"regexp_full_match({value}, '{form}') AND TRY_CAST({value} AS {kind}) IS NOT NULL"
    return kind, f"{value} IS NULL OR ({fits})", value


def _is_moment(name: str, kind: str, form: str) -> str:
    return f"{name} IS NULL OR (regexp_full_match({name}, '{form}') AND TRY_CAST({name} AS {kind}) IS NOT NULL)"


# By type of the host, the types that columns of CSV have instead if all values pass, with test and value.
_NARROWER: Mapping[str, Sequence[tuple[str, str, str]]] = {
    "VARCHAR": (_number("BIGINT", _INTEGER), _number("DOUBLE", _DECIMAL)),
}
_ALLOWED = (
    "SELECT",
    "CREATE",
    "DROP",
    "EXPLAIN",
    "SET",
    "MULTI",
    "INSERT",
    "UPDATE",
    "DELETE",
    "VARIABLE_SET",
    "ALTER",
)


class HostError(Exception):
    """What the host says is wrong with a text that it was given.

    Attributes
    ----------
    message : str
        One line.
    place : int or None
        The character of the text that is meant.
    hint : str or None
    """

    def __init__(self, message: str, place: int | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message, self.place, self.hint = message, place, hint


def quoted(name: str) -> str:
    """A name as the host's identifier."""
    return '"' + name.replace('"', '""') + '"'


def packed(fields: Mapping[str, str]) -> str:
    """A structure of the host, of values by their names."""
    return f"struct_pack({', '.join(f'{quoted(name)} := {value}' for name, value in fields.items())})"


def _duckdb() -> Any:
    try:
        return importlib.import_module("duckdb")
    except ImportError:
        raise UnsupportedError(
            "row patterns need duckdb and sqlglot, which are not installed: pip install 'hamlet-cep[sql]'"
        ) from None


@cache
def aggregate_functions() -> frozenset[str]:
    """The names of the host's aggregates, in lower case, FIRST and LAST left out."""
    rows = (
        _duckdb()
        .connect()
        .execute("SELECT DISTINCT lower(function_name) FROM duckdb_functions() WHERE function_type = 'aggregate'")
    )
    names = {name for (name,) in rows.fetchall()}
    more = (
        _duckdb()
        .connect()
        .execute(
            "SELECT DISTINCT lower(function_name), lower(macro_definition) FROM duckdb_functions() "
            "WHERE function_type = 'macro' AND macro_definition IS NOT NULL"
        )
    )
    for name, text in more.fetchall():
        called = set(re.findall(r"(\w+)\(", text))
        if called and called <= names and name not in names and text.split("(")[0].strip() in called:
            names.add(name)
    names |= {"percentile_cont", "percentile_disc"}  # only the host's parser knows them
    return frozenset(names - {"first", "last", "prev", "next"})


@cache
def keywords() -> frozenset[str]:
    """The host's keywords, in lower case."""
    rows = _duckdb().connect().execute("SELECT keyword_name FROM duckdb_keywords()").fetchall()
    return frozenset(name.lower() for (name,) in rows)


_IN_EXPRESSIONS = """all and any array as asc asymmetric between both by case cast collate collation default desc
distinct else end escape except exclude false filter from glob group having ilike in is isnull lambda leading like limit
map not notnull null or order over overlaps replace similar some struct symmetric then to trailing true try_cast
unpack using variadic when where with within"""


@cache
def no_columns() -> frozenset[str]:
    """The host's words that are no column where they stand alone; other keywords may be (``time``, ``type``)."""
    text = "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category IN ('reserved', 'type_function')"
    return frozenset(name.lower() for (name,) in _duckdb().connect().execute(text).fetchall())


@cache
def reserved_names() -> frozenset[str]:
    """Those of them that begin or join no part of an expression."""
    return no_columns() - set(_IN_EXPRESSIONS.split())


_OPEN: weakref.WeakSet[duckdb.DuckDBPyConnection] = weakref.WeakSet()


def _forked() -> None:
    """In a process that was forked: a DuckDB works on, but to close it waits for threads that are not there.

    So none is ever closed, at the end of the process neither, for which no reference of Python's own is enough.
    """
    for connection in list(_OPEN):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class Host:
    """A DuckDB in memory with the tables of a run.

    Parameters
    ----------
    tables : mapping of str to object
        Arrow tables or readers, pandas or polars frames, DuckDB relations, paths.
    files : bool
        Whether statements may read and write files and load extensions.
    threads : int or None
    empty : bool
        Whether tables have their columns alone, no row: to check a text.
    timezone : str
        In which times with a zone are read and shown.
    missing : {'error', 'null'}, optional
        What becomes of a column that one of several files of a table lacks, as of `hamlet.input.missing.lacking`.
    whole_division : bool
        Whether one whole number by another is a whole number.
    reads : callable
        Which columns of files somebody reads; others may be missing in some.

    Attributes
    ----------
    notes : list of str
        What to know of the tables: columns that files lack.
    collates : bool
        Whether any text that was run speaks of collations: texts may be equal then that differ.
    """

    def __init__(
        self,
        tables: Mapping[str, Any],
        *,
        files: bool = False,
        threads: int | None = None,
        empty: bool = False,
        timezone: str = "UTC",
        missing: MissingColumns | None = None,
        whole_division: bool = False,
        reads: Callable[[str], bool] = lambda _: True,
    ) -> None:
        module = _duckdb()
        self.notes: list[str] = []
        self.collates = False
        self._missing, self._reads = missing, reads
        self._error: type[Exception] = module.Error
        self.connection: duckdb.DuckDBPyConnection = module.connect(
            config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "true" if files else "false"}
        )
        _OPEN.add(self.connection)
        self._files, self._empty = files, empty
        self._readings: dict[str, str] = {}  # of CSV files, by path
        execute = self.connection.execute
        try:
            execute(f"SET TimeZone = {_text(timezone)}")
        except self._error as error:
            raise UnsupportedError(f"DuckDB does not know the time zone {timezone!r}") from error
        execute("SET python_enable_replacements = false")
        execute("SET errors_as_json = true")
        execute("SET preserve_insertion_order = true")
        execute(f"SET integer_division = {whole_division}")
        if threads is not None:
            execute(f"SET threads = {int(threads)}")
        paths = {name: _paths(value) for name, value in tables.items() if _is_path(value)}
        if not files:
            allowed = [each for group in paths.values() for each in group]
            if allowed:
                execute(f"SET allowed_paths = [{', '.join(map(_text, allowed))}]")
            execute("SET enable_external_access = false")
            execute("SET lock_configuration = true")
        for name, value in tables.items():
            if name in paths:
                self._register_paths(name, paths[name], value)
            else:
                self.register(name, value)

    def register(self, name: str, value: Any) -> None:
        """Make a table known by a name."""
        found = _arrow(name, value)
        if self._empty:
            found = found.slice(0, 0) if isinstance(found, pa.Table) else found.head(0)
        enums = _enums(value)
        if not enums:
            self._give(name, name, found)
            return
        self._give(name, f"__hamlet_texts_{name}", found)  # Arrow's are texts to the host, in another order
        read = ", ".join(f"CAST({quoted(each)} AS {kind}) AS {quoted(each)}" for each, kind in enums.items())
        given = quoted(f"__hamlet_texts_{name}")
        self.execute(f"CREATE OR REPLACE TEMP VIEW {quoted(name)} AS SELECT * REPLACE ({read}) FROM {given}")

    def _give(self, name: str, known: str, found: Any) -> None:
        """Hand a table to the host."""
        if not found.schema.names if isinstance(found, pa.RecordBatchReader) else not len(found.columns):
            raise DataError(f"table {name!r} has no columns; give a table with columns, if need be without rows")
        try:
            self.connection.register(known, found)
        except self._error as error:
            raise DataError(f"table {name!r} cannot be read: {host_error(error).message}") from None

    def _register_paths(self, name: str, paths: Sequence[str], given: Any) -> None:
        readers = {_reader(each) for each in paths}
        if len(readers) > 1:
            raise DataError(f"table {name!r} has files of several formats; give files of one format")
        some = " LIMIT 0" if self._empty else ""
        try:
            if None in readers:
                several = [given] if isinstance(given, (str, os.PathLike)) else given
                self._register_json(name, [Path(each) for each in several])
                return
            if len(paths) > 1:
                self._look(paths)
            elif readers == {"read_csv"} and not self.rows(f"FROM {self._reading(paths)} LIMIT 1"):
                names = self.names(f"(FROM {self._reading(paths)})")  # of a header alone: columns may be of any type
                self.register(name, pa.table({each: pa.nulls(0) for each in names}))
                return
            columns = self._narrowed(paths)
            self.execute(f"CREATE VIEW {quoted(name)} AS SELECT {columns} FROM {self._reading(paths)}{some}")
        except HostError as error:
            raise DataError(f"table {name!r} cannot be read from {paths[0]}: {error.message}") from None

    def _register_json(self, name: str, paths: Sequence[Path]) -> None:
        """Read files of JSON as other notations do: to the host a value of another kind makes all of a column JSON."""
        reader = open_paths(paths, SortKey(""), "", None, FileForm(missing_columns=self._missing))
        columns, known = reader.schema.names, f"__hamlet_lines_{name}"
        batches: Iterable[pa.RecordBatch] = reader.batches(columns)
        if isinstance(reader, Folder):
            reader.look(list(filter(self._reads, columns)))
            some = [each for each in reader.readers if each.schema.names]
            batches = (batch for each in some for batch in reader.rows_of(each, columns))
        self.notes += absent_columns(reader)
        self._give(name, known, pa.RecordBatchReader.from_batches(reader.schema, () if self._empty else batches))
        self.execute(f"CREATE TABLE {quoted(name)} AS FROM {quoted(known)}")
        self.connection.unregister(known)

    def _reading(self, paths: Sequence[str]) -> str:
        """What the host reads files of one format by: columns by their names, types by all rows of text."""
        if _reader(paths[0]) == "read_csv":
            return self._reading_csv(paths)
        return f"{_reader(paths[0])}([{', '.join(map(_text, paths))}], union_by_name = true)"

    def _finer(self, moments: Mapping[str, str], reading: Callable[[Mapping[str, str]], str]) -> dict[str, str]:
        """The types of columns of times: of nanoseconds where some are finer than microseconds, texts where none fits.

        `reading` says how columns are read as these types.
        """
        columns = [(quoted(name), *_FINER[kind]) for name, kind in moments.items()]
        tests = [
            f"bool_or(regexp_matches({name}, '[.]\\d{{7}}')), bool_and({_is_moment(name, kind, form)})"
            for name, kind, form in columns
        ]
        [found] = self.rows(f"SELECT {', '.join(tests)} FROM {reading(dict.fromkeys(moments, 'VARCHAR'))}")
        are_fine, fit = found[::2], found[1::2]
        return {
            name: (_FINER[kind][0] if fits else "VARCHAR") if is_fine else kind
            for (name, kind), is_fine, fits in zip(moments.items(), are_fine, fit, strict=True)
        }

    def _reading_csv(self, paths: Sequence[str]) -> str:
        """Files of CSV, each by what its header and rows say: by itself the host leaves out rows that do not fit."""
        alike: dict[str, list[str]] = {}
        for path in paths:
            if path not in self._readings:
                self._readings[path] = self._form_of_csv(path)
            alike.setdefault(self._readings[path], []).append(path)
        readings = [f"read_csv([{', '.join(map(_text, some))}], {form})" for form, some in alike.items()]
        return readings[0] if len(readings) == 1 else f"({' UNION ALL BY NAME '.join(f'FROM {r}' for r in readings)})"

    def _form_of_csv(self, path: str) -> str:
        """How a file of CSV is read, as options of the host."""
        mark = _text(FileForm().of(Path(path)))
        fixed = f"header = true, delim = {mark}, quote = '\"', escape = '\"', comment = '', skip = 0"
        try:
            [found] = self.rows(
                "SELECT NewLineDelimiter, Columns, DateFormat, TimestampFormat "
                f"FROM sniff_csv({_text(path)}, {fixed}, sample_size = -1)"
            )
        except HostError:
            _raise_bad_row(path)
            raise
        ends, columns, days, times = found
        formats = {"dateformat": days, "timestampformat": times}
        dates = "".join(f", {name} = {_text(kind)}" for name, kind in formats.items() if kind)

        def form(types: Mapping[str, str]) -> str:
            return f"auto_detect = false, {fixed}, new_line = '{ends}', columns = {{{_listed(types)}}}{dates}"

        types = {each["name"]: each["type"] for each in columns}
        moments = {name: kind for name, kind in types.items() if kind in _FINER}
        if moments:  # of which the host forgets what is finer than microseconds
            types |= self._finer(moments, lambda texts: f"read_csv({_text(path)}, {form({**types, **texts})})")
        doubles = [name for name, kind in types.items() if kind == "DOUBLE"]
        if doubles and may_contain(Path(path), b"nan"):  # NaN is a number to the host, and no value to us
            tests = ", ".join(f"bool_or(isnan({quoted(name)}))" for name in doubles)
            [some] = self.rows(f"SELECT {tests} FROM read_csv({_text(path)}, {form(types)})")
            types |= {name: "VARCHAR" for name, nan in zip(doubles, some, strict=True) if nan}
        return form(types)

    def _narrowed(self, paths: Sequence[str]) -> str:
        """The columns of files with the types that they have in pipes and for other notations.

        The host takes numbers in CSV of which some are missing (``NA``) for texts. A column without values fits any
        expression.
        """
        if _reader(paths[0]) != "read_csv":
            return "*"
        reading = self._reading(paths)
        kinds = self.types(f"(FROM {reading})")
        wanted = [(quoted(column), *each) for column, kind in kinds.items() for each in _NARROWER.get(kind, ())]
        for rows in (f"(FROM {reading} LIMIT 100)", reading):  # of most texts the first ones tell
            if wanted:
                tests = [f"bool_and({test.format(column)})" for column, _, test, _ in wanted]
                [passed] = self.rows(f"SELECT {', '.join(tests)} FROM {rows}")
                wanted = [each for each, every in zip(wanted, passed, strict=True) if every]
        casts = {column: f"CAST({value.format(column)} AS {kind})" for column, kind, _, value in reversed(wanted)}
        if wanted:
            counts = ", ".join(f"count({value.format(column)})" for column, _, _, value in wanted)
            [found] = self.rows(f"SELECT {counts} FROM {reading}")
            casts |= {each[0]: "NULL" for each, count in zip(wanted, found, strict=True) if not count}
        replaced = ", ".join(f"{cast} AS {column}" for column, cast in casts.items())
        return f"* REPLACE ({replaced})" if casts else "*"

    def _look(self, paths: Sequence[str]) -> None:
        """Find which files of a table lack a column that others have."""
        known = [
            FileColumns(each, self.names(f"(FROM {self._reading([each])})"), _reader(each) == "read_csv")
            for each in paths
        ]
        wanted = filter(self._reads, dict.fromkeys(name for file in known for name in file.columns))
        counts: dict[str, int] = {}
        for file, column in lacking(known, list(wanted), self._missing):
            if file.name not in counts:
                [(counts[file.name],)] = self.rows(f"SELECT count(*) FROM {self._reading([file.name])}")
            self.notes.append(finding(file.name, column, counts[file.name]))

    def hear(self, *texts: str) -> None:
        """Note of texts of the host's SQL whether they have collations, which Arrow has not."""
        self.collates = self.collates or any("collat" in text.lower() for text in texts)

    def execute(self, text: str) -> duckdb.DuckDBPyConnection:
        """Run one text of the host's SQL.

        Raises
        ------
        HostError
        """
        self.hear(text)
        try:
            return self.connection.execute(text)
        except self._error as error:
            raise host_error(error) from None

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        """The rows of a query; the host may fail at each of them."""
        try:
            return self.execute(text).fetchall()
        except self._error as error:
            raise host_error(error) from None

    def arrow(self, text: str) -> pa.Table:
        """The rows of a query."""
        try:
            found = self.connection.sql(text)
            return pa.table({}) if found is None else found.to_arrow_table()
        except self._error as error:
            raise host_error(error) from None

    def within(self, text: str, most: int) -> pa.Table | None:
        """The rows of a query, None where they take more bytes."""
        try:
            batches, size = [], 0
            with self.connection.sql(text).to_arrow_reader(1 << 17) as reader:
                for batch in reader:
                    batches.append(batch)
                    size += batch.nbytes
                    if size > most:
                        return None
                return pa.Table.from_batches(batches, reader.schema).combine_chunks()
        except (self._error, OSError, pa.ArrowException) as error:  # Arrow wraps what the host says between batches
            raise host_error(error) from None

    def names(self, table: str) -> list[str]:
        """The columns of a table."""
        return [row[0] for row in self.rows(f"DESCRIBE {table}")]

    def said(self, query: str) -> HostError | None:
        """What the host says against a query, None for nothing."""
        try:
            self.rows(query)
        except HostError as error:
            return error
        return None

    def types(self, table: str) -> dict[str, str]:
        """The columns of a table and the host's types of them."""
        return {row[0]: row[1] for row in self.rows(f"DESCRIBE {table}")}

    def kind_of(self, text: str) -> str:
        """What a statement is (``SELECT``); refuses what reads or writes elsewhere.

        Raises
        ------
        HostError
        """
        try:
            statements = self.connection.extract_statements(text)
        except self._error as error:
            raise host_error(error) from None
        kind = statements[0].type.name if statements else "SELECT"
        if kind not in _ALLOWED and not self._files:
            raise HostError(
                f"{kind} is not allowed here: statements read the tables that they were given",
                0,
                "allow_files=True (--allow-files) opens files and extensions to statements",
            )
        return kind


def _is_path(value: Any) -> bool:
    return isinstance(value, (str, os.PathLike)) or (
        isinstance(value, (list, tuple)) and bool(value) and all(isinstance(each, (str, os.PathLike)) for each in value)
    )


def _paths(value: Any) -> list[str]:
    """The files that a path, a folder or a pattern stands for, in the order of their names."""
    given = [value] if isinstance(value, (str, os.PathLike)) else list(value)
    refuse_urls(given)
    found: list[str] = []
    for each in [os.fspath(one) for one in given]:
        path = Path(each)
        several = [path] if path.exists() else matching(path)
        if not several:
            raise DataError(f"no such file: {each}{similar_file(path)}")
        files = [str(file) for one in several for file in event_files(one)]
        empty = next((each for each in files if not Path(each).stat().st_size), None)
        if empty is not None:
            raise DataError(f"{empty} is empty")
        found += files
    return [str(Path(each).absolute()) for each in found]


def _reader(path: str) -> str | None:
    """What the host reads a file by, None for one of JSON, which it does not read by itself."""
    file = Path(path)
    if file.suffix.lower() == ".bz2":
        raise DataError(f"{path} is compressed in a way that DuckDB does not read (.bz2); use .gz or .zst")
    packed = file.suffix.lower() in COMPRESSIONS
    text = Path(file.stem if packed else file.name).suffix.lower() == ".txt"
    return _READERS.get("csv" if text else format_of(file, None))


def _raise_bad_row(path: str) -> None:
    """The error for a row of CSV with too many or too few fields, if there is one."""
    try:
        open_path(Path(path), SortKey(""), "")
    except DataError as error:
        raise DataError(without_drop(str(error))) from None


def _listed(types: Mapping[str, str]) -> str:
    """Columns and their types, as readers of the host take them."""
    return ", ".join(f"{_text(name)}: {_text(kind)}" for name, kind in types.items())


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _enums(value: Any) -> dict[str, str]:
    """The columns of a relation of DuckDB that are of an ENUM, and their types."""
    if type(value).__module__.split(".")[0] not in ("duckdb", "_duckdb"):
        return {}
    return {name: str(kind) for name, kind in zip(value.columns, value.types, strict=True) if kind.id == "enum"}


def _arrow(name: str, value: Any) -> Any:
    """A table as something that the host reads: Arrow."""
    module = type(value).__module__.split(".")[0]
    if isinstance(value, (pa.Table, pa.RecordBatch)):
        return pa.table(value) if isinstance(value, pa.Table) else pa.Table.from_batches([value])
    if isinstance(value, pa.RecordBatchReader):
        return value.read_all()
    if module == "polars":
        return (value.collect() if hasattr(value, "collect") else value).to_arrow()
    if module == "pandas":
        return _with_nanoseconds(value)
    if module in ("duckdb", "_duckdb"):
        return value.to_arrow_table()
    if isinstance(value, list) and all(isinstance(each, Mapping) for each in value):
        names = dict.fromkeys(column for each in value for column in each)
        value = {column: [each.get(column) for each in value] for column in names}  # what a dict lacks is NULL
    if isinstance(value, Mapping):
        return _table_of(name, value)
    if hasattr(value, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(value).read_all()
    raise OptionError(
        f"table {name!r} is {type(value).__name__}; give Arrow, pandas, polars, a DuckDB relation, a list of dicts "
        "or a path"
    )


def _with_nanoseconds(frame: Any) -> Any:
    """A frame of pandas, which the host reads itself, its times with a zone as Arrow's: else they lose nanoseconds."""
    zoned = [place for place, kind in enumerate(frame.dtypes) if str(kind).startswith("datetime64[ns, ")]
    fine = [place for place in zoned if (frame.iloc[:, place].dt.nanosecond.fillna(0) != 0).any()]
    if fine:
        frame = frame.copy(deep=False)
        for place in fine:
            frame.isetitem(place, frame.iloc[:, place].astype("timestamp[ns, tz=UTC][pyarrow]"))
    return frame


def _table_of(name: str, columns: Mapping[str, Any]) -> pa.Table:
    """A table of columns in arrays and lists."""
    arrays: dict[str, Any] = {}
    try:
        for column, values in columns.items():
            arrays[column] = None  # not read yet
            arrays[column] = values if isinstance(values, (pa.Array, pa.ChunkedArray)) else pa.array(values)
        return pa.table(arrays)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        where = next((f"column {column!r}: " for column, array in arrays.items() if array is None), "")
        raise DataError(f"table {name!r} cannot be read: {where}{error}") from None


_JSON = re.compile(r"\{.*\}", re.DOTALL)
_NO_TABLE = re.compile(r"Table with name (\S+) does not exist")
_LINE = re.compile(  # of CSV
    r"CSV Error on Line: (?P<line>\d+)\nOriginal Line: (?P<text>.*?)\n(?P<problem>[^\n]*)"
    r".*\n\s*file = (?P<file>[^\n]*)",
    re.DOTALL,
)


def host_error(error: Exception) -> HostError:
    """What the host raised, in one line, with its place and hint."""
    said = str(error)
    place, hint = None, None
    match = _JSON.search(said)
    if match is not None:
        try:
            facts = json.loads(match[0])
        except ValueError:
            facts = {}
        if facts.get("exception_message"):
            said = facts["exception_message"]
            if facts.get("position", "").isdecimal():
                place = int(facts["position"])
    said = said.split("\nLINE ")[0]
    row = _LINE.search(said)
    if row is not None:
        return HostError(f"{row['file']}:{row['line']}: {row['problem'].strip()}: {row['text'][:60]!r}", None)
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    kinds = ("Binder", "Parser", "Catalog", "Conversion", "Invalid Input", "Out of Range", "Permission")
    first = re.sub(rf"^({'|'.join(kinds)}) Error: ", "", lines[0]) if lines else type(error).__name__
    for line in lines[1:]:
        if line.startswith(("Candidate bindings", "Did you mean")):
            hint = re.sub(r"\W*:\W*:\s*", ": ", line[0].lower() + line[1:])
    if hint is not None and ("__hamlet" in hint or '"pg_' in hint or '"duckdb_' in hint):
        hint = None
    missing = _NO_TABLE.search(first)
    if missing is not None and hint is None:
        hint = f"tables are given by name: --input {missing[1]}=FILE, or {{{missing[1]!r}: ...}} in Python"
    return HostError(first, place, hint)
