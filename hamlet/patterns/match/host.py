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
from hamlet.input.file_form import FileForm, without_drop
from hamlet.input.files import event_files, matching, open_paths, refuse_urls
from hamlet.input.folder import Folder
from hamlet.input.folder import lacking as absent_columns
from hamlet.input.formats import COMPRESSIONS, format_of
from hamlet.input.missing import FileColumns, MissingColumns, finding, lacking
from hamlet.input.ordering import SortKey

if TYPE_CHECKING:
    import duckdb

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
        formats = {_format(each) for each in paths}
        if len(formats) > 1:
            raise DataError(f"table {name!r} has files of several formats; give files of one format")
        try:
            if formats != {"parquet"}:
                several = [given] if isinstance(given, (str, os.PathLike)) else given
                self._register_text(name, [Path(each) for each in several], *formats)
                return
            if len(paths) > 1:
                self._look(paths)
            some = " LIMIT 0" if self._empty else ""
            self.execute(f"CREATE VIEW {quoted(name)} AS FROM {_parquet(paths)}{some}")
        except HostError as error:
            raise DataError(f"table {name!r} cannot be read from {paths[0]}: {error.message}") from None

    def _register_text(self, name: str, paths: Sequence[Path], form: str) -> None:
        """Read files of CSV and JSON as other notations do: the host has other types, or leaves rows out."""
        try:
            reader = open_paths(paths, SortKey(""), "", form, FileForm(missing_columns=self._missing))
        except DataError as error:
            raise DataError(without_drop(str(error))) from None
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

    def _look(self, paths: Sequence[str]) -> None:
        """Find which files of a table lack a column that others have."""
        known = [FileColumns(each, self.names(f"(FROM {_parquet([each])})"), False) for each in paths]
        wanted = filter(self._reads, dict.fromkeys(name for file in known for name in file.columns))
        counts: dict[str, int] = {}
        for file, column in lacking(known, list(wanted), self._missing):
            if file.name not in counts:
                [(counts[file.name],)] = self.rows(f"SELECT count(*) FROM {_parquet([file.name])}")
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


def _format(path: str) -> str:
    """The format of a file; what is called a text is CSV."""
    file = Path(path)
    packed = file.suffix.lower() in COMPRESSIONS
    return "csv" if Path(file.stem if packed else file.name).suffix.lower() == ".txt" else format_of(file, None)


def _parquet(paths: Sequence[str]) -> str:
    """What the host reads files of Parquet by: columns by their names."""
    return f"read_parquet([{', '.join(map(_text, paths))}], union_by_name = true)"


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
