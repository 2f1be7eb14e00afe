"""An engine as bytes: what `Engine.save` gives and `Engine.restore` takes.

Contract
--------
**Form.** A head of fixed length: magic, format, lengths, and the BLAKE2b digest of all that is behind it. Then a
description in JSON, and the blobs that it describes (`hamlet.checkpoint.columns`). Little-endian, but for the states of
the kernels, which are in the order of the machine (``checkpoint.pyx``).
**Saved** are the options, the place in the stream, held events, the types learned so far, strings and partition keys by
number, and the states of open windows. Derived, and made anew, are the compiled workload, groups and indexes.
**Refused** are bytes that are cut short or changed, of another format, of another workload (by the digest of its
canonical text), or of a version that compiles the workload to other tables. The digest finds damage, not malice, so
nothing else is believed either: bytes that somebody has made up end in a `RestoreError` or in an engine that counts
wrong. They run no code, and ask for memory in proportion to their length and to what a state of the workload takes.
**Size.** In proportion to the open windows (their cells, and single events where a predicate looks back at them), to
the partitions that are known (those alive, and some that no longer are), to the strings ever seen, and to the events
that are held back.
"""

from __future__ import annotations

import hashlib
import json
import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from hamlet.checkpoint.columns import WORD, BlobReader, BlobWriter, Json, fields, items, text, whole
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
from hamlet.engine.reorder_buffer import Place
from hamlet.errors import HamletError, MemoryLimitError, RestoreError, one_of
from hamlet.input.columns import StringPool
from hamlet.input.ticks import MOST_TICKS
from hamlet.language.schema import Schema
from hamlet.planner.classify import Signature
from hamlet.planner.compiled import CompiledWorkload
from hamlet.planner.workload import Workload
from hamlet.version import __version__

FORMAT = 9
MAGIC = b"\x93HAMLET\n"
HEAD = struct.Struct("<8sIIQ32s")  # magic, format, length of the description, length of all behind the head, digest
_DESCRIBED = (
    *("version", "byte_order", "workload", "queries", "options", "stream"),
    *("promise", "held", "fed", "schema", "strings", "executor"),
)


@dataclass(frozen=True)
class EngineState:
    """All that an engine is, beside its executor.

    Attributes
    ----------
    options : mapping of str to Any
        `hamlet.engine.options.Options`, and ``lateness`` and ``late``.
    place : hamlet.engine.reorder_buffer.Place
        How far the stream has come, and the events that are held.
    promise : datetime.date, numpy.datetime64 or None
        A time given before the first event.
    fed : pyarrow.Table or None
        The last time step of a stream that is fed in order.
    schema : Schema or None
    strings : sequence of str
        By number.
    """

    options: Mapping[str, Any]
    place: Place
    promise: Promise | None
    fed: pa.Table | None
    schema: Schema | None
    strings: Sequence[str]


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
    description = {
        "version": __version__,
        "byte_order": sys.byteorder,
        "workload": _digest(str(workload).encode("utf-8", "surrogatepass")),
        "queries": list(workload.names),
        "options": described_options(state.options),
        "stream": [place.events, place.late_events, place.seen, place.promised],
        "promise": described_promise(state.promise, blobs),
        "held": blobs.table(place.held, names),
        "fed": blobs.table(state.fed, names),
        "schema": None if schema is None else described_schema(schema, names),
        "strings": blobs.array(strings),
        "executor": None if executor is None else _described_executor(executor, blobs, names),
    }
    head = json.dumps(description, separators=(",", ":")).encode()
    return sealed(head, blobs.parts)


def sealed(head: bytes, blobs: Sequence[Any], format: int = FORMAT) -> bytes:
    """A save of a description and its blobs."""
    rest = [head, bytes(-len(head) % WORD), *blobs]
    length = sum(memoryview(part).nbytes for part in rest)
    return b"".join([HEAD.pack(MAGIC, format, len(head), length, _seal(len(head), rest)), *rest])


