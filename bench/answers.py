"""Is the answer right? Comparisons of result rows, digests of them, and small slices for the brute-force oracle."""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

import hamlet
from bench.baselines import strategy
from bench.baselines.question import Question
from hamlet import oracle
from hamlet.engine.options import SharingPolicy
from hamlet.frontend.units import UNITS_PER_SECOND
from hamlet.language.query import Aggregate, Attribute, Taken, WorkloadText
from hamlet.output.digits import integer_of

Row = Mapping[str, Any]
EDGES = ("window_start", "window_end")
DRAWS = 32  # runs to choose a slice from
_TOLERANCE = 1e-9  # what AVG and SUM over doubles may be off by
_WIDE = Context(prec=30, Emax=MAX_EMAX, Emin=MIN_EMIN)


class WrongAnswer(Exception):
    """Two executions that must agree do not."""


def keys_of(workload: WorkloadText) -> dict[str, list[str]]:
    """For each query the result columns that, with the window, name a row: its group values."""
    return {
        query.name: [item.column for item in query.items if isinstance(item.value, Attribute | Taken)]
        for query in workload.queries
    }


def aggregates_of(workload: WorkloadText, function: str, *, log2: bool = False) -> dict[str, list[str]]:
    """For each query the result columns that hold an aggregate of this name (``COUNT``, ``SUM``, ...), or its LOG2."""
    return {
        query.name: [
            item.column
            for item in query.items
            if isinstance(item.value, Aggregate) and item.value.function.upper() == function and item.log2 == log2
        ]
        for query in workload.queries
    }


def largest_count_bits(workload: WorkloadText, rows: Iterable[Row]) -> int:
    """Bits of the largest COUNT of all rows, whether it is there itself or as its LOG2; 0 where no query counts."""
    counts, logarithms = aggregates_of(workload, "COUNT"), aggregates_of(workload, "COUNT", log2=True)
    largest = 0
    for row in rows:
        for column in counts[row["query"]]:
            largest = max(largest, _bits(row[column]))
        for column in logarithms[row["query"]]:
            largest = max(largest, 0 if row[column] is None else int(row[column]) + 1)
    return largest


def _bits(count: int | float | Decimal) -> int:
    """Bits of a count, exact or not."""
    if isinstance(count, int):
        return count.bit_length()
    value = Decimal(count)
    if not value or not value.is_finite():
        return 0
    return int(_WIDE.divide(value.ln(_WIDE), Decimal(2).ln(_WIDE))) + 1


def sizes(workload: WorkloadText, events: int, rows: Sequence[Row]) -> dict[str, Any]:
    """The facts that every answer in rows begins with."""
    return {
        "events": events,
        "queries": len(workload.queries),
        "rows": len(rows),
        "largest_count_bits": largest_count_bits(workload, rows),
    }


def largest_bits(tables: Mapping[str, pa.Table]) -> int:
    """Bits of the largest number of all columns called count; counts as text are read, infinite ones left out."""
    largest = 0
    for table in tables.values():
        column = table["count"] if "count" in table.column_names else None
        if column is None or not len(column):
            continue
        if pa.types.is_string(column.type):
            longest = pc.max(pc.utf8_length(column)).as_py()
            digits = column.filter(pc.equal(pc.utf8_length(column), longest)).to_pylist()
            largest = max(largest, *(integer_of(text).bit_length() for text in digits))
        else:
            finite = column.filter(pc.is_finite(column))
            largest = max(largest, int(pc.max(finite).as_py() or 0).bit_length())
    return largest


def in_floats(workload: WorkloadText, rows: Iterable[Row]) -> list[Row]:
    """Rows whose counts and sums are decimals where they were integers, to be compared with floating-point ones."""
    counts, sums, averages = (aggregates_of(workload, name) for name in ("COUNT", "SUM", "AVG"))
    inexact = {query: {*counts[query], *sums[query], *averages[query]} for query in counts}
    return [
        {
            name: Decimal(value) if type(value) is int and name in inexact[row["query"]] else value
            for name, value in row.items()
        }
        for row in rows
    ]


def _encoded(value: Any) -> bytes:
    # Hexadecimal, since Python refuses to print integers of many thousand digits in decimal.
    return f"{value:#x}".encode() if isinstance(value, int) else f"{type(value).__name__}:{value}".encode()


def digest(rows: Iterable[Row] | Mapping[str, pa.Table]) -> str:
    """A checksum of rows that does not depend on their order. Floats, which may differ in the last bit, stay out.

    Rows and tables of the same values have different checksums.
    """
    if isinstance(rows, Mapping):
        return _digest_of_tables(rows)
    total = 0
    for row in rows:
        hashed = hashlib.blake2b(digest_size=16)
        for name, value in row.items():
            if not isinstance(value, float | Decimal):
                hashed.update(name.encode() + b"=" + _encoded(value) + b"\n")
        total += int.from_bytes(hashed.digest(), "big")
    return f"{total % (1 << 128):032x}"


