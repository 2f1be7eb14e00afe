"""Event files: which format a path has, Parquet files, and folders of files.

A reader knows the schema of all its rows before it delivers the first, and can be read any number of times.
"""

from __future__ import annotations

import glob
import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hamlet.errors import DataError, one_of, similar_file
from hamlet.input.clocked import Clocked, clocked
from hamlet.input.csvfile import CsvFile
from hamlet.input.file_form import FileForm
from hamlet.input.files_protocol import Reader
from hamlet.input.folder import Folder
from hamlet.input.formats import format_of
from hamlet.input.hive import InFolders, types_of, values_in
from hamlet.input.input_schema import other_type
from hamlet.input.jsonfile import JsonFile
from hamlet.input.merged import Merged
from hamlet.input.ordering import BATCH_ROWS, SortKey
from hamlet.input.timed import Timed, timed
from hamlet.input.widening import FRACTION, conform, validate, widen

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_DICTIONARY_BYTES, _PLACE_BYTES = 1 << 21, 4  # of a column of dictionary and places at most; writers give it 1 MiB
_GZIP, _WIDE_MARKS = b"\x1f\x8b", (b"\xff\xfe", b"\xfe\xff")  # how such files begin; UTF-16 of either byte order


def refuse_urls(source: Any) -> None:
    """Raise DataError where a path, or one of several, is a URL."""
    for each in source if isinstance(source, (list, tuple)) else [source]:
        if isinstance(each, str) and "://" in each:
            raise DataError(f"{each} is a URL, and files are read here; hamlet submit reads the URLs that Spark can")


def open_paths(
    paths: Sequence[Path], key: SortKey, type_column: str, input_format: str | None = None, form: FileForm | None = None
) -> Reader:
    """A reader of several files and folders, one after the other; raises as `open_path`."""
    opened = _opened(paths, key, type_column, input_format, form)
    readers = [each for reader in opened for each in (reader.readers if isinstance(reader, Folder) else [reader])]
    shown = str(paths[0]) if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
    return opened[0] if len(opened) == 1 else _together(shown, readers, key, form)


def _together(name: str, readers: Sequence[Reader], key: SortKey, form: FileForm | None) -> Reader:
    """Several files as one."""
    clock, form = key_of(readers[0], key).time, form or FileForm()
    if form.by_time:
        return Merged(name, readers, clock, form.missing_columns, lambda column: column == clock or form.reads(column))
    return Folder(name, readers, clock, form.missing_columns)


def _opened(
    paths: Sequence[Path], key: SortKey, type_column: str, input_format: str | None, form: FileForm | None
) -> list[Reader]:
    """Readers of each, all with the time column of the first."""
    found: list[Reader] = []
    for path in paths:
        found.append(open_path(path, key, type_column, input_format, form))
        key = key_of(found[0], key)
    return found


def key_of(reader: Reader, key: SortKey) -> SortKey:
    """The key with the time column that the first file of a reader has (`SortKey.among`)."""
    first: Any = reader
    while not isinstance(first, (CsvFile, JsonFile, ParquetFile)):
        first = first.readers[0] if isinstance(first, Folder) else first.reader
    return replace(key, time=first.key.time) if isinstance(first, JsonFile) else key.among(first.schema.names)


def matching(pattern: Path) -> list[Path]:
    """The files and folders that a pattern such as ``logs/*.csv`` means, by name; none where it is no pattern."""
    if not _is_open(str(pattern)) or pattern.exists():
        return []
    return [Path(each) for each in sorted(glob.glob(str(pattern), recursive=True))]


def root_of(pattern: Path) -> Path:
    """The folder below which the folders of what a path means are columns: a folder, or what a pattern leaves open."""
    return pattern if pattern.is_dir() else Path(*itertools.takewhile(lambda part: not _is_open(part), pattern.parts))


def _is_open(text: str) -> bool:
    return any(mark in text for mark in "*?[")