def _seal(head: int, parts: Sequence[Any]) -> bytes:
    digest = hashlib.blake2b(head.to_bytes(8, "little"), digest_size=32)
    for part in parts:
        digest.update(part)
    return digest.digest()


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

    Raises
    ------
    RestoreError
        The bytes are damaged, or not of an engine of this workload.
    """

    def __init__(self, workload: Workload, data: bytes | bytearray | memoryview) -> None:
        description, self._blobs = _opened(data)
        with self.blamed():
            _check_origin(workload, description)
            self._version = text(description["version"])
            self._executor = description["executor"]
            options = options_of(description["options"])
            schema = schema_of(workload, description["schema"], options)
            self._names = [] if schema is None else columns_read(workload, schema)
            self.state = self._state(description, options, schema)

    @staticmethod
    @contextmanager
    def blamed() -> Iterator[None]:
        """Whatever goes wrong inside is the fault of the bytes."""
        try:
            yield
        except (RestoreError, MemoryLimitError):
            raise
        except MemoryError:
            raise RestoreError("there is not enough memory to restore the save") from None
        except (HamletError, ArithmeticError, ValueError, pa.ArrowException) as error:
            raise RestoreError(
                f"the save cannot be restored: {error}\n"
                "hint: its bytes fit their digest, so something else than engine.save() has made them"
            ) from error

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
                f"the save was written by Hamlet {self._version}, which runs this workload in another way than Hamlet "
                f"{__version__} does\nhint: restore it with that version"
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
        return EngineState(options, place, promise, fed, schema, texts)

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


def _opened(data: bytes | bytearray | memoryview) -> tuple[Json, BlobReader]:
    """The description and the blobs, of bytes that are whole."""
    try:
        view = memoryview(data).toreadonly().cast("B")
    except TypeError:
        raise RestoreError(f"a save is bytes, not a {type(data).__name__}") from None
    if view[: len(MAGIC)] != MAGIC[: len(view)]:
        raise RestoreError("these bytes are not a save of Hamlet\nhint: give what engine.save() returned, unchanged")
    if len(view) < HEAD.size:
        raise _cut(len(view), "of at least", HEAD.size)
    _, format, length, behind, digest = HEAD.unpack_from(view)
    if format != FORMAT:
        raise RestoreError(
            f"the save has format {format}, and Hamlet {__version__} reads format {FORMAT}\n"
            "hint: restore it with the version that wrote it"
        )
    rest = view[HEAD.size :]
    if len(rest) != behind:
        raise _cut(len(view), "instead of", HEAD.size + behind)
    if _seal(length, [rest]) != digest:
        raise RestoreError("the save is damaged: its bytes do not fit their digest\nhint: take an older save")
    try:
        description = json.loads(bytes(rest[:length]))
        fields(description, *_DESCRIBED)
    except (ValueError, RecursionError) as error:
        raise RestoreError(f"the save is damaged: its description cannot be read ({error})") from None
    return description, BlobReader(rest[length + -length % WORD :])


def _cut(found: int, word: str, wanted: int) -> RestoreError:
    return RestoreError(
        f"the save is not whole: it has {found} bytes {word} {wanted}\nhint: copy it again, or take an older one"
    )


def _check_origin(workload: Workload, description: Json) -> None:
    names = [repr(text(name)) for name in items(description["queries"])]
    if description["workload"] != _digest(str(workload).encode("utf-8", "surrogatepass")):
        shown = one_of(names, "and") if len(names) < 6 else ", ".join([*names[:5], "..."])
        raise RestoreError(
            f"the save is of an engine of another workload (with the queries {shown})\n"
            "hint: restore it with the workload that it was saved with; comments and layout may differ, names may not"
        )
    if description["byte_order"] != sys.byteorder:
        raise RestoreError("the save is of a machine with another order of bytes\nhint: restore it on such a machine")


def _signature_of(description: Json) -> Signature:
    type, accepted = items(description, 2)
    return Signature(text(type), frozenset(whole(each) for each in items(accepted)))
