"""`why` for row patterns in SQL: the match behind a row, or what stands in the way of one that begins at a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hamlet.errors import DataError, OptionError, WorkloadError
from hamlet.input.missing import MissingColumns
from hamlet.output.plain import json_value
from hamlet.patterns.automaton.compile import ACCEPT, AT_END, AT_START, SPLIT, compile_pattern
from hamlet.patterns.clause.expressions import Read, placeholder
from hamlet.patterns.clause.statement import Script
from hamlet.patterns.match.conditions import Failed, as_seen
from hamlet.patterns.match.evaluate import (
    Meaning,
    find,
    horizon_of,
    labelled,
    ordered_rows,
    points_of,
    register_rows,
)
from hamlet.patterns.match.host import Host, HostError, quoted
from hamlet.patterns.match.labelled import Labelled, Points
from hamlet.patterns.match.measures import POINT, Evaluation
from hamlet.patterns.match.ordered import Ordered
from hamlet.patterns.match.run import StatementRun, host_of, parsed
from hamlet.patterns.match.streamed import beyond_rows
from hamlet.patterns.options import MAX_STEPS
from hamlet.why.evidence import Evidence, only_row, same

PLACE = "__hamlet_place"  # of a row among those that the clause reads
_MOST_WAYS = 2_000  # ways of labelling that are tried for the longest one


def of_statement(
    text: str,
    tables: Any,
    row: Mapping[str, Any],
    *,
    dialect: str = "duckdb",
    source: str = "<sql>",
    allow_files: bool = False,
    max_steps: int = MAX_STEPS,
    missing_columns: MissingColumns | None = None,
) -> Evidence:
    """The match behind a row of a statement, or of its absence.

    Parameters
    ----------
    text : str
    tables : as of `hamlet.sql`
    row : mapping
        A row of the result, or enough of its columns to name one; of several statements, with ``query``. Where no row
        of the result has them, columns of one row that the clause reads (or ``at``, its place): why none begins there.
    dialect, source, allow_files, max_steps, missing_columns
        As of `hamlet.sql`.

    Raises
    ------
    OptionError
        If several rows match, or none is named.
    """
    script = parsed(text, dialect, source)
    host = host_of(script, tables, files=allow_files, missing=missing_columns)
    asked = _Asked(script, host, row, max_steps)
    if asked.reports.errors:
        raise WorkloadError(asked.reports.errors)
    return Evidence(asked.evidence())


class _Asked:
    """The clause of a statement, evaluated, and the row that is asked for."""

    def __init__(self, script: Script, host: Host, row: Mapping[str, Any], max_steps: int) -> None:
        self.script, self.host, self.row = script, host, dict(row)
        self.reports = script.reports()
        self.max_steps = max_steps
        self.known: dict[tuple[int, tuple[int, ...]], bool] = {}  # of labellings, whether the last condition holds
        self.wanted = {name: value for name, value in row.items() if name != "query"}
        try:
            self._run()
        except Failed:
            raise WorkloadError(self.reports.errors) from None
        except HostError as error:
            raise DataError(error.message) from None

    def _run(self) -> None:
        script, host = self.script, self.host
        runs: list[StatementRun] = []
        for place, statement in enumerate(script.statements):
            run = StatementRun(script, statement, host, self.reports, f"__hamlet_s{place}", self.max_steps)
            if run.run() is not None:
                runs.append(run)
        names = [f"q{place + 1}" for place in range(len(runs))]
        name = self.row.get("query", names[0] if len(names) == 1 else None)
        if name not in names:
            raise OptionError(
                f"which statement? The row (--row) needs its name as query, one of {', '.join(names) or 'none'}"
            )
        run = runs[names.index(name)]
        if not run.statement.clauses:
            raise OptionError(f"{name} has no MATCH_RECOGNIZE; evidence is given for rows of one")
        run = StatementRun(script, run.statement, host, self.reports, "__hamlet_w", self.max_steps)
        *inner, clause = run.statement.clauses
        for each in inner:
            run.settle(each)
        self.number = sum(len(each.clauses) for each in script.statements[: script.statements.index(run.statement)])
        self.number += len(inner)
        source = run.source_of(clause)
        self.outside = run.read_outside(clause)
        placed = f"SELECT *, row_number() OVER () - 1 AS {quoted(PLACE)} FROM ({source})"
        self.meaning: Meaning = run.read(clause, source)
        self.ordered: Ordered = ordered_rows(self.meaning, host, placed, "__hamlet_w_ordered", self.reports)
        matches = find(self.meaning, self.ordered, self.reports, self.max_steps, "__hamlet_w")
        self.found: Labelled = labelled(self.meaning, matches, self.ordered)
        register_rows(self.meaning, self.ordered, self.found, "__hamlet_w", self.reports)
        self.points, self.shown = points_of(self.meaning, self.found)
        run.replaced(clause, "__hamlet_w")
        self.outer = run.text()
        listed = host.arrow(f"SELECT * FROM {self.ordered.table} ORDER BY {self.ordered.row}")
        self.places: list[int] = listed.column(PLACE).to_pylist()
        self.events: list[dict[str, Any]] = listed.select(
            [name for name in listed.column_names if name in self.ordered.columns and name != PLACE]
        ).to_pylist()

    def evidence(self) -> dict[str, Any]:
        """The evidence of the row, or of its absence."""
        rows = self._result()
        chosen = only_row([row for _, row in rows], self.wanted)
        if chosen is not None:
            point = next(point for point, row in rows if row is chosen)
            query = {"query": self.row["query"]} if "query" in self.row else {}
            return _first({**self._of_point(point), "row": json_value({**query, **chosen}), "holds": True})
        return _first(self._absent())

    def _result(self) -> list[tuple[int, dict[str, Any]]]:
        """The rows of the statement, each with the point that it shows: of the clause where more is around it."""
        import sqlglot

        tree: Any = sqlglot.parse_one(self.outer, dialect="duckdb")
        tree.set("order", None)
        text = tree.sql("duckdb")
        plain = beyond_rows(text, "duckdb") is None and tree.find(sqlglot.exp.Subquery) is None
        if plain:
            tree = tree.select("rowid AS __hamlet_point")
        else:
            tree = sqlglot.parse_one("SELECT *, rowid AS __hamlet_point FROM __hamlet_w", dialect="duckdb")
            self._without_outer()
        rows = self.host.arrow(tree.sql("duckdb")).to_pylist()
        return [(row.pop("__hamlet_point"), {key: row[key] for key in row if key != PLACE}) for row in rows]

    def _without_outer(self) -> None:
        """Of what is wanted of a row keep what the clause gives of it, the columns of rows around it by its names."""
        given = self.host.names("__hamlet_w")
        keys = {name: key for key, name in self.outside.items() if name not in given}
        if keys:
            beside = set(self.host.names(self.outer)) - {*given, *self.ordered.columns, "at"}
            wanted = {keys.get(name, name): value for name, value in self.wanted.items()}
            self.wanted = {name: value for name, value in wanted.items() if name not in beside}

    # A row that is there.

    def _of_point(self, point: int) -> dict[str, Any]:
        match = int(self.points.match[point])
        if match < 0:
            row = int(self.shown[point])
            return {**self._head(row), "rows": [], "unmatched": self._event(row), "skipped_to": None}
        found = self._of_match(match)
        if self.meaning.clause.rows != "one":
            position = int(self.points.position[point])
            found["current"] = None if position < 0 else position - int(self.found.first[match])
        return found

    def _of_match(self, match: int) -> dict[str, Any]:
        found = self.found
        start, length = int(found.start[match]), int(found.length[match])
        labels = found.variable[found.first[match] : found.first[match + 1]]
        names = list(self.meaning.clause.variables.values())
        rows = [
            {**self._event(start + place), "label": names[int(label)]} for place, label in enumerate(labels.tolist())
        ]
        data = self._head(start) | {"match_number": int(found.number[match]), "rows": rows}
        if not rows:
            data["empty_at"] = self._event(start)
        data["skipped_to"] = self._place(self._next(match))
        data["conditions"] = self._conditions(start, labels, int(found.number[match]))
        assert len(data["conditions"]) == length
        return data

    def _head(self, row: int) -> dict[str, Any]:
        """The kind, the clause, and the partition of a row."""
        values = {}
        if self.ordered.keys:
            values = dict(zip(self.meaning.key_names(), self.ordered.key_values(row), strict=True))
        return {"kind": "match", "clause": self.number, "partition": json_value(values)}

    def _event(self, row: int) -> dict[str, Any]:
        return {"at": self.places[row], "event": json_value(self.events[row])}

    def _place(self, row: int) -> int | None:
        """The place of a row where matching goes on, None behind the partition's last."""
        return None if row in self.ordered.borders else self.places[row]

    def _next(self, match: int) -> int:
        """The row at which matching goes on behind a match; a partition's end where there is none."""
        found, clause = self.found, self.meaning.clause
        start, length = int(found.start[match]), int(found.length[match])
        if not length or clause.skip == "next":
            return start + 1
        if clause.skip == "past":
            return start + length
        names = list(clause.variables)
        members = {names.index(each) for each in clause.members(clause.skip_to)}
        labels = found.variable[found.first[match] : found.first[match + 1]].tolist()
        carried = [place for place, label in enumerate(labels) if label in members]
        return start + carried[0 if clause.skip == "first" else -1]

    def _conditions(self, start: int, labels: Any, number: int) -> list[dict[str, Any]]:
        """Per row what its condition read, by the text of what it read."""
        names = list(self.meaning.clause.variables)
        found: list[dict[str, Any]] = [{} for _ in labels]
        for variable, name in enumerate(names):
            condition = self.meaning.conditions.get(name)
            rows = [place for place, label in enumerate(labels.tolist()) if label == variable]
            if condition is None or not rows:
                continue
            for text, values in self._read(condition.read, start, labels, rows, number).items():
                for place, value in zip(rows, values, strict=True):
                    found[place][text] = json_value(value)
        return found

    def _read(self, read: Read, start: int, labels: Any, rows: Sequence[int], number: int) -> dict[str, list[Any]]:
        """The values of what an expression reads, at rows of a labelling, each seen with the labels up to it."""
        partition = int(np.searchsorted(self.ordered.borders, start, "right")) - 1
        first, length, of, within = (np.array([each], np.int64) for each in (start, len(labels), number, partition))
        nothing = np.zeros(len(labels), np.bool_)
        found = Labelled(first, length, of, within, labels.astype(np.int32), nothing, self.ordered.borders)
        points = Points(np.zeros(len(rows), np.int64), np.array(rows, np.int64), False)
        seen, columns = as_seen(read), {}
        for place, reading in enumerate(read.readings):
            text = self.script.text[reading.span.start : reading.span.end]
            columns[f'"__hamlet_r{place}"'] = (text, Read(placeholder(place), seen.readings, read.expression))
        evaluation = Evaluation(self.meaning.clause, self.ordered, found, points, self.meaning.translate)
        values: dict[str, list[Any]] = {}
        if columns:
            query = evaluation.query({name: each for name, (_, each) in columns.items()}, "__hamlet_w_read")
            table = self.host.arrow(f"SELECT * FROM ({query}) ORDER BY {POINT}")
            values = {text: table.column(name.strip('"')).to_pylist() for name, (text, _) in columns.items()}
        for column in self._columns(read):
            values[column] = [self.events[start + place].get(column) for place in rows]
        return values

    def _columns(self, read: Read) -> list[str]:
        """The columns that an expression reads of the candidate row itself."""
        import sqlglot

        tree = sqlglot.parse_one(read.text, dialect="duckdb")
        known = {each.lower(): each for each in self.ordered.columns if each != PLACE}
        named = [column.parts[0].name.lower() for column in tree.find_all(sqlglot.exp.Column)]
        return [known[name] for name in dict.fromkeys(named) if name in known]

    # A row that is not there.

    def _absent(self) -> dict[str, Any]:
        start = self._asked_row()
        head = {**self._head(start), "row": json_value(self.row), "holds": False, "start": self._event(start)}
        found = self.found
        begins = np.flatnonzero(found.start == start)
        if len(begins):
            match = self._of_match(int(begins[0]))
            values = self._values(int(begins[0]))
            reason = "the match that begins there has other values, or what stands around the clause leaves it out"
            return match | head | {"values": values, "reason": reason}
        partition = int(np.searchsorted(self.ordered.borders, start, "right")) - 1
        for earlier in np.flatnonzero(found.partition == partition).tolist():
            if found.start[earlier] < start < self._next(earlier):
                reason = "an earlier match goes past that row"
                return self._of_match(earlier) | head | {"taken": True, "reason": reason}
        number = int(((found.partition == partition) & (found.start < start)).sum()) + 1
        longest, ended = self._longest(start, partition, number)
        names = list(self.meaning.clause.variables.values())
        rows = [{**self._event(start + place), "label": names[label]} for place, label in enumerate(longest)]
        labels = np.array(longest, np.int32)
        reason = "no labelling of rows from there on fits the pattern"
        more = {"rows": rows, "ended": ended, "conditions": self._conditions(start, labels, number), "reason": reason}
        return head | more

    def _asked_row(self) -> int:
        """The one row that is asked for, by its place or its columns."""
        known = {name: value for name, value in self.wanted.items() if name in self.ordered.columns}
        fitting = [
            row
            for row, event in enumerate(self.events)
            if (known or "at" in self.wanted)
            and all(same(event[name], value) for name, value in known.items())
            and ("at" in self.ordered.columns or self.wanted.get("at", self.places[row]) == self.places[row])
        ]
        if len(fitting) != 1:
            raise OptionError(
                f"no row of the result matches, and {len(fitting):,} rows of the table do; evidence of absence needs "
                "columns of one row of the table, at which a match could begin, or its place: "
                '{"at": 12}'
            )
        return fitting[0]

    def _values(self, match: int) -> list[dict[str, Any]]:
        """The rows that the clause gives for a match."""
        points = np.flatnonzero(self.points.match == match).tolist()
        if not points:
            return []
        listed = ", ".join(map(str, points))
        rows = self.host.arrow(f"SELECT * FROM __hamlet_w WHERE rowid IN ({listed}) ORDER BY rowid").to_pylist()
        return [json_value({name: row[name] for name in row if name != PLACE}) for row in rows]

    def _longest(self, start: int, partition: int, number: int) -> tuple[list[int], dict[str, Any]]:
        """The longest labelling of rows from a start, the preferred one of that length, and what ended it."""
        clause = self.meaning.clause
        program = compile_pattern(clause.pattern, list(clause.variables))
        end = int(self.ordered.borders[partition + 1])
        horizon = horizon_of(self.meaning, self.ordered, self.reports)
        low = int(self.ordered.borders[partition])
        most = int(horizon[start]) if len(horizon) else end
        names = list(clause.variables)
        best: list[int] = []
        tried: dict[int, list[str]] = {}
        labels: list[int] = []
        stack, ways = [(program.start, 0)], 0
        seen: set[tuple[int, tuple[int, ...]]] = set()
        while stack and ways < _MOST_WAYS:
            step, taken = stack.pop()
            del labels[taken:]
            ways += 1
            kind = program.kinds[step]
            if kind == ACCEPT or (step, tuple(labels)) in seen:
                continue
            seen.add((step, tuple(labels)))
            row = start + taken
            if kind == SPLIT:
                stack += [(program.second[step], taken), (program.first[step], taken)]
            elif kind in (AT_START, AT_END):
                if row == (low if kind == AT_START else end):
                    stack.append((program.first[step], taken))
            elif row < min(most, end) and self._holds(names, [*labels, program.variables[step]], start, number):
                labels.append(program.variables[step])
                if len(labels) > len(best):
                    best = list(labels)
                stack.append((program.first[step], taken + 1))
            else:
                tried.setdefault(taken, []).append(names[program.variables[step]])
        row = start + len(best)
        ended: dict[str, Any] = {"at": self.places[row] if row < end else None, "tried": []}
        for name in dict.fromkeys(tried.get(len(best), [])):
            condition = self.meaning.conditions.get(name)
            told: dict[str, Any] = {"label": clause.variables[name]}
            if condition is not None:
                told["condition"] = condition.read.expression.text
                if row < end:
                    path = np.array([*best, names.index(name)], np.int32)
                    values = self._read(condition.read, start, path, [len(best)], number)
                    told["values"] = {text: json_value(each[0]) for text, each in values.items()}
            ended["tried"].append(told)
        if most < end and row >= most:
            ended["within"] = True
        return best, ended

    def _holds(self, names: Sequence[str], labels: Sequence[int], start: int, number: int) -> bool:
        """Whether the condition of the last label holds."""
        condition = self.meaning.conditions.get(names[labels[-1]])
        if condition is None:
            return True
        key = (start, tuple(labels))
        if key not in self.known:
            path = np.array(labels, np.int32)
            partition = int(np.searchsorted(self.ordered.borders, start, "right")) - 1
            begin, length, count, where = (np.array([each], np.int64) for each in (start, len(path), number, partition))
            nothing = np.zeros(len(path), np.bool_)
            found = Labelled(begin, length, count, where, path, nothing, self.ordered.borders)
            points = Points(np.zeros(1, np.int64), np.array([len(path) - 1], np.int64), True)
            evaluation = Evaluation(self.meaning.clause, self.ordered, found, points, self.meaning.translate)
            query = evaluation.query({'"__hamlet_holds"': as_seen(condition.read)}, "__hamlet_w_holds")
            text = f'SELECT coalesce(CAST("__hamlet_holds" AS BOOLEAN), false) AS h FROM ({query})'
            self.known[key] = bool(self.host.arrow(text).column("h")[0].as_py())
        return self.known[key]


def _first(data: dict[str, Any]) -> dict[str, Any]:
    """Evidence with what all evidence has in front."""
    return {name: data[name] for name in ("kind", "row", "holds")} | data
