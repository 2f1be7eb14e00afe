"""How files of events are read: separators, missing values, bad rows, and in which types columns come."""

from __future__ import annotations

import bz2
import gzip
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal

from hamlet.arrays import pa
from hamlet.errors import OptionError, option
from hamlet.input.missing import MissingColumns, check_missing

BadRows = Literal["error", "drop"]
MARKS = (",", ";", "\t", "|")
SHOWN = 3  # rows that were dropped
_UNEVEN = re.compile(r"Expected (\d+) columns, got (\d+)(?:: (.*))?", re.DOTALL)


@dataclass(frozen=True)
class FileForm:
    """The options of files.

    Attributes
    ----------
    delimiter : str or None
        Of CSV: one character; by default the header tells.
    bad_rows : {'error', 'drop'}
        What becomes of rows without a time, of CSV rows with too many or too few fields, and of lines that are no JSON
        object or have a value of another kind than the attribute had before (`hamlet.input.jsonbad`).
    nulls : tuple of str, optional
        What is NULL in CSV, in place of what usually is; the empty one is text in a column of text.
    missing_columns : {'error', 'null'}, optional
        What becomes of a column that one of several files lacks; by default an error in CSV, else NULL.
    texts : tuple of str
        Columns of CSV that are text, whatever their values look like: ``007`` stays what it is.
    whole_seconds : bool
        Whether a time column of text whose times are whole seconds counts seconds, as bounds of policies without a unit
        do, in place of microseconds, as that of a pipe does.
    declared : mapping of str to pyarrow.DataType
        Columns of text that are read as these types, whatever they look like.
    only : callable, optional
        Which other columns somebody reads, by name; the rest may hold anything, and has the null type.
    records : callable, optional
        What makes a table of objects of JSON, in place of Arrow: of arrays whose values are of several types.
    by_time : bool
        Whether the events of several files are merged by time, in place of one file after the other.
    written_times : bool
        Whether the time column comes as it is written, since it is a value, too; its type is that of its times.
    """

    delimiter: str | None = None
    bad_rows: str = "error"
    nulls: tuple[str, ...] | None = None
    missing_columns: MissingColumns | None = None
    texts: tuple[str, ...] = ()
    whole_seconds: bool = False
    declared: Mapping[str, pa.DataType] = field(default_factory=dict)
    only: Callable[[str], bool] | None = None
    records: Callable[[Sequence[dict[str, Any]]], pa.Table] | None = None
    by_time: bool = False
    written_times: bool = False

    def reads(self, name: str) -> bool:
        """Whether somebody reads a column of this name."""
        return self.only is None or name in self.declared or self.only(name)

    @property
    def drops(self) -> bool:
        """Whether bad rows are left out."""
        return self.bad_rows == "drop"

    def __post_init__(self) -> None:
        if self.delimiter is not None and len(self.delimiter) != 1:
            meant = "; a tab is written $'\\t' in a shell" if self.delimiter in ("\\t", "tab", "TAB") else ""
            raise OptionError(f"the delimiter is {self.delimiter!r}; it must be one character{meant}")
        if self.bad_rows not in ("error", "drop"):
            raise OptionError(f"bad_rows is {self.bad_rows!r}; it must be 'error' or 'drop'")
        check_missing(self.missing_columns)

    def of(self, path: Path) -> str:
        """What separates the fields of a file: what was asked for, else what its header has."""
        if self.delimiter is not None:
            return self.delimiter
        try:
            with _opened(path) as file:
                header = file.readline(1 << 16).decode("utf-8", "replace")
        except (OSError, EOFError):
            return ","
        if path.suffix.lower() == ".tsv" and "\t" in header:
            return "\t"
        if "," in header:
            return ","
        return max(MARKS, key=header.count) if any(mark in header for mark in MARKS) else ","


def _opened(path: Path) -> IO[bytes]:
    """A file of text; what is compressed otherwise than Python knows is taken to have commas."""
    suffix = path.suffix.lower()
    if suffix == ".gz":
        return gzip.open(path, "rb")  # type: ignore[return-value]
    if suffix == ".bz2":
        return bz2.open(path, "rb")
    if suffix == ".zst":
        return pa.input_stream(path, compression="zstd")  # type: ignore[no-any-return]
    return path.open("rb")


def fields(count: int) -> str:
    """A number of fields."""
    return "1 field" if count == 1 else f"{count:,} fields"


def repeated_column(names: Sequence[str]) -> str | None:
    """What is wrong with a header that has a name twice; columns without a name do not count."""
    repeated = sorted({name for name in names if name and names.count(name) > 1})
    return f"the header names the column {repeated[0]!r} more than once; rename one of them" if repeated else None


def uneven_row(fields_found: int, names: int, text: str) -> str:
    """What is wrong with a row of too many or too few fields."""
    shown = text if len(text) <= 60 else f"{text[:57]}..."
    return f"{fields(fields_found)} in place of {names}, {shown!r}"


def told_better(problem: str, line: int | None = None) -> str:
    """What Arrow says of a row of CSV; of one with too many or too few fields with what may be the reason.

    Parameters
    ----------
    problem : str
    line : int, optional
        Where the row begins.
    """
    found = _UNEVEN.search(problem)
    if found is None:
        return problem[:200]
    names, count, text = int(found[1]), int(found[2]), found[3] or ""
    if text.count('"') % 2:
        hint = "a quotation mark is opened and not closed"
    elif line == 2 and names < count:
        hint = "the first line must name the columns; remove what stands above them"
    else:
        hint = f"{option('bad_rows', 'drop')} leaves such rows out, and counts them"
    return f"{uneven_row(count, names, text)}\nhint: {hint}"


def without_drop(said: str) -> str:
    """What is said of a bad row, for whoever has no option to leave it out."""
    return said.split(f"\nhint: {option('bad_rows', 'drop')}")[0]


@dataclass
class Dropped:
    """Rows that were left out.

    Attributes
    ----------
    rows : int
    examples : list of str
        What was wrong with the first of them.
    findings : list of str
        What else is to be said: columns that a file lacks.
    """

    rows: int = 0
    examples: list[str] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)

    def add(self, example: str) -> None:
        """Count a row."""
        self.rows += 1
        if len(self.examples) < SHOWN:
            self.examples.append(example)

    def plus(self, other: Dropped, name: str | None = None) -> Dropped:
        """Those of both; the examples of the other with the name of what they are from."""
        more = [f"{name}: {each}" if name is not None else each for each in other.examples]
        return Dropped(self.rows + other.rows, [*self.examples, *more][:SHOWN], [*self.findings, *other.findings])

    def sentence(self) -> str | None:
        """How many rows were dropped, and the first three."""
        if not self.rows:
            return None
        more = "" if self.rows <= len(self.examples) else ", ..."
        return f"{self.rows:,} bad row{'s' * (self.rows != 1)} dropped: {'; '.join(self.examples)}{more}"
