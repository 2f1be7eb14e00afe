"""MonPoly's log format: time-points and relations from text, a chunk at a time.

A log is a sequence of time-points, ``@time-stamp name (value, ...)(value, ...) name (value, ...) ...``, each begun by
an ``@`` and ended by the next one, by ``;`` or by the end of the file. Values are bare or in double quotes, comments
run from ``#`` to the end of the line, blanks and line breaks stand anywhere between tokens. A name without a tuple
stands for the empty tuple. Time-stamps are integers and never decrease.

Memory holds one chunk, whatever the size of the file; a time-point that is longer than a chunk makes it longer.
"""

from __future__ import annotations

import bz2
import gzip
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from hamlet.arrays import np, npt, pa
from hamlet.errors import DataError, near_miss, one_of, similar_file
from hamlet.input.buffers import from_numpy
from hamlet.input.file_form import Dropped
from hamlet.policies.logs._tokens import LogMistake, LogScanner

Predicate = tuple[str, int]  # a name and a number of fields

_CHUNK = 1 << 18  # bytes read at once
LARGEST = (1 << 31) - 1  # bytes of a time-point; offsets into texts have 32 bits
_LINE = b"\n"
_MARK = b"\xef\xbb\xbf"  # what UTF-8 files may begin with
KINDS = {"int": 0, "float": 1, "string": 2, "bool": 3}
_COUNT_THEM = "ignore_unknown (--ignore-unknown) counts such tuples and leaves them out"
_OF_TIMES = ("back", "time", "huge time")  # mistakes of the beginning of a time-point
_NOUNS = {"int": "an integer", "float": "a number", "bool": "true or false"}


@dataclass(frozen=True, slots=True)
class LogChunk:
    """Some time-points of a log, complete ones.

    Attributes
    ----------
    first : int
        The number of the first time-point in the log, from 0.
    times : int64 array of shape (points,)
        Their time-stamps, never decreasing.
    relations : mapping of (str, int) to (int64 array of shape (rows,), tuple of pyarrow.Array)
        For each predicate that has tuples, by name and arity: the time-point of each tuple, counted from the first of
        the chunk, ascending; and its fields by place (int64, float64, string or bool; integers of which one has more
        than 64 bits are strings of digits, or decimals). Numbers may be numpy's arrays (`LogFile`).
    offset : int
        Bytes of the file up to the end of the chunk.
    """

    first: int
    times: npt.NDArray[np.int64]
    relations: Mapping[Predicate, tuple[npt.NDArray[np.int64], tuple[pa.Array, ...]]]
    offset: int


