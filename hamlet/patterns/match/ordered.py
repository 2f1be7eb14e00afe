"""The rows of a clause's table in the host, partition by partition in order, each with its number."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hamlet.patterns.match.host import Host, HostError, quoted
from hamlet.patterns.match.sorting import borders_of, codes_of, ends_within, moved, order_of, whole_of

_ROW = '"__hamlet_row"'
INPUT = "__hamlet_input"  # a source's own column of this name is the order of its rows
_INPUT = f'"{INPUT}"'
# Types whose values come through Arrow and back as they are.
_PLAIN = {"BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"}
_PLAIN |= {"FLOAT", "DOUBLE", "VARCHAR", "DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE"}
_WHOLE = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "HUGEINT"}
SPAN = "interval"
TO_COME = 2  # as `automaton._machine` has it
_TIMES = {"DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE"}
_MOST_BYTES = 1 << 29  # of a table that is sorted here; a larger one is the host's, which bounds its memory
_FARTHEST = 16  # rows that a column is moved by here


class UnknownError(Exception):
    """The kernel's expression machine has no such values: the host has to answer."""


class Expressions(Protocol):
    """What a host of expressions answers about the rows of a clause's table.

    Attributes
    ----------
    dialect : str
    times : mapping of (operation, kind, kind) to kind
        The sums and differences of times that are those of whole numbers.
    """

    dialect: ClassVar[str]
    times: ClassVar[Mapping[tuple[str, str, str], str]]

    def label_text(self, name: str) -> str:
        """The host's expression for a variable as CLASSIFIER gives it."""

    def numbers(self, text: str) -> tuple[str, npt.NDArray[Any], npt.NDArray[np.uint8]]:
        """The kernel's kind of an expression's values, these as int64 or float64, and where they are NULL."""

    def without_row(self, text: str) -> Any:
        """The number that an expression gives where all columns are NULL."""

    def shifted(self, value: str, step: int) -> str:
        """The host's expression for a value so many rows further on, NULL beyond the ends of the partition."""


def of_times(stamp: str) -> dict[tuple[str, str, str], str]:
    """What comes of sums and differences of times of a kind and of intervals."""
    found = {("Sub", stamp, stamp): SPAN, ("Sub", stamp, SPAN): stamp, ("Add", stamp, SPAN): stamp}
    found |= {("Add", SPAN, stamp): stamp, ("Add", SPAN, SPAN): SPAN, ("Sub", SPAN, SPAN): SPAN}
    return found


