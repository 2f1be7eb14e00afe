"""What the checker is given: events as they were read, and the parsed text."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hamlet.checker import matches, trends, values
from hamlet.checker.digits import whole
from hamlet.checker.errors import EvidenceError
from hamlet.checker.policies import Checker
from hamlet.checker.question import Event, Stream
from hamlet.errors import HamletError
from hamlet.input.buffers import as_dicts, filled, from_numpy, from_texts, scalar, to_numpy
from hamlet.input.events import open_events
from hamlet.input.period import period_of
from hamlet.input.ticks import time_in_ticks
from hamlet.language.parser import parse
from hamlet.language.query import Attribute, WorkloadText, atoms
from hamlet.language.schema import Clock, Schema, clock_shown
from hamlet.policies.logs.source import chosen_by, open_source, types_of
from hamlet.policies.syntax.parser import parse_formula
from hamlet.policies.syntax.signature import Signature
from hamlet.streams import Specification
from hamlet.streams.clock import Times, integer_clock, nanoseconds_of
from hamlet.streams.sources import batches_of, clock_of, open_by_name


def trend_checker(text: str, events: Any, evidence: Any, options: Mapping[str, Any]) -> trends.Checker:
    """The checker of a workload over events of any form that `hamlet.run` takes.

    Of these, events without the group's keys and outside the window's reach are not made objects: no definition of
    docs/language.md ("Trends", "Windows and spans") speaks of them.
    """
    workload = parse(text)
    given = {name: value for name, value in options.items() if value is not None}
    since, until, null_keys = (given.pop(name, None) for name in ("since", "until", "null_keys"))
    declared = {a.name for each in workload.declarations for a in each.attributes if a.type.value == "DURATION"}
    source = open_events(events, **given).with_durations(declared)
    schema, clock = source.schema, source.schema.clock
    special = clock.column, schema.type_column
    originals = events if isinstance(events, list | tuple) and not isinstance(events[:1], str) else None
    period, group = _claimed(workload, evidence, clock)
    first, end = period_of(since, until, clock)
    found: list[Event] = []
    for numbers, batch in source.numbered(*period):
        mask = to_numpy(_may_matter(batch, source.schema, period, group, workload))
        kept = batch.filter(from_numpy(mask))
        ticks = kept.column(clock.column).cast(pa.int64()).to_pylist()
        for place, time, row in zip(numbers[mask].tolist(), ticks, as_dicts(kept), strict=True):
            if not first <= time < end:
                continue
            row[clock.column] = clock.present(time)
            order = row.get(schema.order_column) if schema.order_column is not None else None
            found.append(Event(place, time, order, row.get(schema.type_column), row))
    if originals is not None and all(isinstance(each, Mapping) for each in originals):
        for event in found:
            event.columns = {name: event.columns.get(name) for name in originals[event.at]}
    stream = Stream(
        found,
        workload.declarations,
        lambda told: time_in_ticks(told, clock),
        clock.ticks_per_second,
        clock.zone,
        special,
        null_keys != "drop",
        clock.present,
    )
    return trends.Checker(workload, stream)


_Period = tuple[int, int] | tuple[None, None]  # the first tick and the last one
_ALWAYS = None, None


def _claimed(workload: WorkloadText, evidence: Any, clock: Clock) -> tuple[_Period, dict[str, int | str]]:
    """The time and the keys, of plain types, of which evidence speaks; what it claims of them is checked elsewhere."""
    row, told = evidence.get("row"), evidence.get("group")
    query = next((each for each in workload.queries if isinstance(row, dict) and each.name == row.get("query")), None)
    named = {each.name for each in workload.queries}
    if query is None or any(atom.type in named for atom in atoms(query.pattern)):
        return _ALWAYS, {}  # rows of other queries are made of events of other times and groups
    names = {each.name for each in query.group_by if isinstance(each, Attribute)}
    known = told.items() if isinstance(told, dict) and "above" not in evidence else ()  # rows above are of other groups
    plain = {name: value for name, value in known if name in names and type(value) in (int, str)}
    edges = evidence.get("window")
    if query.within is None or query.session or clock.zone is not None or not isinstance(edges, list):
        return _ALWAYS, plain
    longest = 0 if query.longest is None else query.longest.ticks(clock.ticks_per_second)[0]
    try:
        start, end = (time_in_ticks(edge, clock) for edge in edges)
    except (HamletError, ValueError):
        return _ALWAYS, plain
    return (
        start - 2 * longest,
        end - 1 + longest,
    ), plain  # a NOT before the first event looks back as far as a trend may


def _may_matter(
    batch: pa.RecordBatch,
    schema: Schema,
    period: _Period,
    group: Mapping[str, int | str],
    workload: WorkloadText,
) -> pa.BooleanArray:
    """Which events lie in a period and have the values of a group, or lack its attributes by their declaration."""
    ticks = batch.column(schema.clock.column).cast(pa.int64())
    low, high = period if period[0] is not None else (-(1 << 62), 1 << 62)
    found = pc.and_(pc.greater_equal(ticks, scalar(low)), pc.less_equal(ticks, scalar(high)))
    types = batch.column(schema.type_column).cast(pa.string()) if schema.type_column in batch.schema.names else None
    for name, value in group.items():
        column = batch.column(name) if name in batch.schema.names else None
        fits = column is not None and (
            pa.types.is_integer(column.type) if isinstance(value, int) else pa.types.is_string(column.type)
        )
        if not fits or (isinstance(value, int) and abs(value) >= 1 << 62):
            continue
        own = filled(pc.equal(column, scalar(value)), False)
        lacking = [e.name for e in workload.declarations if name not in {a.name for a in e.attributes}]
        if lacking and types is not None:
            own = pc.or_(own, filled(pc.is_in(types, from_texts(lacking)), False))
        found = pc.and_(found, own)
    return found


def value_checker(text: str, events: Any, options: Mapping[str, Any]) -> values.Checker:
    """The checker of a specification over events of any form that `hamlet.streams.run` takes."""
    spec = Specification.parse(text)
    given = {name: value for name, value in options.items() if value is not None}
    source = open_by_name(events, spec.inputs, given)
    clock = clock_of(source)
    times = Times(source.schema.clock.column, given.get("time_unit", "s"), source.name)
    times.clock = clock
    inputs = spec.program.streams[: spec.program.inputs]
    found: list[tuple[int, dict[str, Any]]] = []
    for batch in batches_of(source, spec.inputs):
        ticks = times.ticks(batch.column(times.column)).tolist()
        assert clock is not None
        columns = {
            each.name: [_input_value(one, each) for one in batch.column(each.name).to_pylist()]
            for each in inputs
            if each.name in batch.schema.names
        }
        for place, tick in enumerate(ticks):
            found.append((tick * clock.tick, {name: column[place] for name, column in columns.items()}))
    clock = clock or integer_clock("s")
    start = nanoseconds_of(given["start"], clock) if "start" in given else found[0][0] if found else 0
    return values.Checker(spec.program, found, clock, start)


def match_checker(text: str, events: Any, evidence: Mapping[str, Any], options: Mapping[str, Any]) -> matches.Checker:
    """The checker of a statement with row patterns over tables of any form that `hamlet.sql` takes.

    What a clause reads, and views, are the host's business: it gives the rows that the clause reads.
    """
    from hamlet.output.plain import json_value
    from hamlet.patterns.match.run import StatementRun, host_of, parsed

    dialect = options.get("dialect") or "duckdb"
    script = parsed(text, dialect, "<sql>")
    host = host_of(script, events, files=bool(options.get("allow_files")), missing=options.get("missing_columns"))
    clauses = [(statement, clause) for statement in script.statements for clause in statement.clauses]
    number = evidence.get("clause")
    if type(number) is not int or not 0 <= number < len(clauses):
        raise EvidenceError(f"there is no clause {number!r}")
    chosen, clause = clauses[number]
    for place, statement in enumerate(script.statements):
        run = StatementRun(script, statement, host, script.reports(), f"__hamlet_c{place}", 1_000_000)
        if statement is chosen:
            break
        run.run()
    for each in chosen.clauses[: chosen.clauses.index(clause)]:
        run.settle(each)
    source = run.source_of(clause)
    meaning = run.read(clause, source)
    rows = host.arrow(source).to_pylist()
    run.replaced(clause, "__hamlet_rows", [each.name for each in clause.measures])
    reads = {"partition": meaning.partition, "order": meaning.order, "measures": meaning.measures}
    conditions = {name: each.read for name, each in meaning.conditions.items()}
    if meaning.whole_division and re.search(r"(?<!\*)/(?!\*)", text):
        raise EvidenceError(f"not checked: division as {dialect} has it")
    return matches.Checker(clause, reads, conditions, meaning.within, rows, _around(run.text(), clause), json_value)


def _around(text: str, clause: Any) -> matches.Around | None:
    """What stands around a clause; None where it is more than a projection and a filter."""
    import sqlglot
    from sqlglot import exp

    tree = sqlglot.parse_one(text, dialect="duckdb")
    more = ("joins", "laterals", "group", "distinct", "having", "qualify", "limit", "offset", "with", "with_")
    if not isinstance(tree, exp.Select) or any(tree.args.get(each) for each in more):
        return None
    if tree.find(exp.Subquery, exp.AggFunc, exp.Window):
        return None
    measures = [each.name.lower() for each in clause.measures]
    found: list[str] = []
    columns: list[str] = []
    for each in tree.expressions:
        name = each.alias_or_name.lower()
        columns.append(name)
        if isinstance(each, exp.Star) or name == "*":
            found += measures
        elif name in measures and not isinstance(each, exp.Column):
            return None  # another value under the name of a measure
        elif name in measures:
            found.append(name)
    condition = tree.args.get("where")
    for column in condition.find_all(exp.Column) if condition is not None else ():
        column.set("table", None)
    return matches.Around(found, columns, None if condition is None else condition.this.sql("duckdb"))


def _input_value(value: Any, stream: Any) -> Any:
    """A value of an input; text is read as the input's type."""
    family = getattr(stream.type, "family", "")
    if value is not None and getattr(stream.type, "name", "") == "Bytes":
        return value.hex() if isinstance(value, bytes) else value.lower() or None
    if value is None or family == "String":
        return value
    if family == "Bool" and isinstance(value, str):
        return value.lower() == "true"
    return float(value) if family == "Float" else int(value) if family in ("Int", "UInt") else value