class LogFile:
    """A log in MonPoly's format.

    Parameters
    ----------
    path : path
        ``.gz`` and ``.bz2`` are unpacked.
    predicates : mapping of (str, int) to sequence of str
        The signature: for each name and arity the types of the fields, ``int``, ``float``, ``string`` or ``bool``.
    wanted : container of (str, int), optional
        The predicates whose tuples are kept; by default all. Others are checked all the same.
    ignore_unknown : bool
        Whether tuples of names that the signature lacks are counted and left out; else they are mistakes.
    drops : bool
        Whether time-points with a mistake are left out as a whole, in place of an error: from the line that begins with
        their ``@`` up to the next such line.
    arrow : bool
        Whether numbers are Arrow's arrays; else they are numpy's, for which Arrow need not be loaded.
    chunk_bytes : int
        Bytes that are read at once.

    Attributes
    ----------
    name : str
    unknown : int
        Tuples left out so far.
    commands : int
        Commands to MonPoly, ``> ... <``, passed over so far.
    dropped : Dropped
        Time-points left out so far.

    Raises
    ------
    DataError
        If there is no such file.
    """

    def __init__(
        self,
        path: str | Path,
        predicates: Mapping[Predicate, Sequence[str]],
        *,
        wanted: Any = None,
        ignore_unknown: bool = False,
        drops: bool = False,
        arrow: bool = True,
        chunk_bytes: int = _CHUNK,
    ) -> None:
        self._set_up(str(path), predicates, wanted, ignore_unknown, drops)
        self._arrow = arrow
        self._path = Path(path)
        self._chunk = chunk_bytes
        self._rest: memoryview[int] = memoryview(b"")
        self._grown = False
        if not self._path.exists():
            raise DataError(f"no such file: {path}{similar_file(self._path)}")
        if not self._path.is_file():
            raise DataError(f"{path} is not a file; a log is one file")

    def _set_up(
        self, name: str, predicates: Mapping[Predicate, Sequence[str]], wanted: Any, ignore_unknown: bool, drops: bool
    ) -> None:
        self.name = name
        self.unknown = self.commands = 0
        self.dropped = Dropped()
        self._drops = drops
        self._arrow = True
        self._predicates = dict(predicates)
        self._wanted = self._predicates if wanted is None else wanted
        self._ignore_unknown = ignore_unknown
        self._before = 0  # characters of the line in which the rest begins

    def chunks(self) -> Iterator[LogChunk]:
        """The time-points in the order of the file.

        Raises
        ------
        DataError
            At the first mistake, with file, line and column.
        """
        keys = list(self._predicates)
        scanner = LogScanner(
            [(key[0].encode(), [KINDS[kind] for kind in self._predicates[key]], key in self._wanted) for key in keys],
            self._ignore_unknown,
        )
        first, lines, offset = 0, 0, 0
        self._before = 0
        try:
            with _opened(self._path) as file:
                for block, final in self._blocks(file):
                    if offset == 0 and block.startswith(_MARK):  # of a file that some editor has saved
                        block, offset = block[len(_MARK) :], len(_MARK)
                    while True:
                        try:
                            taken = scanned(scanner, block, final)
                            break
                        except LogMistake as mistake:
                            if not self._drops:
                                raise self._error(mistake, block, lines) from None
                            block = self._without(mistake, block, lines)
                            scanner.widen()  # which forgets what it has read of the block
                    self._before = column_behind(block, taken, self._before)
                    self._rest = memoryview(block)[taken:]
                    self._grown = taken == 0
                    self.unknown, self.commands = scanner.unknown, scanner.commands
                    lines += block.count(b"\n", 0, taken)
                    offset += taken
                    if scanner.points:
                        times, relations = scanner.take()
                        yield LogChunk(first, times, self._arrays(keys, relations), offset)
                        first += len(times)
        except OSError as error:
            raise DataError(f"cannot read {self.name}: {error.strerror or error}") from error
        except EOFError as error:
            raise DataError(f"{self.name}: the compressed file breaks off") from error

    def _without(self, mistake: LogMistake, block: bytes, lines: int) -> bytes:
        """A block with blanks in place of the time-point that has a mistake; lines keep their numbers."""
        kind, offset, detail = mistake.args
        start, end = self.extent(mistake, block)
        message = self._words(kind, detail.decode(errors="replace"))[0]
        self.dropped.add(f"line {lines + block.count(_LINE, 0, offset) + 1}: {message}")
        blank = b"\n".join(b" " * len(each) for each in block[start:end].split(b"\n"))
        return block[:start] + blank + block[end:]

    @staticmethod
    def extent(mistake: LogMistake, block: bytes) -> tuple[int, int]:
        """Where the time-point that has a mistake begins in a block, and where it ends."""
        kind, offset, _ = mistake.args
        # What breaks off is told at the sign that should not be there, which may begin the next time-point.
        at = offset if kind in _OF_TIMES or offset == 0 else offset - 1
        start = block.rfind(b"\n@", 0, at + 1) + 1
        end = block.find(b"\n@", at)
        return start, len(block) if end < 0 else end

    def _blocks(self, file: BinaryIO) -> Iterator[tuple[bytes, bool]]:
        """What was left of the last block with what follows in the file, and whether it is the end."""
        self._rest = memoryview(b"")
        self._grown = False
        size = self._chunk
        while True:
            if self._grown:
                size *= 2  # a time-point that is longer than all that was read
            if len(self._rest) + size > LARGEST:
                raise DataError(f"{self.name}: a time-point is longer than {LARGEST:,} bytes")
            more = file.read(size)
            block = bytes(self._rest) + more if self._rest else more
            yield block, not more
            if not more:
                return

    def _arrays(self, keys: Sequence[Predicate], relations: list[Any]) -> dict[Predicate, Any]:
        """The scanner's columns as those of a chunk."""
        found: dict[Predicate, Any] = {}
        for place, points, columns in relations:
            key = keys[place]
            arrays: list[Any] = []
            for kind, column in zip(self._predicates[key], columns, strict=True):
                if not isinstance(column, tuple):
                    arrays.append(from_numpy(column) if self._arrow else column)
                    continue
                offsets, text = column
                array = pa.Array.from_buffers(
                    pa.string(), len(points), [None, pa.py_buffer(offsets), pa.py_buffer(text)]
                )
                if not text.isascii():
                    self._check_text(array, key)
                arrays.append(array if kind == "string" else _integers(array))
            found[key] = (points, tuple(arrays))
        return found

    def _check_text(self, array: pa.Array, key: Predicate) -> None:
        try:
            array.validate(full=True)
        except pa.ArrowInvalid as error:
            raise DataError(f"{self.name}: a value of {key[0]} is not UTF-8 text; save the file as UTF-8") from error

    def _error(self, mistake: LogMistake, block: bytes, lines: int) -> DataError:
        """What is wrong, with the place, the line and a caret."""
        kind, offset, detail = mistake.args
        line = lines + block.count(b"\n", 0, offset) + 1
        begin = block.rfind(b"\n", 0, offset) + 1
        end = block.find(b"\n", offset)
        before = block[begin:offset].decode(errors="replace")
        text = block[begin : end if end >= 0 else len(block)].decode(errors="replace").rstrip("\r")
        message, hint = self._words(kind, detail.decode(errors="replace"))
        width = len(detail.decode(errors="replace")) if kind not in ("arity", "back") else 1
        shown, caret = _excerpt(text, len(before), width)
        column = len(before) + 1 + (self._before if begin == 0 else 0)
        lines_said = [f"{self.name}:{line}:{column}: {message}", f"    {shown}", f"    {caret}"]
        return DataError("\n".join(lines_said + ([f"hint: {hint}"] if hint else [])))

    def _words(self, kind: str, detail: str) -> tuple[str, str | None]:
        """A mistake in words, and what helps."""
        if kind in _NOUNS:
            return f"expected {_NOUNS[kind]} and found {_shown(detail)}", "the types stand in the signature"
        if kind == "unknown":
            near = near_miss(detail, [name for name, _ in self._predicates])
            hint = f"did you mean {near}?" if near else _COUNT_THEM
            return f"the signature has no predicate {_shown(detail)}", hint
        if kind == "arity":
            detail, name = detail.split(" ", 1)
            fields = sorted(arity for known, arity in self._predicates if known == name)
            wanted = one_of([str(each) for each in fields])
            many = f"{detail} field{'s' * (detail != '1')}"
            return f"a tuple of {many} for {name}, which has {wanted}", None
        return {
            "huge time": (f"the time-stamp {_shown(detail)} is beyond 2^61", None),
            "time": (f"expected a time-stamp, an integer, and found {_shown(detail)}", "@10 begins a time-point"),
            "back": (f"the time goes back: the time-point before is at {detail}", "sort the time-points by time"),
            "name": (f"expected a predicate, '@' or ';' and found {_shown(detail)}", None),
            "time-point": (f"expected '@' and found {_shown(detail)}", "a time-point begins with @ and its time"),
            "letter": (f"expected a predicate, '@' or ';' and found {_shown(detail)}", None),
            "field": (f"expected a value or ')' and found {_shown(detail)}", "values are bare, or in double quotes"),
            "comma": (
                f"expected ',' or ')' and found {_shown(detail)}",
                "a value with blanks or other signs stands in double quotes",
            ),
            "open": ("the tuple is not closed", None),
            "command": ("the command that begins with '>' is not closed", "commands of a log end with '<'"),
            "quote": ("the quoted value is not closed", None),
            "long": ("a tuple has more than 256 fields", None),
        }[kind]