def open_path(
    path: Path,
    key: SortKey,
    type_column: str,
    input_format: str | None = None,
    form: FileForm | None = None,
    known: Mapping[str, pa.DataType] | None = None,
) -> Reader:
    """A reader of a file, of all files in a folder, or of all that a pattern such as ``logs/*.csv`` means.

    Parameters
    ----------
    path : pathlib.Path
    key : SortKey
    type_column : str
    input_format : {'parquet', 'csv', 'json'}, optional
        By default the extension says.
    form : FileForm, optional
        How text is read, and what becomes of bad rows.
    known : mapping of str to pyarrow.DataType, optional
        Of a file that comes after others: the types that columns have there. A value of another type is an error.

    Raises
    ------
    DataError
        If there is no such file, it is empty, or it cannot be read.
    OptionError
        If the format cannot be told.
    """
    try:
        if path.is_dir():
            return _open_folder(path, key, type_column, input_format, form)
        if several := matching(path):
            root, files = root_of(path), [file for each in several for file in event_files(each)]
            if any(values_in(file, root) for file in files):
                return _open_below(root, files, str(path), key, type_column, input_format, form)
            return open_paths(several, key, type_column, input_format, form)
        if not path.exists():
            raise DataError(f"no such file: {path}{similar_file(path)}")
    except PermissionError as error:  # of a folder above it
        raise DataError(f"cannot read {path}: {error.strerror}") from error
    kind = format_of(path, input_format)
    key = SortKey(key.time, key.order, str(path))
    try:
        if not path.is_file():
            raise DataError(
                f"{path} is a pipe or a device, and an input is read twice; give a file, or --input - (standard input)"
            )
        check_first_bytes(path, kind)
        if kind == "parquet":
            own = {name: kind for name, kind in (known or {}).items() if name != key.time or kind != FRACTION}
            found = ParquetFile(path, own)
            key = key.among(found.schema.names)
            reader = clocked(found, key.time, form is not None and form.written_times)
            drops = form is not None and form.drops and (reader is not found or found.may_lack(key.names))
            return timed(reader, key) if drops else reader
        if kind == "csv":
            return CsvFile(path, key, type_column, form, known)
        form = form or FileForm()
        return JsonFile(path, key, replace(form, texts=(*form.texts, type_column)), known)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error


def check_first_bytes(path: Path, kind: str) -> None:
    """Raise DataError at a file that is empty, and at text that begins as no text does that is read here."""
    with path.open("rb") as file:
        first = file.read(2)
    if not first:
        raise DataError(f"{path} is empty")
    if kind != "parquet" and first in _WIDE_MARKS:
        raise DataError(f"{path} is UTF-16 text; save it as UTF-8")
    if path.suffix.lower() == ".gz" and first != _GZIP:
        raise DataError(f"{path} is not compressed with gzip, as its name says; give it a name without .gz")
    if first == _GZIP and path.suffix.lower() != ".gz":
        raise DataError(f"{path} is compressed with gzip; give it a name that ends in .gz, such as {path.name}.gz")


def event_files(path: Path) -> list[Path]:
    """The file itself, or all files below a folder, by name; those that start with _ or . are left out, as Spark does.

    Raises
    ------
    DataError
        If a folder has no file, or must not be read.
    """
    if not path.is_dir():
        return [path]
    try:
        os.listdir(path)  # rglob leaves out what it must not read
    except OSError as error:
        raise DataError(f"cannot read the folder {path}: {error.strerror or error}") from error
    found = sorted(
        file
        for file in path.rglob("*")
        if file.is_file() and not any(part.startswith(("_", ".")) for part in file.relative_to(path).parts)
    )
    if not found:
        raise DataError(f"there are no files in the folder {path}")
    return found


@dataclass(frozen=True)
class Leaf:
    """A file of an input, for whoever opens it again.

    Attributes
    ----------
    path : str
    is_parquet : bool
    folders : InFolders or None
        What knows the columns that its folders say.
    whole : bool
        Whether it is read as it stands: no row is left out, and times are a clock.
    """

    path: str
    is_parquet: bool
    folders: InFolders | None
    whole: bool


def leaves(reader: Reader) -> Iterator[Leaf]:
    """The files that a reader reads, in their order."""
    if isinstance(reader, Folder):
        for each in reader.readers:
            yield from leaves(each)
        return
    folders = reader if isinstance(reader, InFolders) else None
    inner: Reader = reader.reader if isinstance(reader, InFolders) else reader
    whole = not isinstance(inner, (Timed, Clocked))
    inner = inner.reader if isinstance(inner, Timed) else inner
    inner = inner.reader if isinstance(inner, Clocked) else inner
    yield Leaf(str(Path(inner.name).resolve()), isinstance(inner, ParquetFile), folders, whole)


def _open_folder(path: Path, key: SortKey, type_column: str, input_format: str | None, form: FileForm | None) -> Reader:
    found = event_files(path)
    kinds = {format_of(file, input_format): file for file in found}
    if len(kinds) > 1 and (form is None or not form.by_time):
        mixed = one_of([f"{file.name} ({kind})" for kind, file in kinds.items()], "and")
        raise DataError(f"the folder {path} mixes formats: {mixed}; give one file, or a folder of one format")
    return _open_below(path, found, str(path), key, type_column, input_format, form)


