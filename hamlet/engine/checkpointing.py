"""An engine as bytes: what `Engine.save` gives and `Engine.restore` takes.

Contract
--------
**Form.** A frame (`hamlet.checkpoint.frame`).
**Saved** are the options, the place in the stream, held events, the types learned so far, strings and partition keys by
number, and the states of open windows. Derived, and made anew, are the compiled workload, groups and indexes.
**Refused** is what the frame refuses, and a save of a version that compiles the workload to other tables. Bytes that
somebody has made up end in a `RestoreError` or in an engine that counts wrong.
**Size.** In proportion to the open windows (their cells, and single events where a predicate looks back at them), to
the partitions that are known (those alive, and some that no longer are), to the strings ever seen, and to the events
that are held back.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from hamlet.checkpoint import frame
from hamlet.checkpoint.columns import BlobWriter, Json, fields, items, text, whole
from hamlet.checkpoint.stream import (
    Promise,
    check_events,
    check_keys,
    columns_read,
    described_options,
    described_promise,
    described_schema,
    options_of,
    promise_of,
    schema_of,
)
from hamlet.engine.class_runner import RunnerState
from hamlet.engine.executor import Executor
from hamlet.engine.layers.executor import AnyExecutor, LayeredExecutor, UnitRun
from hamlet.engine.live import Part
from hamlet.errors import RestoreError
from hamlet.input.columns import StringPool
from hamlet.language.schema import MOST_TICKS, Schema
from hamlet.planner.classify import Signature
from hamlet.planner.compiled import CompiledWorkload
from hamlet.planner.workload import Workload
from hamlet.runtime.reorder_buffer import Place
from hamlet.version import __version__

_FIELDS = (
    *("options", "stream", "promise", "held", "fed", "schema", "strings"),
    *("executor", "expected", "parts"),
)


@dataclass(frozen=True)
class EngineState:
    """All that an engine is, beside its executor.

    Attributes
    ----------
    options : mapping of str to Any
        `hamlet.engine.options.Options`, and ``lateness`` and ``late``.
    place : hamlet.runtime.reorder_buffer.Place
        How far the stream has come, and the events that are held.
    promise : Promise or None
        A time given before the first event.
    fed : pyarrow.Table or None
        The last time step of a stream that is fed in order.
    schema : Schema or None
    strings : sequence of str
        By number.
    expected : list of list of str
        Of `hamlet.runtime.expected.Expected`.
    """

    options: Mapping[str, Any]
    place: Place
    promise: Promise | None
    fed: pa.Table | None
    schema: Schema | None
    strings: Sequence[str]
    expected: list[list[str]]


@dataclass(frozen=True)
class SavedPart:
    """One engine of a save of several.

    Attributes
    ----------
    workload : Workload
    data : bytes
    names : set of str
        The queries whose rows are given.
    after : int or None
        As of `hamlet.engine.live.Part`.
    """

    workload: Workload
    data: bytes
    names: set[str]
    after: int | None


# ------------------------------------------------------------------------------------------------- writing


def write(workload: Workload, state: EngineState, executor: AnyExecutor | None) -> bytes:
    """An engine as bytes.

    Raises
    ------
    OptionError
        If the promised time is no time.
    """
    blobs = BlobWriter()
    schema, place = state.schema, state.place
    names = [] if schema is None else columns_read(workload, schema)
    strings = pa.array([each.encode("utf-8", "surrogatepass") for each in state.strings], pa.large_binary())
    described = {
        "options": described_options(state.options),
        "stream": [place.events, place.late_events, place.seen, place.promised],
        "promise": described_promise(state.promise, blobs),
        "held": blobs.table(place.held, names),
        "fed": blobs.table(state.fed, names),
        "schema": None if schema is None else described_schema(schema, names),
        "strings": blobs.array(strings),
        "executor": None if executor is None else _described_executor(executor, blobs, names),
        "expected": state.expected,
        "parts": None,
    }
    return frame.write(work_of(workload), described, blobs)


def write_parts(workload: Workload, parts: Sequence[tuple[Part, Workload, bytes]]) -> bytes:
    """Several engines as bytes, each with its workload and its own save."""
    blobs = BlobWriter()
    described = [
        {"text": str(own), "names": sorted(part.names), "after": part.after, "save": blobs.blob(data)}
        for part, own, data in parts
    ]
    return frame.write(work_of(workload), {**dict.fromkeys(_FIELDS), "parts": described}, blobs)


def work_of(workload: Workload) -> frame.Work:
    """What a save of an engine is of."""
    return frame.Work("queries", str(workload))


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=32).hexdigest()


def _described_executor(executor: AnyExecutor, blobs: BlobWriter, names: Sequence[str]) -> Json:
    if isinstance(executor, LayeredExecutor):
        return {"events": executor.events, "units": [_described_unit(run, blobs) for run in executor.units]}
    described = []
    for state, compiled in zip(executor.saved(), executor.workload.classes, strict=True):
        described.append(
            {
                "matched": state.matched,
                "created": state.created,
                "used": blobs.blob(state.used.tobytes()),
                "keys": blobs.keys(state.keys, len(compiled.attributes)),
                "kept": blobs.table(state.kept, names),
                "kernels": [blobs.blob(kernel) for kernel in state.kernels],
            }
        )
    return {
        "tables": _tables_digest(executor.workload),
        "events": executor.events,
        "signatures": [[each.type, sorted(each.accepted)] for each in executor.workload.classifier.signatures],
        "classes": described,
    }


def _described_unit(run: UnitRun, blobs: BlobWriter) -> Json:
    """One of several executors over one stream, with the events and rows that it waits with."""
    names = run.columns_kept()
    held = pa.Table.from_batches(run.held) if run.held else None
    rows = pa.concat_tables(run.rows, promote_options="permissive") if run.rows else None
    strings = [each.encode("utf-8", "surrogatepass") for each in run.strings.texts]
    return {
        "wide": sorted(run.wide),
        "strings": blobs.array(pa.array(strings, pa.large_binary())),
        "held": blobs.table(held, names),
        "rows": blobs.table(rows, names),
        "executor": _described_executor(run.executor, blobs, names),
    }


def _tables_digest(workload: CompiledWorkload) -> str:
    """What the states of the kernels mean: all tables of integers, without the programs of predicates."""
    classes = []
    for each in workload.classes:
        columns = [(name, None if type is None else type.value) for name, type in each.columns]
        tables = [vars(each.tables(number)) for number in range(each.kernel_queries)]
        classes.append([each.attributes, columns, each.carried, tables])
    described = json.dumps(classes, sort_keys=True, default=lambda _: None)
    return _digest(described.encode("utf-8", "surrogatepass"))


# ------------------------------------------------------------------------------------------------- reading


class Saved:
    """A save that has been read.

    Parameters
    ----------
    workload : Workload
    data : bytes-like

    Attributes
    ----------
    state : EngineState
        Of one engine.
    parts : Json
        What is said of several engines (`hamlet.engine.live`), None of one.

    Raises
    ------
    RestoreError
        The bytes are damaged, or not of an engine of this workload.
    """

    def __init__(self, workload: Workload, data: bytes | bytearray | memoryview) -> None:
        self._fields, self._blobs = frame.read(work_of(workload), data, _FIELDS)
        self.parts = self._fields["parts"]
        if self.parts is not None:
            return
        with frame.blamed():
            self._executor = self._fields["executor"]
            options = options_of(self._fields["options"])
            schema = schema_of(workload, self._fields["schema"], options)
            self._names = [] if schema is None else columns_read(workload, schema)
            self.state = self._state(self._fields, options, schema)

    def unpacked(self) -> list[SavedPart]:
        """The engines of a save of several."""
        found = []
        with frame.blamed():
            for each in items(self.parts):
                written, names, after, length = fields(each, "text", "names", "after", "save")
                data = bytes(self._blobs.blob(length))
                after = None if after is None else whole(after, -(2**63))
                queries = {text(name) for name in items(names)}
                found.append(SavedPart(Workload.parse(text(written)), data, queries, after))
            self._blobs.end()
            if not found:
                raise ValueError("there are no engines")
        return found

    def load(self, executor: AnyExecutor | None) -> None:
        """Bring the executor, compiled for the schema of `state`, to where the saved one was."""
        if isinstance(executor, LayeredExecutor):
            self._load_units(executor)
        elif executor is not None:
            self._load(executor, self._executor, self._names)
        elif self._executor is not None:
            raise ValueError("there are states without a schema")
        self._blobs.end()

    def _load_units(self, executor: LayeredExecutor) -> None:
        events, units = fields(self._executor, "events", "units")
        executor.events = whole(events)
        for number, each in enumerate(items(units, len(executor.units))):
            wide, strings, held, rows, described = fields(each, "wide", "strings", "held", "rows", "executor")
            pool = StringPool(_texts(self._blobs.array(strings)))
            run = executor.units[number]
            if run.unit.reads:
                run = executor.replace(number, pool, frozenset(text(name) for name in items(wide)))
            names = run.columns_kept()
            kept = self._events(held, run.schema_kept(), names)
            run.held = [] if kept is None else kept.to_batches()
            waiting = self._events(rows, run.schema_kept(), names, ordered=False)
            run.rows = [] if waiting is None else [waiting]
            self._load(run.executor, described, names)

    def _load(self, executor: Executor, described: Json, names: Sequence[str]) -> None:
        tables, events, signatures, classes = fields(described, "tables", "events", "signatures", "classes")
        if tables != _tables_digest(executor.workload):
            raise RestoreError(
                f"the save was written by Hamlet {self._fields['version']}, which runs this workload in another way "
                f"than Hamlet {__version__} does\nhint: restore it with that version"
            )
        schema, states = executor.workload.schema, []
        for compiled, each in zip(executor.workload.classes, items(classes), strict=True):
            matched, created, used, keys, kept, kernels = fields(
                each, "matched", "created", "used", "keys", "kept", "kernels"
            )
            numbers = np.frombuffer(self._blobs.blob(used), np.uint8)
            known, types = self._blobs.keys(keys, len(compiled.attributes))
            check_keys(types, compiled.attributes, schema)
            if int(numbers.max(initial=0)) > 1 or int(numbers.sum()) != len(known):
                raise ValueError("the numbers of the partitions do not fit them")
            table = self._events(kept, schema, names)
            blobs = [self._blobs.blob(kernel) for kernel in items(kernels)]
            states.append(RunnerState(whole(matched), whole(created, len(known)), known, numbers, table, blobs))
        executor.load(whole(events), [_signature_of(each) for each in items(signatures)], states)

    def _state(self, description: Json, options: Mapping[str, Any], schema: Schema | None) -> EngineState:
        events, late_events, seen, promised = items(description["stream"], 4)
        promise = promise_of(description["promise"], self._blobs)
        held, fed = (self._events(description[name], schema) for name in ("held", "fed"))
        texts = _texts(self._blobs.array(description["strings"]))
        seen, promised = (None if each is None else whole(each, -(2**63)) for each in (seen, promised))
        if seen is not None and abs(seen) > MOST_TICKS:
            raise ValueError("the largest time seen is out of bounds")
        place = Place(whole(events), whole(late_events), seen, promised, held)
        missing, others = items(description["expected"], 2)
        expected = [[text(name) for name in items(each)] for each in (missing, others)]
        return EngineState(options, place, promise, fed, schema, texts, expected)

    def _events(
        self, description: Json, schema: Schema | None, names: Sequence[str] | None = None, *, ordered: bool = True
    ) -> pa.Table | None:
        """The next table of events."""
        if description is None:
            return None
        if schema is None:
            raise ValueError("there are events without a schema")
        table = self._blobs.table(description, schema.clock.column)
        check_events(table, schema, self._names if names is None else names, ordered=ordered)
        return table


def _texts(strings: pa.Array) -> list[str]:
    """Strings by number."""
    if strings.type != pa.large_binary() or strings.null_count:
        raise ValueError("the strings are of another type")
    texts = [each.decode("utf-8", "surrogatepass") for each in strings.to_pylist()]
    if len(set(texts)) < len(texts):
        raise ValueError("two strings are equal")
    return texts


def _signature_of(description: Json) -> Signature:
    type, accepted = items(description, 2)
    return Signature(text(type), frozenset(whole(each) for each in items(accepted)))
