"""Files that are read to their ends, merged by the times of their lines; those of one time come file by file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush

from hamlet.errors import DataError
from hamlet.input.live.line_times import Seconds, TimeText, seconds_in, sniffed, time_text
from hamlet.input.live.lines import LineForm
from hamlet.input.live.sources import READ, Ended, FileSource, Place, Read, Source, Stream

_BEFORE_ALL = -(1 << 200)


class MergedFile(Source):
    """A file whose lines are given when no other of its group has earlier ones left.

    Parameters
    ----------
    inner : FileSource
    group : list of MergedFile
        Those that are merged, in the order in which the user names them; this one joins it.
    line_form : LineForm
    """

    repeatable = True
    carries = True
    look = 0.0

    def __init__(self, inner: FileSource, group: list[MergedFile], line_form: LineForm) -> None:
        self.name, self.form = inner.name, inner.form
        self._inner, self._group, self._rank, self._line_form = inner, group, len(group), line_form
        group.append(self)
        self._stream: Stream | None = None
        self._data = b""
        self._at = 0  # up to where it was given
        self._short = False  # whether no line of the rest is whole
        self._whole = False  # whether the file was read to its end
        self._times: TimeText | None = None
        self._by_lines = True
        self._quoted = False
        self._last: tuple[str, Seconds] | None = None  # the time of the last line that has one, and its text

    def read(self, ready: set[int]) -> Iterator[Read]:
        """Lines of all files of the group in the order of their times, about as many as are read at once."""
        heads: list[tuple[tuple[Seconds, int], MergedFile]] = []
        for each in self._group:
            if not each.done:
                yield from each._next(ready, heads)
        given = 0
        while heads and given < READ:
            _, first = heappop(heads)
            data = first._before(heads[0][0] if heads else None)
            assert first._stream is not None
            if data:
                given += len(data)
                yield first._stream, data
            yield from first._next(ready, heads)

    def _next(self, ready: set[int], heads: list[tuple[tuple[Seconds, int], MergedFile]]) -> Iterator[Read]:
        """Put the file among those that have lines left; where it has none, it ends."""
        self._fill(ready)
        if self._at < len(self._data) or not self._whole:
            heappush(heads, (self._head(), self))
        else:
            self.done = True
            assert self._stream is not None
            yield self._stream, Ended(True)

    def _before(self, bound: tuple[Seconds, int] | None) -> bytes:
        """The lines that come before a time, which are given by that."""
        at = self._at
        self._at = len(self._data) if bound is None or self._times is None else self._end_before(bound)
        return self._data[at : self._at]

    def _fill(self, ready: set[int]) -> None:
        """Read until there is a whole line, or the file has ended."""
        while not self._whole and (self._short or self._data.find(b"\n", self._at) < 0):
            for stream, data in self._inner.read(ready):
                self._stream, stream.owner = stream, self
                if not isinstance(data, Ended):
                    self._data, self._at, self._short = self._data[self._at :] + data, 0, False
            self._whole = self._inner.done
        if self._times is None and self._data and self._by_lines:
            self._open()

    def _open(self) -> None:
        """Find out how to read the times of lines."""
        assert self._stream is not None
        told = self._line_form
        header = self._stream.header
        first = header if header is not None else next(filter(bytes.strip, self._data.splitlines()), b"")
        if not first:
            return  # there are empty lines only so far
        form = told.form or self.form or sniffed(self._data) or "csv"
        self._quoted = form == "csv"
        try:
            self._times = time_text(form, first.rstrip(b"\r"), told.columns, self.name, told.names)
        except DataError:  # whoever parses the lines says what is wrong
            self._times = None
        self._by_lines = self._times is not None

    def _head(self) -> tuple[Seconds, int]:
        """The time of the first line that is left, and the place of the file."""
        stop = self._data.find(b"\n", self._at)
        found = self._time_of(self._data[self._at : stop if stop >= 0 else len(self._data)])
        if found is None:
            found = _BEFORE_ALL if self._last is None else self._last[1]
        return found, self._rank

    def _end_before(self, bound: tuple[Seconds, int]) -> int:
        """The end of the lines that come before a time."""
        end, data = self._at, self._data
        while end < len(data):
            stop = data.find(b"\n", end) + 1
            while self._quoted and stop and data.count(b'"', end, stop) % 2:  # a line break in a value
                stop = data.find(b"\n", stop) + 1
            if not stop:
                if not self._whole:
                    self._short = True
                    break
                stop = len(data)
            found = self._time_of(data[end:stop])
            if found is not None and (found, self._rank) > bound:
                break
            end = stop
        return end

    def _time_of(self, line: bytes) -> Seconds | None:
        """The time of a line; None where it has none that is later than those before it."""
        if self._times is None or not line.strip():
            return None
        try:
            text = self._times(line.removesuffix(b"\n").removesuffix(b"\r"))
        except DataError:
            return None
        if text is None:
            return None
        if self._last is not None and self._last[0] == text:
            return self._last[1]
        found = seconds_in(text, self._line_form.time_unit)
        if found is None:
            return None
        if self._last is not None:
            found = max(found, self._last[1])
        self._last = (text, found)
        return found

    def place(self, stream: Stream, offset: int, line: int, header: bytes | None) -> Place:
        """The file, and how much of it was taken."""
        return self._inner.place(stream, offset, line, header)

    def resume(self, place: Place) -> Place:
        """Go on in the file."""
        return self._inner.resume(place)

    def close(self) -> None:
        """Close the file."""
        self._inner.close()


def merged(sources: Sequence[Source], line_form: LineForm) -> list[Source]:
    """The sources, with the files that are read to their ends merged by time; streams stay as they arrive."""
    files = [each for each in sources if isinstance(each, FileSource) and not each.follow and each.form != "arrow"]
    if len(files) < 2 or line_form.form == "arrow":
        return list(sources)
    group: list[MergedFile] = []
    return [MergedFile(each, group, line_form) if each in files else each for each in sources]
