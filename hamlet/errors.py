"""Every mistake that a user can make, as an exception whose text says what to do about it.

A workload's mistakes are `Diagnostic`s: message, place and hint are fields, and one function formats them, so that
every message of the project looks alike::

    trips.sase:2:34: expected ')' or ',' after 'Travel T+'
        PATTERN SEQ(Request R, Travel T+ WITHIN 10 min
                                         ^^^^^^
    hint: close SEQ( before WITHIN

Source: docs/errors.md.
"""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

Severity = Literal["error", "warning"]

_INDENT = "    "
_WIDEST = 150  # columns of a quoted line; a longer one is cut around the place that is meant


@dataclass(frozen=True, slots=True)
class Span:
    """Half-open range of character offsets, ``text[start:end]``."""

    start: int
    end: int

    def to(self, other: Span) -> Span:
        """The span from the start of this one to the end of another."""
        return Span(self.start, other.end)


NOWHERE = Span(0, 0)  # of what stands in no text


def span_field() -> Span:
    """The field of a tree's node that says where it stands in the text; nodes that differ in it alone are equal."""
    return field(default=NOWHERE, compare=False, repr=False, kw_only=True)


class HamletError(Exception):
    """A user's mistake. The command line prints its text, without a traceback, and ends with exit code 2.

    Attributes
    ----------
    row : int or None
        The row of the input, or the number of the event, that is meant; the first is 1.
    column : str or None
        The column or attribute.
    event : mapping or None
        The event.
    query : str or None
        The query.
    window : (int, int) or None
        The window, in ticks of the time column.
    group : mapping or None
        The values of the attributes by which the query is partitioned.
    """

    row: int | None = None
    column: str | None = None
    event: Mapping[str, Any] | None = None
    query: str | None = None
    window: tuple[int, int] | None = None
    group: Mapping[str, Any] | None = None

    def about(
        self,
        *,
        row: int | None = None,
        column: str | None = None,
        event: Mapping[str, Any] | None = None,
        query: str | None = None,
        window: tuple[int, int] | None = None,
        group: Mapping[str, Any] | None = None,
    ) -> Self:
        """Say in the error's fields what it is about, and return the error."""
        self.row, self.column, self.event = row, column, event
        self.query, self.window, self.group = query, window, group
        return self


class DataError(HamletError):
    """The input events are wrong: a missing column, a NULL time, a late event, an overflow."""


class LateError(DataError):
    """An event comes later than the lateness allows; nothing of its push was taken.

    Attributes
    ----------
    pieces : sequence
        Of a log, whose time-points before it were taken: the rows of these.
    """

    pieces: Sequence[tuple[int, Any]] = ()


class OptionError(HamletError):
    """An option has a wrong value, or clashes with another one."""


class UnsupportedError(HamletError):
    """What is asked for cannot be done here: something is not installed, or a query is of a kind not covered."""


class MemoryLimitError(HamletError):
    """The run needs more memory than it may take."""


class RestoreError(HamletError):
    """The bytes of a saved engine are damaged, of another workload, or of another version."""


class OutputError(HamletError):
    """The results cannot be written where, or as, they were asked for."""


class CalibrationWarning(UserWarning):
    """The calibration kept on this machine cannot be used; the shipped one is (`hamlet.planner.calibration`)."""


class JobError(Exception):
    """Spark could not finish a job, for a reason that is neither the workload's nor the data's."""


@dataclass(frozen=True)
class Diagnostic:
    """One error or warning about a workload, with its place in the text.

    Attributes
    ----------
    message : str
        What is wrong, one line, in the user's words.
    span : Span
        The characters of `text` that are meant.
    hint : str or None
        What to write instead, one line, pastable where that is possible.
    severity : {'error', 'warning'}
        A warning never stops a run.
    text : str
        The whole workload text that `span` points into.
    source : str
        The file's name for the message, ``<workload>`` for text that came from no file.
    """

    message: str
    span: Span
    hint: str | None = None
    severity: Severity = "error"
    text: str = field(default="", repr=False)
    source: str = "<workload>"

    @property
    def line(self) -> int:
        """Line number of the first character, from 1."""
        return self.text.count("\n", 0, self.span.start) + 1

    @property
    def column(self) -> int:
        """Column of the first character in its line, from 1, counted in characters."""
        return self.span.start - self._line_start() + 1

    def _line_start(self) -> int:
        return self.text.rfind("\n", 0, self.span.start) + 1

    def format(self) -> str:
        """The message as the user sees it: place and message, the line, carets under the span, the hint."""
        label = "warning: " if self.severity == "warning" else ""
        lines = [f"{self.source}:{self.line}:{self.column}: {label}{self.message}"]
        lines += [_INDENT + line for line in self._excerpt()]
        if self.hint is not None:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)

    def _excerpt(self) -> list[str]:
        """The quoted line and the carets below it; nothing where the line is empty."""
        start = self._line_start()
        end = self.text.find("\n", start)
        line = self.text[start : end if end >= 0 else len(self.text)].rstrip("\r")
        if not line.strip():
            return []
        first = min(self.span.start - start, len(line))
        last = min(max(self.span.end - start, first + 1), max(len(line), first + 1))
        line, first, last = _cut(line, first, last)
        shown = "".join(_printable(letter) for letter in line)
        carets = max(1, sum(_cells(letter) for letter in line[first:last]))
        # Letters before the carets become as many blanks as they are wide on a terminal.
        return [shown, " " * sum(_cells(letter) for letter in line[:first]) + "^" * carets]

    def __str__(self) -> str:
        return self.format()


