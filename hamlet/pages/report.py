"""The page about a run: results over time, events by type, where the time went, and the sharing decisions.

`Report` watches a run (`hamlet.run(..., report=...)`, `hamlet run --report`); `page` makes the text.
"""

from __future__ import annotations

import heapq
import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice, zip_longest
from typing import Any

import numpy as np
import pyarrow as pa

from hamlet.engine.options import Options
from hamlet.engine.stages import STAGES
from hamlet.input.events import EventSource
from hamlet.language.printing import to_text
from hamlet.language.query import Aggregate, Attribute, Query, Taken
from hamlet.output.digits import short_text
from hamlet.output.query_part import query_rows
from hamlet.output.query_rows import QueryRows, dicts_of
from hamlet.output.result import Results
from hamlet.pages.activity import Activity
from hamlet.pages.decisions import Decisions
from hamlet.pages.findings import MOST_EVENTS, bars, evidence_of, over_time
from hamlet.pages.page import CHARTS, REPORTED, RunPage, render, write
from hamlet.pages.question import question
from hamlet.pages.series import MOST_POINTS, Sample, query_lines
from hamlet.pages.timeline import axis, tick_text
from hamlet.planner.workload import Workload

_MOST_ASKED = 30  # queries in the table at the top
_MOST_STEPS = 60  # of a row's evidence; of more, some trends are shown
_MOST_EVIDENCE = 12  # rows with evidence, of all queries
_TOP_ROWS = 3  # of each query with evidence
REST = "rest"  # the stage of all that lies between the others

# What a run counted: key of `Results.stats`, caption, what it means.
_COUNTERS = (
    ("events", "events", "read from the input"),
    ("matched_events", "matched", "events that some query asks for"),
    ("partitions", "partitions", "sets of events that agree on the partition attributes, over all classes"),
    ("windows", "windows", "windows with at least one event that a query asks for, of all queries and partitions"),
    ("rows", "result rows", "a row is a window and a group with at least one trend"),
    ("bursts", "bursts", "events of one type and partition that nothing of interest interrupts"),
    ("shared_graphlets", "shared graphlets", "graphlets whose coefficients served two queries and more"),
    ("snapshots", "snapshots", "values that queries plugged into the coefficients of graphlets"),
    ("merges", "merges", "graphlets that went on with more queries than before"),
    ("splits", "splits", "graphlets that went on with fewer queries than before"),
    ("late_events", "late", "events that came too late and were dropped"),
)


RUN_STAGES = {
    **STAGES,
    "layers": "hand the rows of queries on to those that ask about them",
    REST: "compile the queries, cut batches at steps of time",
}


class Report(RunPage):
    """Watches a run and writes its page.

    Parameters
    ----------
    workload : Workload
    source : EventSource
    options : Options
    path : path
        Where the page goes.
    """

    def __init__(self, workload: Workload, source: EventSource, options: Options, path: str | os.PathLike[str]) -> None:
        super().__init__(path, [workload.analysis.text.source, source.name])
        self._workload = workload
        self._input = source.name
        self._condition = source.condition
        self._options = options
        self._activity = Activity(source.schema)
        self._decisions = Decisions(source.schema.clock)

    def see(self, batch: pa.RecordBatch) -> None:
        """Count the events of a batch that the run reads."""
        self._activity.add(batch)

    def decided(self, records: pa.Table) -> None:
        """Add up the next records of the run's trace."""
        self._decisions.add(records)

    def write(self, results: Results) -> None:
        """Write the page."""
        settings = settings_of(self._options, where=self._condition)
        text = page(self._workload, self._input, settings, results, self._activity, self._decisions)
        write(text, self.path, REPORTED)


