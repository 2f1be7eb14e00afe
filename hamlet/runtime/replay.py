"""A file sent as if it happened now: line by line at a rate, or by the times that its lines have.

Lines go out in groups of those that are due, so a rate of a million a second needs no more than some thousand writes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

from hamlet.errors import DataError, OptionError, similar_file
from hamlet.frontend.time_column import called
from hamlet.input.live.line_times import TimeText, seconds_in, sniffed, time_text
from hamlet.input.live.sources import form_of

_GROUP = 0.001  # seconds: lines that are due within so many go out together
_MOST = 4096  # lines of a group
Pace = Callable[[bytes, int], float | None]  # of a line and its number: seconds from the first line on


class Replay:
    """Sends the lines of a file.

    Parameters
    ----------
    path : str
    pace : callable
        When each line is due; None for one that goes with the line before it.

    Attributes
    ----------
    lines : int
        Sent so far.
    behind : float
        The most seconds that a line came too late.
    seconds : float
    stopped : bool
    """

    def __init__(self, path: str, pace: Pace) -> None:
        self._path, self._pace = Path(path), pace
        self._stop = threading.Event()
        self.lines = 0
        self.behind = 0.0
        self.seconds = 0.0

    def stop(self) -> None:
        """Send no more."""
        self._stop.set()

    @property
    def stopped(self) -> bool:
        """Whether somebody has asked to stop."""
        return self._stop.is_set()

    def run(self, send: Callable[[bytes], None]) -> None:
        """Send all lines, unchanged."""
        started = time.perf_counter()
        group: list[bytes] = []
        due = 0.0
        for number, line in enumerate(self._read()):
            try:
                at = self._pace(line, number)
            except DataError as error:
                if group:
                    self._send(send, group, started, due)
                raise DataError(f"{self._path}:{number + 1}: {error}") from None
            if group and ((at is not None and at > due + _GROUP) or len(group) >= _MOST):
                self._send(send, group, started, due)
                group = []
            if at is not None and (not group or at < due):
                due = at if not group else due
            group.append(line)
            if self.stopped:
                return
        if group:
            self._send(send, group, started, due)
        self.seconds = time.perf_counter() - started

    def _send(self, send: Callable[[bytes], None], group: list[bytes], started: float, due: float) -> None:
        early = started + due - time.perf_counter()
        if early > 0:
            self._stop.wait(early)
        if self.stopped:
            return
        send(b"".join(group))
        self.lines += len(group)
        self.seconds = time.perf_counter() - started
        self.behind = max(self.behind, self.seconds - due)

    def _read(self) -> Iterator[bytes]:
        try:
            with self._path.open("rb") as file:
                yield from file
        except OSError as error:
            raise DataError(f"cannot read {self._path}: {error.strerror}{similar_file(self._path)}") from None


def pace_of(
    path: str, rate: float | None, speed: float | None, form: str | None, time_column: str, time_unit: str
) -> Pace:
    """When the lines of a file are due.

    Parameters
    ----------
    path : str
    rate : float or None
        Lines per second.
    speed : float or None
        How many times as fast as the times in the file.
    form : {'json', 'csv', 'monpoly'}, optional
    time_column, time_unit : str

    Raises
    ------
    DataError
        If the file cannot be read.
    OptionError
        If its form cannot be told.
    """
    first = _first_line(path)
    if not first:
        return lambda _line, _number: 0.0
    form = form or form_of(Path(path)) or sniffed(first) or "csv"
    head = 1 if form == "csv" else 0  # a header is sent with the first line
    if rate is not None:
        return lambda _, number: max(0, number - head) / rate
    assert speed is not None
    times = time_text(form, first, called(time_column), path)
    if times is None:
        raise OptionError(f"{path} has no lines with times that could be read; give --rate")
    try:
        if form == "json" and times(first) is None:
            raise DataError(f"the first event has no {time_column!r}; --time-column names the time column")
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    return _ByTimes(times, speed, time_unit, form == "csv")


class _ByTimes:
    def __init__(self, times: TimeText, speed: float, unit: str, quoted: bool) -> None:
        self._times, self._speed, self._unit = times, Fraction(speed), unit
        self._quoted = quoted
        self._inside = False  # whether a value with a line break has begun
        self._begin: Fraction | int | None = None

    def __call__(self, line: bytes, _: int) -> float | None:
        text = self._times(line) if line.strip() and not self._inside else None
        if self._quoted and line.count(b'"') % 2:
            self._inside = not self._inside
        if text is None:
            return None
        seconds = seconds_in(text, self._unit)
        if seconds is None:
            raise DataError(f"{text!r} is no time")
        if self._begin is None:
            self._begin = seconds
        return float((seconds - self._begin) / self._speed)


def _first_line(path: str) -> bytes:
    """The first line that is not empty."""
    try:
        with open(path, "rb") as file:
            return next(filter(bytes.strip, file), b"")
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}{similar_file(Path(path))}") from None