def _cut(line: str, first: int, last: int) -> tuple[str, int, int]:
    """A window of at most `_WIDEST` characters around ``line[first:last]``, dots where something is left out."""
    if len(line) <= _WIDEST:
        return line, first, last
    left = max(0, first - _WIDEST // 2)
    right = min(len(line), left + _WIDEST)
    before, after = "..." * (left > 0), "..." * (right < len(line))
    shift = len(before) - left
    return before + line[left:right] + after, first + shift, min(last, right) + shift


def _printable(letter: str) -> str:
    """The letter itself, a blank for a tab, a replacement mark for a control character."""
    if letter == "\t":
        return " "
    return letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}"


def _cells(letter: str) -> int:
    """How many columns of a terminal a letter takes."""
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


class WorkloadError(HamletError):
    """A workload's text is wrong; carries every mistake found, not only the first.

    Parameters
    ----------
    diagnostics : iterable of Diagnostic
        At least one; kept in the order of the text.
    """

    diagnostics: tuple[Diagnostic, ...]

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = in_order(diagnostics)
        super().__init__(self.diagnostics)  # the arguments must rebuild the error when it is unpickled

    def __str__(self) -> str:
        return "\n".join(each.format() for each in self.diagnostics)


def in_order(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """The diagnostics by place in the text; the same message at the same place comes once."""
    unique = dict.fromkeys(diagnostics)
    return tuple(sorted(unique, key=lambda each: (each.span.start, each.span.end)))


def one_of(choices: Sequence[str], word: str = "or") -> str:
    """A list in words: ``'a'``, ``'a' or 'b'``, ``'a', 'b' or 'c'``, each item as it is given."""
    if len(choices) <= 1:
        return "".join(choices)
    return f"{', '.join(choices[:-1])} {word} {choices[-1]}"


def near_miss(name: str, choices: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The choice that `name` was probably meant to be: another case, or a few letters different.

    Parameters
    ----------
    name : str
    choices : iterable of str
    cutoff : float
        How alike they must be, from 0 (not at all) to 1 (equal but for the case).

    Examples
    --------
    >>> near_miss("Refund", ["refund", "order"]), near_miss("PATERN", ["PATTERN"], 0.75), near_miss("x", ["abc"])
    ('refund', 'PATTERN', None)
    """
    known = list(dict.fromkeys(choices))
    folded = {choice.lower(): choice for choice in reversed(known)}
    if name.lower() in folded:
        return folded[name.lower()]
    close = difflib.get_close_matches(name.lower(), list(folded), n=1, cutoff=cutoff)
    return folded[close[0]] if close else None


_FLAGS = {"since": "from", "until": "to"}  # words that Python keeps for itself
_as_flags = False


@contextmanager
def speaking_of_flags() -> Iterator[None]:
    """Have messages name options as the command line has them."""
    global _as_flags
    before, _as_flags = _as_flags, True
    try:
        yield
    finally:
        _as_flags = before


def option(name: str, value: object = None) -> str:
    """An option as whoever reads the message writes it: ``--time-column ts``, or ``time_column='ts'`` in Python.

    Examples
    --------
    >>> option("late", "drop"), option("lateness", "5 s"), option("max_memory")
    ("late='drop'", "lateness='5 s'", 'max_memory')
    """
    if not _as_flags:
        return name if value is None else f"{name}={value!r}"
    flag = f"--{_FLAGS.get(name, name).replace('_', '-')}"
    if value is None:
        return flag
    text = str(value)
    return f"{flag} {text}" if text and not set(text) & set(" '") else f"{flag} {text!r}"


def similar_file(path: Path) -> str:
    """What a path that is not there was probably meant to be, as the end of a sentence; nothing where nobody knows."""
    try:
        files = [Path(each.name) for each in sorted(path.parent.iterdir())]
    except OSError:
        return ""
    if Path(path.name) in files:  # it is there, and something else is wrong with it
        return ""
    alike = {each.stem: each.name for each in files if each.suffix == path.suffix}
    stem = near_miss(path.stem, alike)  # without the ending, which would make short names look alike
    others = (each.name for each in files if each.suffix != path.suffix)
    meant = alike[stem] if stem is not None else near_miss(path.name, others)
    return f"; did you mean {path.parent / meant}?" if meant is not None else ""