def page(
    workload: Workload,
    source: str,
    settings: Sequence[tuple[str, str]],
    results: Results,
    activity: Activity,
    decisions: Decisions,
    *,
    samples: Mapping[str, Sample] | None = None,
    meanings: Mapping[str, str] = RUN_STAGES,
    note_on_time: str = "",
) -> str:
    """The page as text.

    Parameters
    ----------
    workload : Workload
    source : str
        The input's name.
    settings : sequence of (str, str)
        `settings_of` the run.
    results : Results
    activity : Activity
        That has seen the whole input.
    decisions : Decisions
        That has seen the whole trace.
    samples : mapping of str to Sample, optional
        Of the queries whose rows are not all among the results.
    meanings : mapping of str to str
        What is done in each stage of ``results.stats["stages"]``, and in the `REST`.
    note_on_time : str
        What else is to be said of these times.
    """
    clock = results.parts[0].clock
    used = [rows for rows in query_rows(results) if len(rows)]
    share = MOST_POINTS // max(len(used), 1)
    events = activity.shown()
    edges = [edge for rows in used for edge in rows.edges or ()]
    if events is not None:
        edges += [events["first"], events["first"] + events["length"] * len(events["types"][0]["counts"])]
    whole = min(edges, default=0), max(edges, default=1)
    queries = [
        query_lines(
            query,
            rows.drawn_at(*whole) if query.within is None else rows,
            clock,
            share,
            (samples or {}).get(query.name),
        )
        for query, rows in zip(workload.queries, query_rows(results), strict=True)
    ]
    found = decisions.shown()
    shown_as = axis(clock, min(edges, default=0), max(edges, default=0))
    asked = zip(workload.queries[:_MOST_ASKED], query_rows(results), strict=False)
    questions = [_question(query, rows, shown_as) for query, rows in asked]
    data = {"axis": shown_as, "queries": queries, "events": events, "decisions": found}
    answered = sorted(queries, key=lambda query: not query["rows"])
    return render(
        "report.html",
        (*CHARTS[0], "report.css", "evidence.css", "findings.css"),
        (*CHARTS[1], "report.js"),
        data,
        workload=workload.analysis.text.source,
        source=source,
        settings=settings,
        questions=questions,
        strange=[*results.run_warnings],
        evidence=evidence_of(
            islice(_top_rows(workload, results), _MOST_EVIDENCE),
            partial(results.why, limit=_MOST_STEPS) if (results.stats.get("events") or 0) <= MOST_EVENTS else None,
            ["hamlet", "why", workload.analysis.text.source, "--input", source, "--check"],
        ),
        asked=[_asked(query, shown_as) for query in answered[:_MOST_ASKED]],
        left_out=len(answered[_MOST_ASKED:]),
        answered=sum(bool(query["rows"]) for query in queries),
        rows=sum(query["rows"] for query in queries),
        read=results.stats.get("events"),
        counters=_counters(results.stats),
        largest=largest(results.stats.get("largest_count_bits", 0)),
        seconds=results.stats["seconds"],
        zone=shown_as["zone"],
        deciding=results.stats.get("decision_ns", 0) / 1e6,
        copies=results.stats.get("slices", {}).get("replication", 1.0),
        stages=stages(results.stats["stages"], results.stats["seconds"], meanings),
        note_on_time=note_on_time,
        queries=queries,
        events=events,
        decisions=found,
    )


def _question(query: Query, rows: QueryRows, shown_as: dict[str, Any]) -> dict[str, Any]:
    """What a query asks, and its answers by time, group and length as text."""
    return {
        "name": query.name,
        "text": question(query),
        "over_time": over_time(_starts(rows), lambda tick: tick_text(tick, shown_as)) if query.within else [],
        "by_group": bars(_by_group(query, rows)),
        "by_length": bars(_by_length(query, rows), ordered=True),
        "of_lengths": "trends" if any(item.value == Aggregate("COUNT") for item in query.items) else "rows",
    }


def _starts(rows: QueryRows) -> np.ndarray[Any, Any]:
    return np.concatenate([np.asarray(piece.starts) for piece in rows.pieces] or [np.zeros(0, np.int64)])


def _by_group(query: Query, rows: QueryRows) -> dict[str, int]:
    """How many rows each group has, by what of it RETURN shows, but for numbers of events."""
    places = [
        place
        for place, item in enumerate(query.items)
        if isinstance(item.value, Attribute) or (isinstance(item.value, Taken) and item.value.function != "COUNT")
    ]
    found: Counter[str] = Counter()
    for piece in rows.pieces if places else ():
        columns = [piece.values[place].tolist() for place in places]
        texts = ([("NULL" if each is None else str(each)) for each in column] for column in columns)
        found.update(map(", ".join, zip(*texts, strict=True)))
    return dict(found)


