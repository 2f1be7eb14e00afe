"""Files in and out: raw tables from Parquet, CSV and zip archives; streams to Parquet, CSV and JSON lines."""

from __future__ import annotations

import gzip
import io
import json
import os
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from hamlet.errors import DataError, OptionError

STREAM_SUFFIXES = (".parquet", ".csv", ".jsonl")
_ROWS_AT_ONCE = 65_536


def check_output(path: Path) -> None:
    """Refuse a file name that `write_stream` cannot write, before any work is done.

    Raises
    ------
    OptionError
        The extension is none of `STREAM_SUFFIXES`, or the folder does not exist.
    """
    if path.suffix.lower() not in STREAM_SUFFIXES:
        raise OptionError(f"cannot tell the format of {path}: end its name in {', '.join(STREAM_SUFFIXES)}")
    if not path.absolute().parent.is_dir():
        raise OptionError(f"cannot write {path}: there is no folder {path.absolute().parent}")


def write_stream(table: pa.Table, path: Path) -> None:
    """Write a stream in the format of the file's extension; the file appears only when it is complete.

    Parameters
    ----------
    table : pyarrow.Table
        The events.
    path : pathlib.Path
        Ends in ``.parquet``, ``.csv`` (header, NULL is empty) or ``.jsonl`` (NULL attributes are left out).
    """
    check_output(path)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        match path.suffix.lower():
            case ".parquet":
                pyarrow.parquet.write_table(table, unfinished, compression="zstd")
            case ".csv":
                pyarrow.csv.write_csv(table, unfinished)
            case _:
                with open(unfinished, "w", encoding="utf-8") as lines:
                    lines.writelines(_json_lines(table))
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def _json_lines(table: pa.Table) -> Iterator[str]:
    for batch in table.to_batches(max_chunksize=_ROWS_AT_ONCE):
        for row in batch.to_pylist():
            yield json.dumps({name: value for name, value in row.items() if value is not None}) + "\n"


def read_raw(path: Path, needed: Mapping[str, pa.DataType], strings: Sequence[str] = ()) -> pa.Table:
    """A publisher's table with a header: Parquet, CSV, or CSV inside a zip archive.

    Parameters
    ----------
    path : pathlib.Path
        The file.
    needed : mapping of str to pyarrow.DataType
        Columns to read and the types to give them.
    strings : sequence of str
        Text that stands for NULL beside the empty one.

    Returns
    -------
    pyarrow.Table
        The needed columns, in that order.

    Raises
    ------
    DataError
        The file cannot be read, lacks a column, or has a value of another type.
    """
    if path.suffix.lower() == ".parquet":
        return _read_parquet(path, needed)
    options = pyarrow.csv.ConvertOptions(
        column_types=dict(needed), include_columns=list(needed), null_values=["", *strings], strings_can_be_null=True
    )
    return read_csv(path, content(path), convert=options)


def _read_parquet(path: Path, needed: Mapping[str, pa.DataType]) -> pa.Table:
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            lacking = [name for name in needed if name not in file.schema_arrow.names]
            if lacking:
                raise DataError(
                    f"{path} has no column {', '.join(lacking)}; it has {', '.join(file.schema_arrow.names)}"
                )
            table = file.read(columns=list(needed))
        return pa.table(
            [table[name].cast(kind) for name, kind in needed.items()], schema=pa.schema(list(needed.items()))
        )
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"cannot read {path}: {error}") from error


def header(path: Path) -> list[str]:
    """The column names of a Parquet file, a CSV file, or a CSV file inside a zip archive.

    Raises
    ------
    DataError
        The file cannot be read.
    """
    try:
        if path.suffix.lower() == ".parquet":
            with pyarrow.parquet.ParquetFile(path) as file:
                return list(file.schema_arrow.names)
        with content(path) as stream:
            line = stream.readline().decode("utf-8-sig")
        return [name.strip().strip('"') for name in line.split(",")]
    except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
        raise DataError(f"cannot read {path}: {error}") from error


def read_csv(
    path: Path,
    stream: io.BufferedIOBase,
    read: pyarrow.csv.ReadOptions | None = None,
    parse: pyarrow.csv.ParseOptions | None = None,
    convert: pyarrow.csv.ConvertOptions | None = None,
) -> pa.Table:
    """A CSV table, with an error that names the file.

    Raises
    ------
    DataError
        The text is no such table, or a column is missing.
    """
    try:
        with stream:
            return pyarrow.csv.read_csv(stream, read, parse, convert)
    except KeyError as error:
        raise DataError(f"{path}: {error.args[0]}") from error
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"cannot read {path}: {error}") from error


def content(path: Path) -> io.BufferedIOBase:
    """The bytes of a file, of what a gzip file packs, or of the only file inside a zip archive.

    Raises
    ------
    DataError
        There is no such file, it is no zip archive, or the archive holds several files.
    """
    try:
        if path.suffix.lower() == ".gz":
            return gzip.open(path, "rb")
        if path.suffix.lower() != ".zip":
            return open(path, "rb")
        with zipfile.ZipFile(path) as archive:
            members = archive.namelist()
            if len(members) != 1:
                raise DataError(f"{path} holds {len(members)} files, expected one")
            return io.BytesIO(archive.read(members[0]))
    except (OSError, zipfile.BadZipFile) as error:
        raise DataError(f"cannot read {path}: {error}") from error


def member(path: Path) -> str:
    """The name that describes a file's content: its own, or that of the first file inside a zip archive.

    Raises
    ------
    DataError
        The archive cannot be read.
    """
    if path.suffix.lower() != ".zip":
        return path.name
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.namelist()[0]
    except (OSError, IndexError, zipfile.BadZipFile) as error:
        raise DataError(f"cannot read {path}: {error}") from error


def gather(inputs: Sequence[Path], suffixes: Sequence[str]) -> list[Path]:
    """The files that were named, and all files of the named folders, sorted within each folder.

    Parameters
    ----------
    inputs : sequence of pathlib.Path
        Files and folders.
    suffixes : sequence of str
        Extensions, with the dot and in lower case, that count inside a folder.

    Raises
    ------
    DataError
        A path does not exist, or a folder has no such file.
    """
    found: list[Path] = []
    for path in inputs:
        if path.is_dir():
            inside = sorted(p for p in path.rglob("*") if p.suffix.lower() in suffixes and p.is_file())
            if not inside:
                raise DataError(f"the folder {path} has no file that ends in {', '.join(suffixes)}")
            found.extend(inside)
        elif path.is_file():
            found.append(path)
        else:
            raise DataError(f"there is no file or folder {path}")
    return found