def column_behind(block: bytes, taken: int, before: int) -> int:
    """The characters of the last line in the first bytes of a block whose own first line has so many before it."""
    begin = block.rfind(b"\n", 0, taken) + 1
    return len(block[begin:taken].decode(errors="replace")) + (before if begin == 0 else 0)


def scanned(scanner: LogScanner, block: bytes, final: bool) -> int:
    """The bytes taken; integers of more than 64 bits make the columns of all integers texts from then on."""
    try:
        return scanner.scan(block, final)
    except LogMistake as mistake:
        if mistake.args[0] != "huge":
            raise
    scanner.widen()
    return scanner.scan(block, final)


def _integers(digits: pa.Array) -> pa.Array:
    """Digits as int64 where all of them fit; else as they are."""
    try:
        return digits.cast(pa.int64())
    except pa.ArrowInvalid:
        return digits


def _shown(detail: str) -> str:
    text = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in detail)
    return f"'{text}'" if len(text) <= 40 else f"'{text[:37]}...'"


def _excerpt(line: str, column: int, width: int, widest: int = 120) -> tuple[str, str]:
    """A part of a line around a column, and a caret below it."""
    line = "".join(letter if letter.isprintable() else " " for letter in line)
    left = max(0, column - widest // 2)
    before = "..." * (left > 0)
    shown = before + line[left : left + widest] + "..." * (left + widest < len(line))
    place = len(before) + column - left
    return shown, " " * place + "^" * max(1, min(width, len(shown) - place))


def _opened(path: Path) -> BinaryIO:
    if path.suffix.lower() == ".gz":
        return cast(BinaryIO, gzip.open(path, "rb"))
    if path.suffix.lower() == ".bz2":
        return cast(BinaryIO, bz2.open(path, "rb"))
    return path.open("rb", buffering=0)
