"""The page about a run of row patterns: what was asked, what came out over time, by partition and length, evidence."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from hamlet.errors import one_of
from hamlet.output.columnar import csv_texts
from hamlet.output.result import Results
from hamlet.pages.findings import bars, evidence_of_each
from hamlet.pages.page import RunPage
from hamlet.patterns.clause.statement import Script, Statement
from hamlet.patterns.clause.tree import Clause
from hamlet.patterns.match.evaluate import output_name
from hamlet.patterns.match.run import parsed

_BARS = 120
_SHOWN = 15  # rows of each statement in its table
_EVIDENCE = 3  # rows of each statement with evidence
_MOST_EXPLAINED = 200_000  # rows of an input that is read for evidence
_AT_AN_END = re.compile(r"(?:FIRST|LAST)\s*\(\s*(?:\w+\.)?(\w+)\s*\)|(?:\w+\.)?(\w+)", re.IGNORECASE)
_COUNT = re.compile(r"COUNT\s*\(\s*\*\s*\)", re.IGNORECASE)
_SKIPS = {
    "past": "goes on behind its last row",
    "next": "goes on at its second row",
    "first": "goes on at its first {}",
    "last": "goes on at its last {}",
}
_ROWS = {
    "one": "A row for each match",
    "show": "A row for each row of a match",
    "omit": "A row for each row of a match",
    "unmatched": "A row for each row, in a match or not",
}


def question(clause: Clause, table: str, pattern: str) -> str:
    """What a clause asks, in words.

    Parameters
    ----------
    clause : Clause
    table : str
        The table that it reads, as written.
    pattern : str
        As written.

    Examples
    --------
    >>> text = "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts PATTERN (a b+) DEFINE b AS v > PREV(v))"
    >>> [clause] = parsed(text, "duckdb", "<sql>").statements[0].clauses
    >>> question(clause, "t", "a b+").split("?")[0]
    'In t, for each k, in the order of ts: where do rows match a b+, where b is v > PREV(v)'
    """
    keys = [" ".join(each.text.split()) for each in clause.partition]
    order = [
        " ".join(each.expression.text.split()) + (" from the greatest" if each.descending else "")
        for each in clause.order
    ]
    text = f"In {table}" + (f", for each {one_of(keys, 'and')}" if keys else "")
    text += f", in the order of {one_of(order, 'and')}" if order else ", in the order of the input"
    text += f": where do rows match {pattern}{'' if clause.within is None else f' within {clause.within.text}'}"
    conditions = [f"{each.name} is {' '.join(each.expression.text.split())}" for each in clause.definitions.values()]
    text += f", where {one_of(conditions, 'and')}?" if conditions else "?"
    names = {**clause.variables, **{name: each[0] for name, each in clause.subsets.items()}}
    skip = _SKIPS[clause.skip].format(names.get(clause.skip_to or "", ""))
    return f"{text} {_ROWS[clause.rows]}; behind a match the search {skip}."


class MatchReport(RunPage):
    """Writes a page about the rows of statements.

    Parameters
    ----------
    text, source : str
        The statements, and the name of their file.
    path, keep
        As of `RunPage`.
    """

    def __init__(self, text: str, source: str, path: str | os.PathLike[str], keep: Sequence[str]) -> None:
        super().__init__(path, [*keep, source])
        self._text, self._source = text, source

    def write(self, results: Results, tables: Any, options: Mapping[str, Any], seconds: float) -> None:
        """Write the page."""
        script = parsed(self._text, options.get("dialect", "duckdb"), self._source)
        charts: list[dict[str, Any]] = []
        asked = _giving_rows(script, len(results.parts))
        several = len(results.parts) > 1
        shown = [
            self._shown(script, asked[place], each.name, each.table(), charts)
            for place, each in enumerate(results.parts)
        ]
        first: list[list[dict[str, Any]]] = []
        for statement, each in zip(asked, results.parts, strict=True):
            rows = each.table().slice(0, _EVIDENCE).to_pylist() if statement is None or statement.clauses else []
            first.append([{**({each.column: each.name} if several else {}), **row} for row in rows])
        words = ["hamlet", "why", "query.sql" if self._source == "<sql>" else self._source, *_inputs(tables), "--check"]
        stats = results.stats
        empty = [f"{each.name} gives no row." for each in results.parts if not len(each)]
        self._write(
            "matches.html",
            charts,
            stats,
            (("events", "rows read"), ("matches", "matches"), ("rows", "rows given")),
            [(f"{seconds:.2f} s", "run time")],
            workload=self._source,
            inputs=_inputs(tables)[1::2],
            strange=[*results.warnings, *empty],
            evidence=evidence_of_each(
                first, lambda _, row: results.why(row), [words] * len(first), "m", stats.get("events"), _MOST_EXPLAINED
            ),
            statements=shown,
            matches=stats.get("matches", 0),
        )

    def _shown(
        self, script: Script, statement: Statement | None, name: str, rows: pa.Table, charts: list[dict[str, Any]]
    ) -> dict[str, Any]:
        """What the page shows of a statement."""
        clauses = [] if statement is None else statement.clauses
        asked = []
        for clause in clauses:
            table = " ".join(script.text[clause.source.start : clause.source.end].split())
            pattern = " ".join(script.text[clause.pattern_span.start : clause.pattern_span.end].split())
            asked.append(question(clause, table, pattern))
        columns = rows.column_names
        known = {each.lower(): each for each in columns}
        texts = [
            csv_texts(each.combine_chunks()) if _is_text(each.type) else map(str, each.to_pylist())
            for each in rows.slice(0, _SHOWN).itercolumns()
        ]
        lengths: list[str] = []
        keys: list[str] = []
        for clause in clauses:
            lengths += [each.name for each in clause.measures if _COUNT.fullmatch(each.expression.text.strip())]
            keys += [output_name(each) for each in clause.partition]
        lengths, keys = ([known[each.lower()] for each in some if each.lower() in known] for some in (lengths, keys))
        chart = None
        time = _time_of(clauses, rows)
        if time is not None:
            chart = len(charts)
            charts.append({"label": f"rows of {name} by {time}", "what": "rows", **_over(rows.column(time))})
        return {
            "name": name,
            "text": script.text[statement.span.start : statement.span.end].strip() if statement else "",
            "asked": asked,
            "rows": rows.num_rows,
            "columns": columns,
            "table": list(zip(*texts, strict=True)) if columns else [],
            "chart": chart,
            "time": time,
            "groups": [(f"Rows by {key}", bars(_counted(rows.column(key)))) for key in dict.fromkeys(keys)],
            "lengths": [(f"Rows by {each}", _by_number(rows.column(each))) for each in dict.fromkeys(lengths)],
        }


def _giving_rows(script: Script, count: int) -> list[Statement | None]:
    """The statements that gave tables of rows: those that are no commands."""
    found = [each for each in script.statements if not each.tokens[0].is_word("CREATE", "DROP", "SET", "INSERT", "USE")]
    return [*found] if len(found) == count else [None] * count


def _inputs(tables: Any) -> list[str]:
    """How a command names the tables."""
    if isinstance(tables, Mapping):
        named = [(f"{name}=", paths) for name, paths in tables.items()]
    else:
        named = [("", tables or [])]
    words = []
    for prefix, paths in named:
        for path in [paths] if isinstance(paths, str) else paths:
            words += ["--input", f"{prefix}{path}"]
    return words


def _is_text(kind: pa.DataType) -> bool:
    """Whether values of a type have texts of their own in files."""
    return not bool(pa.types.is_nested(kind) or pa.types.is_interval(kind) or pa.types.is_dictionary(kind))


def _time_of(clauses: Sequence[Clause], rows: pa.Table) -> str | None:
    """The column that says when a row is: what the rows are ordered by, at an end of the match; else the first time."""
    known: dict[str, str] = {each.lower(): each for each in rows.column_names}
    for clause in clauses:
        if not clause.order:
            continue
        leading = output_name(clause.order[0].expression).lower()
        names = [leading]
        for measure in clause.measures:
            match = _AT_AN_END.fullmatch(measure.expression.text.strip())
            if match and (match[1] or match[2]).lower() == leading:
                names.append(measure.name.lower())
        for name in names:
            if name in known and _is_line(rows.schema.field(known[name]).type):
                return known[name]
    times: list[str] = [
        each.name for each in rows.schema if pa.types.is_timestamp(each.type) or pa.types.is_date(each.type)
    ]
    return times[0] if times else None


def _is_line(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_integer(kind))


def _over(times: pa.ChunkedArray) -> dict[str, Any]:
    """Counts of equal lengths of time: ``bars``, and the ``times`` where they begin and end."""
    kind = pa.date32() if pa.types.is_date(times.type) else times.type
    plain = times.drop_null().cast(kind)
    ticks = (plain.cast(pa.int32()) if pa.types.is_date(kind) else plain).cast(pa.int64()).to_numpy()
    if not len(ticks):
        return {"bars": [], "times": []}
    first, last = int(ticks.min()), int(ticks.max())
    width = max(1, -(-(last - first + 1) // _BARS))
    counts = np.bincount((ticks - first) // width).tolist()
    edges = pa.array([first + place * width for place in range(len(counts))] + [last], pa.int64())
    back = edges.cast(pa.int32()) if pa.types.is_date(kind) else edges
    return {"bars": counts, "times": csv_texts(back.cast(kind))}


def _counted(column: pa.ChunkedArray) -> dict[str, int]:
    """How often each value occurs."""
    found: Counter[str] = Counter()
    for each in column.value_counts().to_pylist():
        found["NULL" if each["values"] is None else str(each["values"])] += each["counts"]
    return found


def _by_number(column: pa.ChunkedArray) -> list[tuple[str, str, float]]:
    """How often each number occurs, the least first; large ones in equal parts where there are many."""
    values = column.drop_null().cast(pa.int64()).to_numpy()
    if not len(values):
        return []
    most = int(values.max())
    width = max(1, -(-(most + 1) // 40))
    parts, counts = np.unique(values // width, return_counts=True)
    labels = [f"{part * width}" if width == 1 else f"{part * width} to {part * width + width - 1}" for part in parts]
    return bars(dict(zip(labels, counts.tolist(), strict=True)), ordered=True, most=40)