def _by_length(query: Query, rows: QueryRows) -> dict[str, int]:
    """How many trends (rows, where RETURN does not count) have each number of events that GROUP-BY counts."""
    taken = [place for place, item in enumerate(query.items) if isinstance(item.value, Taken)]
    lengths = [place for place in taken if getattr(query.items[place].value, "function", "") == "COUNT"]
    counted = [place for place, item in enumerate(query.items) if item.value == Aggregate("COUNT")]
    found: Counter[int] = Counter()
    for piece in rows.pieces if lengths else ():
        amounts = piece.values[counted[0]].tolist() if counted else [1] * len(piece.starts)
        for length, amount in zip(piece.values[lengths[0]].tolist(), amounts, strict=True):
            found[length] += int(amount)
    return {f"{to_text(query.items[lengths[0]].value)} = {length}": found[length] for length in sorted(found)}


def _top_rows(workload: Workload, results: Results) -> Iterator[dict[str, Any]]:
    """The rows with the largest numbers of each query, in turn: what people look at first."""
    chosen = []
    for query, rows in zip(workload.queries[:_MOST_ASKED], query_rows(results), strict=False):
        measures = [place for place, column in enumerate(rows.columns) if column.kind in ("count", "sum", "double")]
        kept = QueryRows(rows.name, rows.columns, rows.first(_TOP_ROWS))
        if measures and query.top is None:
            every = chain.from_iterable(piece.tuples() for piece in rows.pieces)
            best = heapq.nlargest(_TOP_ROWS, every, key=lambda row: _size(row[2 + measures[0]]))
            kept = QueryRows(rows.name, rows.columns, best)
        chosen.append(dicts_of(kept, results.parts[0].clock))
    yield from (row for turn in zip_longest(*chosen) for row in turn if row is not None)


def _size(value: Any) -> float | int:
    return value if isinstance(value, (int, float)) and value == value else -math.inf


def _asked(query: Mapping[str, Any], axis: dict[str, Any]) -> dict[str, Any]:
    """A line of the table at the top: a query and its largest result."""
    top = query["top"]
    window = f"{tick_text(top['start'], axis)} – {tick_text(top['end'], axis)}" if top else ""
    return {
        "name": query["name"],
        "pattern": query["pattern"],
        "rows": query["rows"],
        "groups": query["groups"] if query["groupedBy"] else None,
        "measure": query["measures"][query["first"]],
        "value": top["value"] if top else "",
        "window": window,
        "group": top["group"] if top else "",
        "sample": query["sample"],
    }


def settings_of(options: Options, **others: object) -> list[tuple[str, str]]:
    """The options of a run that say what it computed, and those that are not as they are by default, as texts by name.

    Examples
    --------
    >>> settings_of(Options(time_unit="ms"), where="speed < 3", balance=False)
    [('sharing', 'dynamic'), ('numbers', 'exact'), ('time-unit', 'ms'), ('where', 'speed < 3')]
    """
    default = Options()
    always = ("sharing", "numbers")
    changed = {
        name: getattr(options, name)
        for name in Options.__dataclass_fields__
        if name in always or (name != "trace" and getattr(options, name) != getattr(default, name))
    }
    changed |= {name: value for name, value in others.items() if value not in (None, False)}
    return [(name.replace("_", "-"), str(value)) for name, value in changed.items()]


def _counters(stats: Mapping[str, Any]) -> Sequence[tuple[str, str, str]]:
    return [
        (f"{stats[key]:,}", caption, meaning)
        for key, caption, meaning in _COUNTERS
        if key in stats and (stats[key] or key not in ("late_events", "merges", "splits"))
    ]


def largest(bits: int) -> str | None:
    """How large the largest count was, in words; None where nothing was counted.

    Examples
    --------
    >>> largest(5), largest(100)
    ('below 32', 'below 1.27e+30 (100 bits)')
    """
    if not bits:
        return None
    text = f"below {short_text(1 << bits)}" if bits > 40 else f"below {1 << bits:,}"
    return text if bits <= 40 else f"{text} ({bits:,} bits)"


def stages(seconds: Mapping[str, float], total: float, meanings: Mapping[str, str]) -> list[dict[str, Any]]:
    """The stages of a run with their share of its time; what lies between them is the last."""
    spent = {**seconds, REST: max(total - sum(seconds.values()), 0.0)}
    whole = max(total, 1e-9)
    return [
        {
            "name": name,
            "seconds": each,
            "share": 100 * each / whole,
            "meaning": meanings[name],
            "colour": REST if name == REST else f"s{place}",
        }
        for place, (name, each) in enumerate(spent.items())
    ]
