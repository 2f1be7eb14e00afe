"""Columns that a file of an input lacks and others have: an error before any row, or NULL with a finding."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from hamlet.errors import DataError, OptionError, near_miss, one_of, option

MissingColumns = Literal["error", "null"]


@dataclass(frozen=True)
class FileColumns:
    """What is known of a file.

    Attributes
    ----------
    name : str
    columns : sequence of str
    has_header : bool
        Whether the columns stand in a header (CSV), which may be wrong or not there.
    """

    name: str
    columns: Sequence[str]
    has_header: bool = False


def check_missing(rule: str | None) -> None:
    """Raise OptionError where there is no such rule."""
    if rule not in (None, "error", "null"):
        raise OptionError(f"{option('missing_columns')} is {rule!r}; it must be 'error' or 'null'")


def lacking(files: Iterable[FileColumns], wanted: Collection[str], rule: str | None) -> list[tuple[FileColumns, str]]:
    """The columns that are wanted, some files have and others lack, file by file.

    Parameters
    ----------
    files : iterable of FileColumns
    wanted : collection of str
        A column that no file has is somebody else's mistake.
    rule : {'error', 'null'}, optional
        By default a file with a header must have all columns, and others are NULL.

    Raises
    ------
    DataError
        With all that is lacking, where it must not.
    """
    known = list(files)
    found, problems = [], []
    for name in wanted:
        having = next((each.name for each in known if name in each.columns), None)
        for each in known if having is not None else ():
            if name in each.columns:
                continue
            found.append((each, name))
            if rule == "error" or (rule is None and each.has_header):
                problems.append(refusal(each, name, having))
    if problems:
        raise DataError("\n".join([*problems, f"hint: {option('missing_columns', 'null')} takes them as NULL"]))
    return found


def refusal(file: FileColumns, name: str, having: str | None) -> str:
    """What is said of a file without a column that another one has."""
    place = f"{file.name}:1" if file.has_header else file.name
    other = "" if having is None else f" ({having} has it)"
    return f"{place}: {missing_column(name, file.columns)}{other}"


def finding(file: str, column: str, rows: int) -> str:
    """What is said where such a column is NULL."""
    events = "its event" if rows == 1 else f"its {rows:,} events"
    return f"{file} has no column {column!r}, which others have: it is NULL in {events}"


def missing_column(name: str, names: Sequence[str], role: str = "", option: str = "") -> str:
    """The message for a column that is not there: near names, or all of them, and the option that names another."""
    text = f"there is no {role} column {name!r}".replace("  ", " ")
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    if not near and (meant := near_miss(name, names)) is not None:
        near = [meant]
    if near:
        text += f"; did you mean {one_of([repr(each) for each in near])}?"
    elif names:
        shown = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
        text += f"; the columns are {shown}"
    return text + (f" ({named_by(option)} names the {role} column)" if option else "")


def named_by(option: str) -> str:
    """An option as the command line has it, and as Python does: ``--time-column, time_column in Python``."""
    return f"{option}, {option.removeprefix('--').replace('-', '_')} in Python,"
