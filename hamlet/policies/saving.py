"""A monitor of policies as bytes: what `Monitor.save` gives and `Monitor.restore` takes.

Contract
--------
**Form.** A frame (`hamlet.checkpoint.frame`).
**Saved** are the options, the place in the stream, events that are held, the values of the pool, the time-stamps that
are still needed, and what each operator keeps. Operators are made anew from the policies.
**Refused** is what the frame refuses. Every number is checked against what it points into.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from hamlet.checkpoint import frame
from hamlet.checkpoint.columns import BlobReader, BlobWriter, Json, fields, items, text, whole
from hamlet.checkpoint.stream import described_promise, promise_of
from hamlet.input.input_schema import coded_in, schema_of
from hamlet.input.pushed import batch_of
from hamlet.input.ticks import Lateness
from hamlet.input.widening import widen_clocks
from hamlet.output.digits import decimal_digits, integer_of
from hamlet.policies.analysis.policy import Policy
from hamlet.policies.operators.node import NEVER, Node
from hamlet.policies.plan.evaluation import Evaluation
from hamlet.policies.relations.indexed_store import Pending
from hamlet.policies.relations.relation import Ints, Relation
from hamlet.policies.relations.values import POOLED, Pool
from hamlet.policies.runner import PolicyRunner
from hamlet.policies.saving_verdicts import described_verdicts, load_verdicts
from hamlet.policies.syntax.formula import Type
from hamlet.policies.verdicts.automata import VerdictRunner
from hamlet.runtime.reorder_buffer import Place

if TYPE_CHECKING:
    from hamlet.policies.monitor import Monitor

_FIELDS = ("options", "stream", "promise", "held", "schema", "counts", "serving", "expected")
_LOW = -(2**62)


def write(monitor: Monitor) -> bytes:
    """A monitor as bytes."""
    blobs = BlobWriter()
    place = monitor._buffer.place()
    described = {
        "options": {**asdict(monitor.options), "lateness": _lateness(monitor.options.lateness)},
        "stream": [place.events, place.late_events, place.seen, place.promised],
        "promise": described_promise(monitor._arrivals.promise, blobs),
        "held": _table(place.held, blobs),
        "schema": None if monitor._schema is None else _columns(monitor, blobs),
        "counts": [monitor._counts[name] for name in ("events", "matched_events", "null_events")],
        "serving": _runner(monitor._runner, blobs),
        "expected": monitor._expected.described(),
    }
    return frame.write(_work(monitor.policies), described, blobs)


def _runner(runner: PolicyRunner | VerdictRunner, blobs: BlobWriter) -> Json:
    """What evaluates the policies."""
    if isinstance(runner, PolicyRunner):
        return described_evaluation(runner.evaluation, blobs)
    return described_verdicts(runner, blobs)


def _work(policies: Sequence[Policy]) -> frame.Work:
    """What a save of a monitor is of."""
    told = "\n".join(f"{each.name}: {each}" for each in policies)
    return frame.Work("policies", f"{told}\n{policies[0].signature}")


def _lateness(lateness: Lateness) -> Json:
    """A lateness in ticks, or as text."""
    return lateness if isinstance(lateness, int | float | str) else f"{lateness.total_seconds():f} s"


def _table(table: pa.Table | None, blobs: BlobWriter) -> Json:
    return None if table is None else blobs.table(table, table.column_names)


def _columns(monitor: Monitor, blobs: BlobWriter) -> Json:
    """The columns of the events, as a table without rows; held events that came as rows may know them better."""
    assert monitor._schema is not None
    assert monitor._columns is not None
    known = {field.name: field.type for field in monitor._columns}
    held = monitor._buffer.place().held
    for field in () if held is None else held.schema:
        wider = widen_clocks(known.get(field.name, pa.null()), field.type)
        known[field.name] = field.type if wider is None else wider
    types, coded = monitor._schema.type_column, monitor._schema.coded
    if coded is not None and coded is not coded_in(pa.schema(list(known.items())), types):
        known[types] = pa.int64() if coded else pa.string()
    empty = pa.schema(list(known.items())).empty_table()
    return [monitor._schema.closed, [[name, blobs.array(empty.column(name))] for name in empty.column_names]]


def described_evaluation(evaluation: Evaluation, blobs: BlobWriter) -> Json:
    """What the operators of an evaluation keep, its pool and its time-points."""
    evaluation.forget_values()
    line = evaluation._line
    return {
        "pool": _pool(evaluation.pool),
        "line": [line.base, line.known, line.bound, blobs.array(pa.array(line.times))],
        "nodes": [_node(node, blobs) for node in evaluation.parts],
    }


def _pool(pool: Pool) -> Json:
    """The pooled values: strings as they are, large integers as text."""
    kinds = {str: "s", int: "i"}
    return [[kinds[type(each)], each if isinstance(each, str) else decimal_digits(int(each))] for each in pool.values]


def _node(node: Node, blobs: BlobWriter) -> Json:
    node.settle()
    kept = {name: _relation(each, blobs) for name, each in node.kept.items()}
    return {
        "done": node.done,
        "seen": node.seen,
        "kept": kept,
        "pending": [_relation(each.whole(), blobs) for each in node.pending],
    }


def _relation(relation: Relation, blobs: BlobWriter) -> Json:
    return [
        blobs.array(pa.array(np.ascontiguousarray(each))) for each in (*relation.columns, relation.first, relation.last)
    ]


# ------------------------------------------------------------------------------------------------- reading


def read(
    kind: type[Monitor],
    policies: Sequence[Policy],
    data: bytes | bytearray | memoryview,
    instead: Mapping[str, Any],
) -> Monitor:
    """A monitor from bytes; `instead` are options that it is to have in place of its own.

    Raises
    ------
    RestoreError
    """
    description, blobs = frame.read(_work(policies), data, _FIELDS)
    with frame.blamed():
        return _restored(kind, policies, description, blobs, instead)


def _restored(
    kind: type[Monitor], policies: Sequence[Policy], description: Json, blobs: BlobReader, instead: Mapping[str, Any]
) -> Monitor:
    options = description["options"]
    if type(options) is not dict or not all(isinstance(name, str) for name in options):
        raise ValueError("the options are not valid")
    for name in ("negate", "open_end"):
        if type(options.get(name)) is not bool:
            raise ValueError(f"the option {name} is not valid")
    monitor = kind(policies, **{**options, **instead})
    monitor._arrivals.promise = promise_of(description["promise"], blobs)
    held = blobs.table(description["held"], monitor.options.time_column) if description["held"] is not None else None
    if description["schema"] is not None:
        _adopt(monitor, description["schema"], blobs)
    elif held is not None:
        raise ValueError("there are events without columns")
    _load_stream(monitor, description, held)
    missing, others = items(description["expected"], 2)
    monitor._expected.load(map(text, items(missing)), map(text, items(others)))
    if isinstance(monitor._runner, PolicyRunner):
        load_evaluation(monitor._runner.evaluation, description["serving"], blobs)
    else:
        load_verdicts(monitor._runner, description["serving"], items(description["stream"], 4)[2], blobs)
    blobs.end()
    return monitor


def _adopt(monitor: Monitor, description: Json, blobs: BlobReader) -> None:
    closed, columns = items(description, 2)
    if type(closed) is not bool:
        raise ValueError("the columns are none")
    found = {}
    for column in items(columns):
        name, about = items(column, 2)
        found[text(name)] = blobs.array(about)
    table = pa.table(found)
    if table.num_rows:
        raise ValueError("the columns have rows")
    options = monitor.options
    names = set(table.column_names)
    if not {options.time_column, options.type_column} <= names:
        raise ValueError("the columns lack the time or the type")
    schema = schema_of(table.schema, monitor._key, options.type_column, options.time_unit, closed=closed)
    place = table.schema.get_field_index(options.type_column)
    coded = coded_in(table.schema, options.type_column)
    known = table.schema.set(place, pa.field(options.type_column, pa.string())) if coded else table.schema
    monitor._adopt(replace(schema, coded=coded), known)


def _load_stream(monitor: Monitor, description: Json, held: pa.Table | None) -> None:
    events, late, seen, promised = items(description["stream"], 4)
    seen, promised = (None if each is None else whole(each, _LOW, -_LOW) for each in (seen, promised))
    if held is not None:
        assert monitor._columns is not None
        options = monitor.options
        for field in held.schema:
            place = monitor._columns.get_field_index(field.name)
            if place < 0 or not _narrower(field.type, monitor._columns.field(place).type):
                raise ValueError("the events that are held have other columns")
        batch_of(
            held,
            time_column=options.time_column,
            type_column=options.type_column,
            order_column=options.order_column,
        )
    place = Place(whole(events), whole(late), seen, promised, held)
    monitor._buffer.load(place, None if monitor._schema is None else monitor._schema.clock)
    counts = [whole(each) for each in items(description["counts"], 3)]
    monitor._counts = dict(zip(("events", "matched_events", "null_events"), counts, strict=True))


def _narrower(found: pa.DataType, known: pa.DataType) -> bool:
    """Whether a column of events that came early may have this type."""
    return bool(widen_clocks(known, found) == known)


def load_evaluation(evaluation: Evaluation, description: Json, blobs: BlobReader) -> None:
    """The pool, the time-points, and what the operators keep."""
    pool = evaluation.pool
    own = list(pool.values)
    pooled, about_line, about_nodes = fields(description, "pool", "line", "nodes")
    values = [_pooled(each) for each in items(pooled)]
    if values[: len(own)] != own:
        raise ValueError("the values of the policies are others")
    for value in values[len(own) :]:
        if pool.code(value) != POOLED + len(pool.values) - 1:
            raise ValueError("two values are equal")
    base, known, bound, times = items(about_line, 4)
    line = evaluation._line
    line.base, line.known, line.bound = whole(base), whole(known), whole(bound, -NEVER, NEVER)
    line.times = ints_of(times, blobs)
    evaluation.points = line.known
    if len(line.times) != line.known - line.base or (np.diff(line.times) < 0).any():
        raise ValueError("the time-stamps do not fit")
    if len(line.times) and (int(line.times[0]) <= -NEVER or int(line.times[-1]) > line.bound):
        raise ValueError("a time-stamp is out of bounds")
    nodes = items(about_nodes, len(evaluation.parts))
    for node, about in zip(evaluation.parts, nodes, strict=True):
        _load_node(node, about, blobs, line.known, pool)
    for node in evaluation.parts:
        if node.oldest is not None and max(node.oldest, 0) < line.base:
            raise ValueError("time-stamps are missing")
        if any(child.done < node.seen for child in node.children):
            raise ValueError("an operator is ahead of another")


def _load_node(node: Node, about: Json, blobs: BlobReader, known: int, pool: Pool) -> None:
    done, seen, kept, pending = fields(about, "done", "seen", "kept", "pending")
    node.done, node.seen = whole(done, 0, known), whole(seen, 0, known)
    kinds = node.kept_types()
    if type(kept) is not dict or list(kept) != list(kinds):
        raise ValueError("an operator keeps other things")
    for name, types in kinds.items():
        node.kept[name] = _load_relation(kept[name], types, blobs, known, pool)
    parts = items(pending, len(node.children))
    node.pending = [
        Pending(child.width, _load_relation(each, child.types, blobs, known, pool))
        for each, child in zip(parts, node.children, strict=True)
    ]


def _load_relation(about: Json, types: Sequence[Type | None], blobs: BlobReader, known: int, pool: Pool) -> Relation:
    arrays = [ints_of(each, blobs) for each in items(about, len(types) + 2)]
    *columns, first, last = arrays
    if len({len(each) for each in arrays}) > 1:
        raise ValueError("columns of a relation have different lengths")
    if len(first) and (int(first.min()) < 0 or int(last.max()) > known or (first > last).any()):
        raise ValueError("a period is out of bounds")
    for column, kind in zip(columns, types, strict=True):
        if len(column):
            _check_codes(column, kind, pool)
    return Relation(columns, first, last)


def _check_codes(column: Ints, kind: Type | None, pool: Pool) -> None:
    low, high = int(column.min()), int(column.max())
    if kind is None:
        if low < -2 * NEVER or high > 2 * NEVER:
            raise ValueError("a time is out of bounds")
        return
    if kind == "float":
        return  # bits
    if kind == "bool" and not (low >= 0 and high <= 1):
        raise ValueError("a truth value is none")
    if (kind == "int" and low <= -POOLED) or high >= POOLED + len(pool.values):
        raise ValueError("a value is not in the pool")
    if kind == "string" and low < POOLED:
        raise ValueError("a value is not in the pool")
    wanted = str if kind == "string" else int
    for code in np.unique(column[column >= POOLED]).tolist():
        if type(pool.values[code - POOLED]) is not wanted:
            raise ValueError("a value has another type")


def ints_of(about: Json, blobs: BlobReader) -> Ints:
    """The next array of integers."""
    array = blobs.array(about)
    if array.type != pa.int64() or array.null_count:
        raise ValueError("a column of numbers is none")
    return np.array(array.to_numpy(zero_copy_only=False), np.int64)


def _pooled(about: Json) -> Any:
    kind, told = items(about, 2)
    match kind:
        case "s":
            return text(told)
        case "i":
            return integer_of(text(told))
    raise ValueError("a value has no type")