def _digest_of_tables(tables: Mapping[str, pa.Table]) -> str:
    """The same for tables by query, a column at a time, since there may be millions of rows."""
    with np.errstate(over="ignore"):
        total = np.uint64(0)
        for query, table in tables.items():
            mixed = np.full(len(table), _seed(query), np.uint64)
            for name in table.column_names:
                column = table[name].combine_chunks()
                if not pa.types.is_floating(column.type):
                    mixed = _scrambled(mixed ^ (_column_bits(column) * _seed(name)))
            total += mixed.sum(dtype=np.uint64)
    return f"{int(total):016x}"


def _seed(name: str) -> np.uint64:
    """An odd number for a name."""
    return np.uint64(int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big") | 1)


def _scrambled(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Every bit depends on every bit (the finisher of splitmix64)."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        numbers = (numbers ^ (numbers >> np.uint64(shift))) * np.uint64(factor)
    return numbers ^ (numbers >> np.uint64(31))


def _column_bits(column: pa.Array) -> npt.NDArray[np.uint64]:
    """64 bits of each value; of what is no integer those of its hash."""
    missing = column.is_null().to_numpy(zero_copy_only=False)
    if pa.types.is_integer(column.type):
        bits = pc.fill_null(column, 0).cast(pa.int64()).to_numpy(zero_copy_only=False).view(np.uint64)
    else:
        encoded = column if pa.types.is_dictionary(column.type) else pc.dictionary_encode(column)
        hashes = np.array([*(_seed(str(value)) for value in encoded.dictionary.to_pylist()), 0], np.uint64)
        bits = hashes[pc.fill_null(encoded.indices, len(hashes) - 1).to_numpy(zero_copy_only=False)]
    return np.where(missing, np.uint64(0x9E3779B97F4A7C15), bits)


def _agree(first: Any, second: Any) -> bool:
    if type(first) is float and type(second) is float:  # the same bound, in a twentieth of the time
        return math.isclose(first, second, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
    if isinstance(first, float | Decimal) and isinstance(second, float | Decimal):
        one, two = Decimal(first), Decimal(second)  # a Decimal may lie beyond the doubles
        if one.is_finite() and two.is_finite():
            largest = max(one.copy_abs(), two.copy_abs(), Decimal(1))
            return _WIDE.subtract(one, two).copy_abs() <= _WIDE.multiply(largest, Decimal(_TOLERANCE))
        return first == second
    return type(first) is type(second) and bool(first == second)


def compare(workload: WorkloadText, first: Sequence[Row], second: Sequence[Row], names: tuple[str, str]) -> None:
    """Raise WrongAnswer with the first difference; the order of rows does not matter.

    Parameters
    ----------
    workload : WorkloadText
        Tells which columns name a row.
    first, second : sequence of rows
        As `Results.rows()` gives them.
    names : tuple of str
        What to call the two in the message.
    """
    keys = keys_of(workload)

    def by_key(rows: Sequence[Row]) -> dict[tuple[Any, ...], Row]:
        return {(r["query"], r["window_start"], *(r[column] for column in keys[r["query"]])): r for r in rows}

    left, right = by_key(first), by_key(second)
    for (name, have), (other, lack) in (((names[0], left), (names[1], right)), ((names[1], right), (names[0], left))):
        for key in have:
            if key not in lack:
                raise WrongAnswer(f"{name} has a row for {key}, {other} has none")
    if len(first) != len(left) or len(second) != len(right):
        raise WrongAnswer(f"several rows for one key ({names[0]}: {len(first)} rows, {len(left)} keys)")
    for key, row in left.items():
        for column, value in row.items():
            if not _agree(value, right[key][column]):
                raise WrongAnswer(
                    f"{column} of {key}: {names[0]} has {_short(value)}, {names[1]} has {_short(right[key][column])}"
                )


def _short(value: Any) -> str:
    if isinstance(value, int) and value.bit_length() > 200:
        return f"an integer of {value.bit_length()} bits, modulo 2^64 {value % (1 << 64)}"
    return repr(value)


def small_slices(events: pa.Table, key: str, *, slices: int, length: int, seed: int = 1) -> Iterator[pa.Table]:
    """Short runs of a stream that the oracle can enumerate: in turn of one key only and of all events.

    Of several runs drawn at random the one with the most event types is taken, since most streams mostly repeat one.

    Parameters
    ----------
    events : pyarrow.Table
        In time order.
    key : str
        Column by which events belong together.
    slices, length : int
        How many runs, of how many events each.
    seed : int
        The same seed gives the same slices.

    Yields
    ------
    pyarrow.Table
        At most `length` events, in time order.
    """
    source = random.Random(seed)
    names = events[key].unique().drop_null()
    for number in range(slices):
        pool = events
        if number % 2 == 0:
            pool = events.filter(pc.equal(events[key], names[source.randrange(len(names))]))
        starts = [source.randrange(max(1, len(pool) - length)) for _ in range(DRAWS)]
        yield max((pool.slice(start, length) for start in starts), key=lambda run: len(run["type"].unique()))


def check_slices(
    workload: hamlet.Workload,
    events: pa.Table,
    key: str,
    *,
    slices: int,
    length: int,
    policies: Sequence[str] = ("dynamic",),
    **options: Any,
) -> str:
    """Compare runs over small slices of a stream with the brute-force oracle.

    Parameters
    ----------
    workload : Workload
    events, key, slices, length
        As for `small_slices`.
    policies : sequence of str
        Values of `sharing`, each of which is run.
    **options
        Of `hamlet.run`.

    Returns
    -------
    str
        What was checked, in a sentence.

    Raises
    ------
    WrongAnswer
        At the first difference, and where no slice has a row.
    """
    text, checked = workload.analysis.text, 0
    comparable = in_floats if options.get("numbers") == "float" else lambda _, rows: rows
    for piece in small_slices(events, key, slices=slices, length=length):
        expected = oracle.evaluate(
            text,
            piece.to_pylist(),
            type_column=options.get("type_column", "type"),
            order_column=options.get("order_column"),
            ticks_per_second=UNITS_PER_SECOND[options.get("time_unit", "s")],
        )
        for policy in policies:
            rows = hamlet.run(workload, piece, sharing=cast(SharingPolicy, policy), **options).rows()
            compare(text, comparable(text, rows), comparable(text, expected), (f"hamlet.run, {policy}", "the oracle"))
        checked += len(expected)
    if not checked:
        raise WrongAnswer("no slice has a row, so the oracle has checked nothing")
    return f"{checked:,} rows of {slices} slices of {length} events equal those of the brute-force oracle"


def check_greta(
    workload: hamlet.Workload, events: pa.Table, rows: Iterable[Row], where: str, *, time_unit: str = "s"
) -> str:
    """Compare rows with GRETA's, of all queries but those with MIN or MAX, which it does not know.

    Parameters
    ----------
    workload : Workload
    events : pyarrow.Table
        As for `Question`; a few thousand, since GRETA looks at pairs of them.
    rows : iterable of rows
        What the engine has for the same events.
    where : str
        Which events these are, for the sentence.
    time_unit : str
        As for `hamlet.run`.

    Returns
    -------
    str
        What was checked, in a sentence.

    Raises
    ------
    WrongAnswer
        At the first difference.
    """
    lowest, highest = (aggregates_of(workload.analysis.text, name) for name in ("MIN", "MAX"))
    known = workload.select(name for name in workload.names if not lowest[name] and not highest[name])
    text = known.analysis.text
    expected, _ = strategy.run(strategy.GRETA, Question(known, events, time_unit=time_unit))
    ours = in_floats(text, (row for row in rows if row["query"] in known.names))
    compare(text, ours, expected, ("hamlet.run", "GRETA"))
    return f"{len(ours):,} rows of {len(known.names)} queries over {len(events):,} events {where} equal GRETA's"


@dataclass(frozen=True)
class Recurrence:
    """A query simple enough to be counted by four lines of Python over a whole stream.

    Attributes
    ----------
    query : str
        Name of a query ``RETURN key, COUNT(*) PATTERN SEQ(first X, second Y[+]) GROUP-BY key WITHIN width``.
    first, second : str
        Event types.
    repeated : bool
        Whether `second` stands under ``+``.
    width : int
        Ticks of a window.
    """

    query: str
    first: str
    second: str
    repeated: bool
    width: int

    def counts(self, events: pa.Table, key: str) -> dict[tuple[Any, int], int]:
        """The count of each key and window start that has a trend; the events are in a total order."""
        opened: dict[tuple[Any, int], int] = {}
        trends: dict[tuple[Any, int], int] = {}
        wanted = events.filter(pc.is_in(events["type"], pa.array([self.first, self.second])))
        columns = (wanted[name].to_pylist() for name in ("time", "type", key))
        for time, name, value in zip(*columns, strict=True):
            place = (value, time - time % self.width)
            if name == self.first:
                opened[place] = opened.get(place, 0) + 1
            elif place in opened:
                trends[place] = trends.get(place, 0) * (2 if self.repeated else 1) + opened[place]
        return trends

    def check(self, events: pa.Table, key: str, rows: Iterable[Row]) -> int:
        """Compare all rows of the query with the recurrence; returns how many there are."""
        expected = self.counts(events, key)
        found = {(row[key], row["window_start"]): row for row in rows if row["query"] == self.query}
        if expected.keys() != found.keys():
            raise WrongAnswer(f"{self.query} has {len(found):,} rows, the recurrence in Python {len(expected):,}")
        for place, row in found.items():
            count = next(value for name, value in row.items() if name not in ("query", *EDGES, key))
            if count != expected[place]:
                raise WrongAnswer(
                    f"{self.query} at {place}: {_short(count)}, the recurrence has {_short(expected[place])}"
                )
        return len(found)
