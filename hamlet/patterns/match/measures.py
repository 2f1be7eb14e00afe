"""Expressions over matches, computed by the host for all matches at once: measures, and conditions that read labels."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from hamlet.patterns.clause.expressions import LABEL, NUMBER, Aggregation, Navigation, Read, placeholder
from hamlet.patterns.clause.tree import Clause
from hamlet.patterns.match.host import quoted
from hamlet.patterns.match.labelled import Labelled, Numbers, Points, count, target
from hamlet.patterns.match.ordered import Ordered

POINT, MATCH, AT, CURRENT = '"__hamlet_point"', '"__hamlet_match"', '"__hamlet_at"', '"__hamlet_current"'
_VARIABLE, _MATCHED, _FIRST = '"__hamlet_variable"', '"__hamlet_matched"', '"__hamlet_first"'
_ANY_ORDER = {"count", "sum", "min", "max", "avg", "mean", "bool_and", "bool_or", "median", "count_if", "countif"}
_ANY_ORDER |= {"bit_and", "bit_or", "bit_xor", "approx_count_distinct", "count_star"}
_LISTS = {"listagg", "string_agg", "group_concat", "array_agg", "list"}  # in an order that may be written behind them
_CALL = re.compile(r"\s*(\w+)\s*\((.*)\)\s*\Z", re.DOTALL)


@dataclass
class Evaluation:
    """What expressions of one clause are evaluated over.

    Attributes
    ----------
    clause : Clause
    ordered : Ordered
    found : Labelled
    points : Points
    translate : callable
        From the dialect of the text to the host's.
    """

    clause: Clause
    ordered: Ordered
    found: Labelled
    points: Points
    translate: Callable[[str], str]

    def query(self, reads: Mapping[str, Read], prefix: str, carried: Mapping[str, pa.Array] | None = None) -> str:
        """A query whose rows are the points, with `POINT` and a column per expression; NULL at rows of no match.

        Parameters
        ----------
        reads : mapping of str to Read
            By column, as the host writes it.
        prefix : str
            Begins the names of tables that are registered for the query.
        carried : mapping of str to pyarrow.Array, optional
            More columns of the points, by names without quotes.
        """
        self._begin(prefix, carried or {})
        columns = [f"p.{name}" for name in carried or {}]
        for place, (name, read) in enumerate(reads.items()):
            text = read.text
            for reading_place, reading in enumerate(read.readings):
                own = f'"__hamlet_value_{place}_{reading_place}"'
                self._read(reading, own)
                text = text.replace(placeholder(reading_place), own)
            columns.append(f"CASE WHEN {_MATCHED} THEN ({text}) END AS {name}")
        texts = " ".join(read.text for read in reads.values()).lower()
        used = [each for each in self.ordered.columns if each.lower() in texts or quoted(each).lower() in texts]
        if used and not self._gather_current(used):
            listed = ", ".join(quoted(each) for each in self.ordered.columns)
            rows = f'SELECT {self.ordered.row} AS "__hamlet_current_row", {listed} FROM {self.ordered.table}'
            self._joins.append(f'LEFT JOIN ({rows}) c ON c."__hamlet_current_row" = p.{CURRENT}')
        self.joins = bool(self._joins)
        self._register()
        joined = " ".join(self._joins)
        return f"SELECT {', '.join([f'p.{POINT}', *columns])} FROM {prefix}_points p {joined}"

    def values(self, reads: Sequence[Read]) -> list[pa.Array] | None:
        """The values of expressions that are readings of single rows or counts, None where one needs the host."""
        if not all(read.text.strip() == placeholder(0) and _is_single(read.readings[0]) for read in reads):
            return None
        self._begin("", {})
        names = [f"value {place}" for place in range(len(reads))]
        for name, read in zip(names, reads, strict=True):
            self._read(read.readings[0], name)
        return None if self._joins else [self._columns[name] for name in names]

    def _begin(self, prefix: str, carried: Mapping[str, pa.Array]) -> None:
        numbers = {name: place for place, name in enumerate(self.clause.variables)}
        self._members = {
            name: [numbers[each] for each in self.clause.members(name)]
            for name in (*self.clause.variables, *self.clause.subsets)
        }
        self._prefix = prefix
        self._columns: dict[str, pa.Array] = dict(carried)
        self._joins: list[str] = []
        self._rows_known = False

    # The points, as a table of the host.

    def _current(self) -> Numbers:
        """The current row of each point, -1 for none."""
        found, points = self.found, self.points
        match = np.maximum(points.match, 0)
        if not len(found):
            return np.full(len(match), -1, np.int64)
        end = found.first[match + 1] - 1 if points.final else points.position
        last = np.where((points.position >= 0) & (points.match >= 0), end, -1)
        return np.where(last >= 0, found.start[match] + last - found.first[match], -1)

    def _gather_current(self, columns: Sequence[str]) -> bool:
        """Put the values of columns at the current rows beside the points, if all have types for that."""
        current = self._current()
        values = {each: self.ordered.gathered(quoted(each), current) for each in columns}
        if any(each is None for each in values.values()):
            return False
        self._columns |= {quoted(name): each for name, each in values.items()}
        return True

    def _register(self) -> None:
        found, points = self.found, self.points
        there = points.match >= 0
        match = np.maximum(points.match, 0)
        number = found.number[match] if len(found) else np.zeros(len(match), np.int64)
        columns = {
            POINT: pa.array(np.arange(len(match), dtype=np.int64)),
            MATCH: _nullable(points.match),
            AT: pa.array(np.where(points.position >= 0, points.position, -1 - match)),
            CURRENT: _nullable(self._current()),
            NUMBER: pa.array(number, mask=~there),
            _MATCHED: pa.array(there),
            **self._columns,
        }
        self.ordered.host.register(
            f"{self._prefix}_points", pa.table({_bare(key): value for key, value in columns.items()})
        )

    def _labels(self, position: Numbers) -> pa.Array:
        """The names of the variables at positions, NULL at -1."""
        names = pa.array(list(self.clause.variables.values()), pa.string())
        if not len(self.found.variable):
            return pa.nulls(len(position), pa.string())
        codes = pa.array(self.found.variable[np.maximum(position, 0)], mask=position < 0)
        return names.take(codes)

    def _all_rows(self) -> None:
        """Register every row of every match, and one row that is none for each empty match."""
        if self._rows_known:
            return
        self._rows_known = True
        found = self.found
        empty = np.flatnonzero(found.length == 0)
        nothing = np.full(len(empty), -1, np.int64)
        positions = np.arange(found.first[-1], dtype=np.int64)
        match = np.concatenate([found.match_of_positions(), empty])
        all_positions = np.concatenate([positions, nothing])
        table = {
            MATCH: pa.array(match),
            AT: pa.array(np.concatenate([positions, -1 - empty])),
            '"__hamlet_matched_row"': _nullable(np.concatenate([found.rows_of_positions(), nothing])),
            _VARIABLE: _nullable(np.concatenate([found.variable.astype(np.int64), nothing])),
            LABEL: self._labels(all_positions),
            NUMBER: pa.array(found.number[match]),
        }
        self.ordered.host.register(
            f"{self._prefix}_rows", pa.table({_bare(key): value for key, value in table.items()})
        )

    # Readings.

    def _read(self, reading: Navigation | Aggregation, own: str) -> None:
        if isinstance(reading, Navigation):
            self._navigate(reading, own)
        else:
            self._aggregate(reading, own)

    def _navigate(self, reading: Navigation, own: str) -> None:
        members = None if reading.variable is None else self._members[reading.variable]
        row, position = target(self.found, self.points, reading, members)
        if reading.value == LABEL:
            self._columns[own] = self._labels(position)
            return
        at = own.replace("_value_", "_row_")
        self._columns[at] = _nullable(row)
        if not reading.reads_label and not reading.reads_number:
            values = self.ordered.gathered(reading.value, row)
            if values is not None:
                del self._columns[at]
                self._columns[own] = values
                return
            inner = f"SELECT {self.ordered.row} AS {at}, ({reading.value}) AS {own} FROM {self.ordered.table}"
            self._joins.append(f"LEFT JOIN ({inner}) USING ({at})")
            return
        label = own.replace("_value_", "_label_")
        self._columns[label] = self._labels(position)
        listed = ", ".join(f"s.{quoted(each)}" for each in self.ordered.columns)
        outer = f"SELECT q.{POINT}, q.{label} AS {LABEL}, q.{NUMBER}, {listed} FROM {self._prefix}_points q "
        outer += f"JOIN {self.ordered.table} s ON s.{self.ordered.row} = q.{at}"
        self._joins.append(f"LEFT JOIN (SELECT {POINT}, ({reading.value}) AS {own} FROM ({outer})) USING ({POINT})")

    def _aggregate(self, reading: Aggregation, own: str) -> None:
        if reading.within and reading.function.lower() in _LISTS:
            reading = replace(reading, order=reading.within, within="")
        members = None if reading.variable is None else self._members[reading.variable]
        if _is_single(reading):
            self._columns[own] = pa.array(count(self.found, self.points, reading.mode, members))
            return
        self._all_rows()
        rows = f"{self._prefix}_rows"
        listed = ", ".join([f"r.{each}" for each in (MATCH, AT, _VARIABLE, LABEL, NUMBER)])
        listed += "".join(f", s.{quoted(each)}" for each in self.ordered.columns)
        joined = f'LEFT JOIN {self.ordered.table} s ON s.{self.ordered.row} = r."__hamlet_matched_row"'
        base = f"SELECT {listed} FROM {rows} r {joined}"
        seen = f"{_VARIABLE} IS NOT NULL"
        if members is not None:
            seen = f"{_VARIABLE} IN ({', '.join(map(str, members))})"
        if reading.condition:
            seen += f" AND ({self.translate(reading.condition)})"
        function, arguments, left = host_call(reading, self.translate, "duckdb")
        if left:
            seen += f" AND ({left})"
        distinct = reading.distinct or arguments.startswith("DISTINCT ")  # of a function of another dialect
        if distinct:
            arguments = arguments.removeprefix("DISTINCT ")
            ranking = f"row_number() OVER (PARTITION BY {MATCH}, ({seen}), {arguments} ORDER BY {AT})"
            base = f"SELECT *, {ranking} = 1 AS {_FIRST} FROM ({base})"
            seen = f"({seen}) AND {_FIRST}"
        order = f" ORDER BY {self.translate_order(reading.order)}, {AT}" if reading.order else ""  # ties as matched
        is_final = self.points.final if reading.mode is None else reading.mode == "FINAL"
        if not order and is_final and arguments and arguments != "*" and function.lower() not in _ANY_ORDER:
            order = f" ORDER BY {AT}" if not reading.within else ""
        call = f"{function}({arguments}{order})"
        if reading.within:
            call += f" WITHIN GROUP (ORDER BY {self.translate_order(reading.within)})"
        every = seen == f"{_VARIABLE} IS NOT NULL" and bool((self.found.length > 0).all())
        if is_final or not every:  # without it the host keeps the frame of a median from row to row
            call += f" FILTER (WHERE {seen})"
        if is_final:
            text, key = f"SELECT {MATCH}, {call} AS {own} FROM ({base}) GROUP BY {MATCH}", MATCH
        elif reading.within:
            pairs = f'SELECT a.{AT} AS "__hamlet_to", b.* FROM {rows} a JOIN ({base}) b '
            pairs += f"ON b.{MATCH} = a.{MATCH} AND b.{AT} <= a.{AT}"
            text, key = f'SELECT "__hamlet_to" AS {AT}, {call} AS {own} FROM ({pairs}) GROUP BY "__hamlet_to"', AT
        else:
            frame = f"PARTITION BY {MATCH} ORDER BY {AT} ROWS UNBOUNDED PRECEDING"
            text, key = f"SELECT {AT}, {call} OVER ({frame}) AS {own} FROM ({base})", AT
        self._joins.append(f"LEFT JOIN ({text}) USING ({key})")

    def translate_order(self, text: str) -> str:
        """The items of an ORDER BY inside an aggregate, in the host's dialect."""
        marker = "SELECT 1 FROM t ORDER BY "
        translated = self.translate(f"{marker}{text}")
        return translated.split("ORDER BY ", 1)[1] if "ORDER BY " in translated else text