@dataclass
class Ordered:
    """A table in order.

    Attributes
    ----------
    host : Host
    table : str
        Its name in the host; beside the columns it has those of expressions.
    columns : list of str
        Those of the source.
    keys : list of str
        The columns of the partition's expressions, as the host writes them.
    time : str or None
        The column of the first expression of ORDER BY.
    row : str
        The number of a row, as the host writes it.
    borders : int64 array of shape (partitions + 1,)
    given : pyarrow.Table or None
        The rows with their numbers where they were put in order here: the host's table is a view of them.
    masks : dict of str to uint8 array
        The rows that fulfil conditions, by their text.
    is_open : bool
        Whether rows may still come behind those of each partition.
    """

    host: Host
    table: str
    columns: list[str]
    keys: list[str]
    time: str | None
    row: str
    borders: npt.NDArray[np.int64]
    given: pa.Table | None = field(default=None, repr=False)
    masks: dict[str, npt.NDArray[np.uint8]] = field(default_factory=dict, repr=False)
    is_open: bool = False
    dialect: ClassVar[str] = "duckdb"
    times: ClassVar[Mapping[tuple[str, str, str], str]] = of_times("time:TIMESTAMP")
    _known: dict[str, Any] = field(default_factory=dict, repr=False)
    _codes: dict[str, int] = field(default_factory=dict, repr=False)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return int(self.borders[-1])

    def gathered(self, value: str, rows: npt.NDArray[np.int64]) -> pa.ChunkedArray | None:
        """The values of an expression at rows, NULL at -1; None where Arrow would change its type."""
        column = self._column(value)
        if column is not None:
            assert self.given is not None
            self._known[value] = whole_of(self.given, column)
        elif value not in self._known:
            kind = self.host.rows(f"DESCRIBE SELECT ({value}) AS v FROM {self.table}")[0][1]
            plain = (kind in _PLAIN or kind.startswith("DECIMAL(")) and not self.host.collates  # Arrow has none
            text = f"SELECT ({value}) AS v FROM {self.table}"
            self._known[value] = self.host.arrow(text).column("v").combine_chunks() if plain else None
        found = self._known[value]
        return None if found is None else found.take(pa.array(rows, mask=rows < 0))

    def key_values(self, row: int) -> tuple[Any, ...]:
        """The values of PARTITION BY at a row."""
        text = f"SELECT {', '.join(self.keys)} FROM {self.table} WHERE {self.row} = {row}"
        found: tuple[Any, ...] = self.host.rows(text)[0]
        return found

    def label_text(self, name: str) -> str:
        """The host's expression for a variable as CLASSIFIER gives it."""
        return "CAST('" + name.replace("'", "''") + "' AS VARCHAR)"

    def numbers(self, text: str) -> tuple[str, npt.NDArray[Any], npt.NDArray[np.uint8]]:
        """The kernel's kind of an expression's values, these as int64 or float64, and where they are NULL.

        Raises
        ------
        UnknownError
            If they are of a type that the kernel lacks.
        """
        kind, cast = _kind_of(self.host.rows(f"DESCRIBE SELECT ({text}) AS v FROM {self.table}")[0][1])
        query = f"SELECT {cast.format('__hamlet_v')} AS v FROM (SELECT *, ({text}) AS __hamlet_v FROM {self.table})"
        values = self.host.arrow(query).column("v").combine_chunks()
        if kind == "code":
            if self.host.collates:
                raise UnknownError
            return kind, *codes_of_texts(values, self._codes)
        nulls = np.ascontiguousarray(values.is_null().to_numpy(zero_copy_only=False), np.uint8)
        filled = values.fill_null(0.0 if kind == "real" else 0).to_numpy(zero_copy_only=False)
        return kind, np.ascontiguousarray(filled, np.float64 if kind == "real" else np.int64), nulls

    def mark_to_come(self, nulls: npt.NDArray[np.uint8], ahead: int) -> None:
        """Mark the rows whose values read a row so far ahead that it has not come."""
        if self.is_open and ahead:
            left = np.repeat(self.borders[1:], np.diff(self.borders)) - np.arange(self.rows)
            nulls[left <= ahead] = TO_COME

    def without_row(self, text: str) -> Any:
        """The number that an expression gives where all columns are NULL."""
        listed = ", ".join(f"NULL AS {quoted(each)}" for each in self.columns)
        typed = f"SELECT * FROM (SELECT * FROM {self.table} LIMIT 0) UNION ALL BY NAME SELECT {listed}"
        cast = _kind_of(self.host.rows(f"DESCRIBE SELECT ({text}) AS v FROM ({typed})")[0][1])[1]
        return self.host.rows(f"SELECT {cast.format(text)} FROM ({typed})")[0][0]

    def shifted(self, value: str, step: int) -> str:
        """The host's expression for a value so many rows further on, NULL beyond the ends of the partition."""
        function = "lead" if step > 0 else "lag"
        if step == 0:
            return f"({value})"
        column = self._column(value)
        if column is not None and abs(step) <= _FARTHEST:
            return self._moved(column, step)
        there = f"{function}(({value}), {abs(step)}) OVER ()"
        if not self.keys:
            return there
        same = (f"{function}({key}, {abs(step)}) OVER () IS NOT DISTINCT FROM {key}" for key in self.keys)
        return f"(CASE WHEN {' AND '.join(same)} THEN {there} END)"

    def _column(self, text: str) -> str | None:
        """The column of the rows that were put in order here which an expression is."""
        if self.given is None:
            return None
        folded = text.strip().lower()
        return next((each for each in self.columns if folded in (each.lower(), quoted(each).lower())), None)

    def _moved(self, column: str, step: int) -> str:
        """The column whose values stand so many rows further on."""
        assert self.given is not None
        name = f"__hamlet_{'next' if step > 0 else 'prev'}_{abs(step)}_{column}"
        if name not in self.given.column_names:
            values = moved(whole_of(self.given, column), step, self.borders)
            self.given = self.given.append_column(name, values)
            self.host.register(self.table, self.given)
        return quoted(name)

    def ends(self, duration: str) -> npt.NDArray[np.int64]:
        """By row, the first row of the partition whose time is more than a duration later; shape (rows,)."""
        if self.host.types(f"(SELECT ({self.time}) AS t FROM {self.table})")["t"] == "DOUBLE":
            (most,) = self.host.rows(f"SELECT CAST(({duration}) AS DOUBLE)")[0]
            found = self.host.arrow(f"SELECT ({self.time}) AS t FROM {self.table} ORDER BY {self.row}").column("t")
            return ends_within(found.fill_null(np.nan).to_numpy(), most, self.borders)
        try:
            return self._ends(str(self.time), duration)
        except HostError as error:
            if "verflow" not in error.message or "INT" not in error.message:
                raise
        return self._ends(f"CAST({self.time} AS HUGEINT)", duration)  # integers near the ends of 64 bits

    def _ends(self, time: str, duration: str) -> npt.NDArray[np.int64]:
        partition = f"PARTITION BY {', '.join(self.keys)} " if self.keys else ""
        text = (
            f"SELECT CASE WHEN {self.time} IS NULL THEN {self.row} "
            f"ELSE 1 + max({self.row}) OVER ({partition}ORDER BY {time} "
            f"RANGE BETWEEN CURRENT ROW AND ({duration}) FOLLOWING) END AS e "
            f"FROM {self.table} ORDER BY {self.row}"
        )
        return np.ascontiguousarray(self.host.arrow(text).column("e").to_numpy(), np.int64)