def _open_below(
    root: Path,
    found: Sequence[Path],
    shown: str,
    key: SortKey,
    type_column: str,
    input_format: str | None,
    form: FileForm | None,
) -> Reader:
    """Files whose folders below a root may be columns."""
    values = [values_in(file, root) for file in found]
    types = types_of(values)
    readers = [
        InFolders(reader, each, types) if each else reader
        for reader, each in zip(_opened(found, key, type_column, input_format, form), values, strict=True)
    ]
    return readers[0] if len(readers) == 1 else _together(shown, readers, key, form)


class ParquetFile:
    """A Parquet file, read a part of a row group at a time, and only the columns that are wanted.

    Columns of strings that the file keeps in dictionaries stay dictionaries: to read them, and to number their values,
    takes a third of the time that it takes for as many strings.

    Attributes
    ----------
    metadata : pyarrow.parquet.FileMetaData
        The file's footer, which is read once.
    groups : sequence of int
        The row groups that are read; all, until somebody has proved that some are of no use
        (`hamlet.input.row_groups`).
    """

    ordered: bool | None = None

    def __init__(self, path: Path, known: Mapping[str, pa.DataType] | None = None) -> None:
        import pyarrow.parquet as pq  # brings in readers of other file systems, which text needs none of

        self.name = str(path)
        try:
            with pq.ParquetFile(path) as file:
                self.metadata = file.metadata
                self.groups: Sequence[int] = range(file.metadata.num_row_groups)
                self.schema: pa.Schema = file.schema_arrow.remove_metadata()
                self._dictionaries = _dictionaries(file)
                for name in self._dictionaries:
                    place = self.schema.get_field_index(name)
                    self.schema = self.schema.set(place, pa.field(name, pa.dictionary(pa.int32(), pa.string())))
                self.rows: int | None = file.metadata.num_rows
                _ = self.schema.names  # names that are no UTF-8 raise here, a ValueError
        except (pa.ArrowException, ValueError) as error:
            raise DataError(f"{path} is not a readable Parquet file: {error}") from error
        for name, kind in (known or {}).items():
            found = self.schema.field(name).type if name in self.schema.names else kind
            wide = widen(kind, found)
            if wide is None or not wide.equals(kind):
                raise DataError(f"{path}: {other_type(name, f'values of the type {found}', kind)}")

    def may_lack(self, names: Sequence[str]) -> bool:
        """Whether some row may have no value in one of these columns, by what the file says of itself."""
        for number in self.groups:
            group = self.metadata.row_group(number)
            for column in (group.column(place) for place in range(group.num_columns)):
                known = column.statistics if column.is_stats_set else None
                if column.path_in_schema in names and (known is None or not known.has_null_count or known.null_count):
                    return True
        return False

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows of the row groups that are read, in their order."""
        import pyarrow.parquet as pq

        schema = pa.schema([self.schema.field(column) for column in columns])
        try:
            # Buffered reads instead of whole column chunks: memory does not grow with the row group.
            dictionaries = [name for name in self._dictionaries if name in columns]
            with pq.ParquetFile(
                self.name, metadata=self.metadata, pre_buffer=False, buffer_size=1 << 20, read_dictionary=dictionaries
            ) as file:
                for batch in file.iter_batches(BATCH_ROWS, list(self.groups), list(columns), use_threads=False):
                    if batch.num_rows:
                        validate(batch)  # Arrow checks neither UTF-8 nor the places in a dictionary
                        yield conform(batch, schema)
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{self.name}: the Parquet file cannot be read to its end: {error}") from error


def _dictionaries(file: pq.ParquetFile) -> list[str]:
    """The columns of strings that have a dictionary for all their values in every row group."""
    metadata, schema = file.metadata, file.schema_arrow
    names = {field.name for field in schema if field.type == pa.string() and schema.names.count(field.name) == 1}
    for group in range(metadata.num_row_groups):
        rows = metadata.row_group(group)
        for place in range(rows.num_columns if names else 0):
            column = rows.column(place)
            most = _DICTIONARY_BYTES + _PLACE_BYTES * rows.num_rows  # more where some values are in no dictionary
            if not column.has_dictionary_page or column.total_uncompressed_size > most:
                names.discard(column.path_in_schema)
    return [name for name in schema.names if name in names] if metadata.num_row_groups else []