def _is_single(reading: Navigation | Aggregation) -> bool:
    """Whether a reading is of one row alone, or counts rows."""
    if isinstance(reading, Navigation):
        return reading.value == LABEL or not (reading.reads_label or reading.reads_number)
    plain = not (reading.distinct or reading.condition or reading.order or reading.within)
    return plain and reading.function.lower() == "count" and reading.arguments.strip() == "*"


def host_call(reading: Aggregation, translate: Callable[[str], str], host: str) -> tuple[str, str, str]:
    """The host's function and arguments, and the rows that a function of another dialect leaves out."""
    written = f"{reading.function}({reading.arguments})"
    text, condition = translate(written), ""
    if text != written:
        import sqlglot
        from sqlglot import exp

        tree = sqlglot.parse_one(text, dialect=host)
        if isinstance(tree, exp.Filter):
            text, condition = tree.this.sql(host), tree.expression.this.sql(host)
    match = _CALL.match(text)
    return (match[1], match[2], condition) if match else (reading.function, reading.arguments, condition)


def _nullable(values: Numbers) -> pa.Array:
    """Numbers of which -1 is none."""
    return pa.array(values, mask=values < 0)


def _bare(name: str) -> str:
    """A quoted name without its quotes."""
    return name[1:-1].replace('""', '"') if name[:1] == '"' else name


def members_of(clause: Clause, names: Sequence[str]) -> list[int]:
    """The numbers of the variables that some folded names stand for."""
    numbers = {name: place for place, name in enumerate(clause.variables)}
    return sorted({numbers[each] for name in names for each in clause.members(name)})