def _kind_of(host_kind: str) -> tuple[str, str]:
    """The kernel's kind of a type of the host, and how the host makes a number of a value."""
    if host_kind in _WHOLE:
        return "int", "CAST(({}) AS BIGINT)"
    if host_kind == "DOUBLE":
        return "real", "CAST(({}) AS DOUBLE)"
    if host_kind == "BOOLEAN":
        return "bool", "CAST(({}) AS BIGINT)"
    if host_kind == "VARCHAR":
        return "code", "({})"
    if host_kind in _TIMES:
        return f"time:{host_kind}", "epoch_us(({}))"
    match = re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", host_kind)
    if match and int(match[1]) <= 18:
        return f"decimal:{match[2]}", f"CAST(({{}}) * {10 ** int(match[2])} AS BIGINT)"
    raise UnknownError


def codes_of_texts(values: pa.Array, known: dict[str, int]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Codes of texts, equal ones for equal texts, and where they are NULL; `known` has those of other columns."""
    found = values.dictionary_encode()
    codes = [known.setdefault(each, len(known)) for each in found.dictionary.to_pylist()]
    nulls = np.ascontiguousarray(values.is_null().to_numpy(zero_copy_only=False), np.uint8)
    places = found.indices.fill_null(0).to_numpy(zero_copy_only=False)
    return np.array(codes or [0], np.int64)[places], nulls


def order_rows(
    host: Host,
    source: str,
    name: str,
    partition: Sequence[str],
    order: Sequence[tuple[str, bool, bool]],
) -> Ordered:
    """Sort a table by its partitions and its order; ties keep the order of the input.

    Parameters
    ----------
    host : Host
    source : str
        A query.
    name : str
        Of the new table.
    partition : sequence of str
        The host's expressions.
    order : sequence of (str, bool, bool)
        Expressions, whether each descends, and whether NULL comes first.
    """
    kinds = host.types(f"({source})")
    columns = list(kinds)
    known = {form: quoted(each) for each in columns for form in (each.lower(), quoted(each).lower())}
    added: dict[str, str] = {}
    keys = [_named(text, f'"__hamlet_key_{place}"', known, added) for place, text in enumerate(partition)]
    times = [_named(text, f'"__hamlet_order_{place}"', known, added) for place, (text, _, _) in enumerate(order)]
    host.hear(*added.values())
    ordered = _ordered_here(host, source, f"{name}_here", kinds, keys, times, order, added)
    if ordered is not None:
        return ordered
    sorting = [f"{key} NULLS LAST" for key in keys]
    sorting += [
        f"{time} {'DESC' if descending else 'ASC'} NULLS {'FIRST' if nulls_first else 'LAST'}"
        for (_, descending, nulls_first), time in zip(order, times, strict=True)
    ]
    inner = source
    if INPUT in columns:
        columns.remove(INPUT)
    else:
        inner = f"SELECT *, row_number() OVER () AS {_INPUT} FROM ({source})"
    listed = ["*", *(f"({text}) AS {name}" for name, text in added.items())]
    text = f"SELECT {', '.join(listed)} FROM ({inner}) ORDER BY {', '.join([*sorting, _INPUT])}"
    kept = ", ".join(dict.fromkeys([*map(quoted, columns), *keys, *times[:1]]))
    row = "rowid"  # the host's own numbers of the rows of a new table
    if "rowid" in known:
        row, kept = _ROW, f"row_number() OVER () - 1 AS {_ROW}, {kept}"
    host.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT {kept} FROM ({text})")
    rows = host.rows(f"SELECT count(*) FROM {name}")[0][0]
    borders = np.array([0, rows], np.int64)
    if keys and rows:
        new = " OR ".join(f"{key} IS DISTINCT FROM lag({key}) OVER ()" for key in keys)
        marked = f"SELECT {row} AS r, ({new}) AS n FROM {name}"
        firsts = host.arrow(f"SELECT r FROM ({marked}) WHERE n AND r > 0").column("r").to_numpy()
        borders = np.concatenate([[0], np.sort(firsts), [rows]]).astype(np.int64)
    elif not rows:
        borders = np.zeros(1, np.int64)
    return Ordered(host, name, columns, keys, times[0] if times else None, row, borders)


def _ordered_here(
    host: Host,
    source: str,
    name: str,
    kinds: Mapping[str, str],
    keys: Sequence[str],
    times: Sequence[str],
    order: Sequence[tuple[str, bool, bool]],
    added: Mapping[str, str],
) -> Ordered | None:
    """Rows that fit into memory, with types that Arrow keeps, sorted by numbers; None for others."""
    if (
        INPUT in kinds
        or host.collates
        or not all(kind in _PLAIN or kind.startswith("DECIMAL(") for kind in kinds.values())
    ):
        return None
    listed = ["*", *(f"({text}) AS {own}" for own, text in added.items())]
    rows = host.within(f"SELECT {', '.join(listed)} FROM ({source})", _MOST_BYTES)
    if rows is None or len(set(rows.column_names)) < len(rows.column_names):
        return None
    by_name = {quoted(each): whole_of(rows, each) for each in rows.column_names}
    codes = [codes_of(by_name[each]) for each in keys]
    codes += [codes_of(by_name[each], *how) for each, (_, *how) in zip(times, order, strict=True)]
    whole = [each for each in codes if each is not None]
    if len(whole) < len(codes):
        return None
    place = order_of(whole)
    if place is not None:
        rows = rows.take(pa.array(place))
        whole = [each[place] for each in whole[: len(keys)]]
    borders = borders_of(whole[: len(keys)], len(rows))
    rows = rows.append_column(_ROW[1:-1], pa.array(np.arange(len(rows))))
    host.register(name, rows)
    return Ordered(host, name, list(kinds), list(keys), times[0] if times else None, _ROW, borders, rows)


def _named(text: str, name: str, known: Mapping[str, str], added: dict[str, str]) -> str:
    """The column that an expression is, a new one of a name where it is none."""
    column = known.get(text.strip().lower())
    if column is None:
        added[name] = text
        column = name
    return column


def masks_of(ordered: Ordered, conditions: Sequence[str]) -> dict[str, npt.NDArray[np.uint8]]:
    """Which rows fulfil each condition; NULL is false. Each is computed once for a table."""
    missing = [each for each in dict.fromkeys(conditions) if each not in ordered.masks]
    if missing:
        listed = ", ".join(f"coalesce(({each}), false) AS c{place}" for place, each in enumerate(missing))
        found = ordered.host.arrow(f"SELECT {listed} FROM {ordered.table}")
        if len(found) != ordered.rows:
            raise not_of_each_row()
        for place, each in enumerate(missing):
            column = found.column(place)
            if not pa.types.is_boolean(column.type):
                raise not_boolean(str(column.type).upper())
            ordered.masks[each] = np.ascontiguousarray(column.cast(pa.uint8()).to_numpy(), np.uint8)
    return {each: ordered.masks[each] for each in conditions}


def not_boolean(kind: str) -> HostError:
    """What is said of a condition that is a value of another type."""
    return HostError(f"a condition is true, false or NULL, and this is {kind}", None, "compare it, as in x <> 0")


def not_of_each_row() -> HostError:
    """What is said of a condition over all rows (an aggregate in a macro), or of several values for a row (UNNEST)."""
    hint = "write an aggregate itself, not a macro around it, and compute UNNEST in the table before"
    return HostError("a condition has one value for each row, and this has not", None, hint)


def check_condition(host: Host, query: str) -> HostError | None:
    """What is wrong with the condition that is the only column of a query, None for nothing."""
    try:
        kind = str(host.rows(f"DESCRIBE {query}")[0][1])
        host.execute(f"{query} LIMIT 0")
    except HostError as error:
        return error
    return None if kind in ("BOOLEAN", '"NULL"', "NULL") else not_boolean(kind)