def policy_checker(text: str, signature_text: str, events: Any, open_end: bool, options: Mapping[str, Any]) -> Checker:
    """The checker of a policy over events of any form that `hamlet.policies.run` takes."""
    signature = Signature.parse(signature_text)
    formula, _ = parse_formula(text, "<policy>")
    types = types_of(signature)
    given = dict(options)
    filtered = chosen_by(*(given.pop(name, None) for name in ("where", "since", "until")))
    source = open_source(events, signature, types, filtered=filtered, **given)
    log: list[tuple[int, dict[tuple[str, int], set[tuple[Any, ...]]]]] = []
    for chunk in source.chunks():
        first = len(log)
        log += [(time, {}) for time in chunk.times.tolist()]
        for key, (points, fields) in chunk.relations.items():
            columns = [
                [_value(one, kind) for one in each.to_pylist()] for each, kind in zip(fields, types[key], strict=True)
            ]
            rows = zip(*columns, strict=True) if columns else [()] * len(points)
            for point, row in zip(points.tolist(), rows, strict=False):
                log[first + point][1].setdefault(key, set()).add(row)
    clock = clock_shown(source.time_type)

    def shown(time: int) -> Any:
        if clock is None:
            return time
        moment = clock.present(time)
        if isinstance(moment, float):
            return moment
        return moment.isoformat() if isinstance(moment, datetime.datetime) else str(moment)

    return Checker(formula, types, log, shown, source.per_second, open_end)


def _value(value: Any, kind: str) -> Any:
    """A field of a log as a value of its type; integers beyond 64 bits come as digits or decimals."""
    return whole(str(value)) if kind == "int" and not isinstance(value, int) else value
