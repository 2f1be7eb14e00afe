"""An engine as bytes: what `Engine.save` gives and `Engine.restore` takes.

Contract
--------
**Form.** A head of fixed length: magic, format version, length and BLAKE2b digest of the rest. Then a description in
JSON, behind its length, and the blobs that it describes (`hamlet.saved_columns`; those of the kernels are in the order
and width of the machine: ``_saved.pyx``). Little-endian throughout.
**Saved** are the options, the place in the stream, held events, the types learned so far, strings and partition keys by
number, and the states of open windows. Derived, and made anew: the compiled workload, indexes, groups.
**Refused** are bytes that are cut short or changed, of another format, of another workload (the digest of its canonical
text), or of a version that compiles the workload to other tables. The digest finds damage, not malice: nothing else is
believed either. Bytes made up by an attacker end in a `RestoreError` or in an engine whose numbers are wrong; they
neither run code nor crash, and ask for memory in proportion to their length and to what a state of the workload takes.
**Size.** Proportional to open windows (cells, and single events where a predicate looks back at them), to the
partitions and distinct strings ever seen, and to the events that are held back.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import re
import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from hamlet.classify import Signature
from hamlet.columns import integers
from hamlet.compile import CompiledWorkload
from hamlet.disorder import MOST_TICKS, Place
from hamlet.errors import HamletError, MemoryLimitError, OptionError, RestoreError, one_of
from hamlet.executor import Executor, RunnerState
from hamlet.query import AttributeType
from hamlet.saved_columns import WORD, BlobReader, BlobWriter, Json, described_type, fields, items, text, type_of, whole
from hamlet.schema import Clock, Schema
from hamlet.version import __version__
from hamlet.widening import attribute_type, clock_type, is_clock
from hamlet.workload import Workload

FORMAT = 1
_DESCRIBED = (
    "version",
    "byte_order",
    "workload",
    "queries",
    "options",
    "stream",
    "promise",
    "held",
    "open",
    "schema",
    "strings",
    "executor",
)
MAGIC = b"\x93HAMLET\n"
_HEAD = struct.Struct("<8sIIQ32s")  # magic, format, length of the description, length of all behind the head, digest


@dataclass(frozen=True)
class EngineState:
    """All that an engine is, beside its executor.

    Attributes
    ----------
    options : mapping of str to Any
        `hamlet.engine.Options`, and ``lateness`` and ``late``.
    place : hamlet.disorder.Place
        How far the stream has come, and the events that are held.
    promise : datetime.date, numpy.datetime64 or None
        A time given before the first event.
    open : pyarrow.Table or None
        The last time step of a stream that is fed in order.
    schema : Schema or None
    strings : sequence of str
        By number.
    """

    options: Mapping[str, Any]
    place: Place
    promise: datetime.date | np.datetime64 | None
    open: pa.Table | None
    schema: Schema | None
    strings: Sequence[str]


# ------------------------------------------------------------------------------------------------- writing


def write(workload: Workload, state: EngineState, executor: Executor | None) -> bytes:
    """An engine as bytes.

    Raises
    ------
    OptionError
        If the time of `EngineState.promise` is no time.
    """
    blobs = BlobWriter()
    schema, place = state.schema, state.place
    names = [] if schema is None else _columns_read(workload, schema)
    strings = pa.array([each.encode("utf-8", "surrogatepass") for each in state.strings], pa.large_binary())
    description = {
        "version": __version__,
        "byte_order": sys.byteorder,
        "workload": _fingerprint(workload),
        "queries": list(workload.names),
        "options": _described_options(state.options),
        "stream": [place.events, place.late_events, place.seen, place.promised],
        "promise": _described_promise(state.promise, blobs),
        "held": blobs.table(place.held, names),
        "open": blobs.table(state.open, names),
        "schema": None if schema is None else _described_schema(schema, names),
        "strings": blobs.array(strings),
        "executor": None if executor is None else _described_executor(executor, blobs, names),
    }
    head = json.dumps(description, separators=(",", ":")).encode()
    rest = [head, bytes(-len(head) % WORD), *blobs.parts]
    length = sum(memoryview(part).nbytes for part in rest)
    return b"".join([_HEAD.pack(MAGIC, FORMAT, len(head), length, _digest(len(head), rest)), *rest])


def _digest(head: int, parts: Sequence[Any]) -> bytes:
    digest = hashlib.blake2b(struct.pack("<II", FORMAT, head), digest_size=32)
    for part in parts:
        digest.update(part)
    return digest.digest()


def _fingerprint(workload: Workload) -> str:
    return hashlib.blake2b(str(workload).encode("utf-8", "surrogatepass"), digest_size=32).hexdigest()


def _columns_read(workload: Workload, schema: Schema) -> list[str]:
    """The columns that the engine reads of an event."""
    order = [] if schema.order_column is None else [schema.order_column]
    return list(dict.fromkeys([schema.clock.column, schema.type_column, *order, *workload.attributes]))


def _described_options(options: Mapping[str, Any]) -> Json:
    """Options as JSON has them: numpy's integers as integers, and durations as text."""
    described = dict(options)
    for name, value in options.items():
        if isinstance(value, datetime.timedelta):
            seconds, micros = divmod(value // datetime.timedelta(microseconds=1), 10**6)
            described[name] = f"{seconds}.{micros:06d} s"
        elif isinstance(value, (float, np.integer)):  # of whole ticks
            described[name] = int(value)
    return described


def _described_promise(time: Any, blobs: BlobWriter) -> Json:
    if isinstance(time, np.datetime64):
        return ["numpy", time.dtype.str, int(time.astype(np.int64))]
    if time is not None and not isinstance(time, datetime.date):
        raise OptionError(f"the engine cannot be saved: {time!r} was given to advance(), and is no time")
    return None if time is None else ["python", blobs.keys([(time,)], 1)]


def _described_schema(schema: Schema, names: Sequence[str]) -> Json:
    columns = []
    for name in names:
        if name in schema.columns:
            type, arrow = schema.columns[name], schema.arrow_types.get(name)
            unit = list(schema.units[name]) if name in schema.units else None
            described = None if arrow is None else described_type(arrow)
            columns.append([name, None if type is None else type.value, described, unit])
    return {"closed": schema.closed, "clock": described_type(schema.clock.type), "columns": columns}


def _described_executor(executor: Executor, blobs: BlobWriter, names: Sequence[str]) -> Json:
    described = []
    for state, compiled in zip(executor.saved(), executor.workload.classes, strict=True):
        described.append(
            {
                "matched": state.matched,
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


def _tables_digest(workload: CompiledWorkload) -> str:
    """What the states of the kernels mean: all tables of integers, without the programs of predicates."""
    classes = []
    for each in workload.classes:
        columns = [(name, None if type is None else type.value) for name, type in each.columns]
        tables = [vars(each.tables(number)) for number in range(len(each.parts))]
        classes.append([each.attributes, columns, each.carried, tables])
    text = json.dumps(classes, sort_keys=True, default=lambda _: None)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=32).hexdigest()


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
        self._workload = workload
        description, self._blobs = _opened(data)
        with self.blamed():
            _check_origin(workload, description)
            self._version = text(description["version"])
            self._executor = description["executor"]
            self.state = self._state(description)

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
                "hint: the bytes fit their digest, so something else than engine.save() has made them"
            ) from error

    def load(self, executor: Executor | None) -> None:
        """Bring the executor, compiled for the schema of `state`, to where the saved one was."""
        if executor is None or self._executor is None:
            if executor is not None or self._executor is not None:
                raise ValueError("there are states without a schema")
        else:
            self._load(executor, self._executor)
        self._blobs.end()

    def _load(self, executor: Executor, description: Json) -> None:
        tables, events, signatures, classes = fields(description, "tables", "events", "signatures", "classes")
        if tables != _tables_digest(executor.workload):
            raise RestoreError(
                f"the save was written by Hamlet {self._version}, which runs this workload in another way than Hamlet "
                f"{__version__} does\nhint: restore it with that version"
            )
        states = []
        for compiled, each in zip(executor.workload.classes, items(classes), strict=True):
            matched, keys, kept, kernels = fields(each, "matched", "keys", "kept", "kernels")
            known, types = self._blobs.keys(keys, len(compiled.attributes))
            _check_keys(executor.workload.schema, compiled.attributes, types)
            states.append(
                RunnerState(
                    whole(matched),
                    known,
                    self._table(kept, executor.workload.schema),
                    [self._blobs.blob(kernel) for kernel in items(kernels)],
                )
            )
        executor.load(whole(events), [_signature(each) for each in items(signatures)], states)

    def _state(self, description: Json) -> EngineState:
        options = _options(description["options"])
        schema = _schema(self._workload, description["schema"], options)
        events, late_events, seen, promised = items(description["stream"], 4)
        promise = self._promise(description["promise"])
        held, open = (self._table(description[name], schema) for name in ("held", "open"))
        place = Place(whole(events), whole(late_events), _maybe(seen, MOST_TICKS), _maybe(promised, 2**63 - 1), held)
        strings = self._blobs.array(description["strings"])
        if strings.type != pa.large_binary() or strings.null_count:
            raise ValueError("the strings are of another type")
        texts = [each.decode("utf-8", "surrogatepass") for each in strings.to_pylist()]
        if len(set(texts)) != len(texts):
            raise ValueError("two strings are equal")
        return EngineState(options, place, promise, open, schema, texts)

    def _promise(self, description: Json) -> datetime.date | np.datetime64 | None:
        if description is None:
            return None
        match items(description):
            case ["numpy", str() as unit, int() as ticks] if re.fullmatch(r"[<>]M8\[\d{0,9}[a-z]{1,2}\]", unit):
                time: Any = np.array(whole(ticks, -(2**63)), np.int64).view(np.dtype(unit))[()]
                return time  # type: ignore[no-any-return]
            case ["python", about]:
                ((time,),), _ = self._blobs.keys(about, 1)
                if isinstance(time, datetime.date):
                    return time
        raise ValueError("the promised time is none")

    def _table(self, description: Json, schema: Schema | None) -> pa.Table | None:
        """The next table: events as the engine has them after a push."""
        if description is None:
            return None
        if schema is None:
            raise ValueError("there are events without a schema")
        table: Any = self._blobs.table(description, schema.clock.column)
        names = _columns_read(self._workload, schema)
        types = {**schema.arrow_types, schema.clock.column: schema.clock.type}
        for field in table.schema:
            type, known = attribute_type(field.type), schema.columns.get(field.name)
            if (
                field.name not in names
                or not _is_within(type, known)
                or (type is AttributeType.TIMESTAMP and not field.type.equals(types.get(field.name)))
            ):
                raise ValueError(f"the column {field.name!r} of an event does not fit the types seen so far")
        times = integers(table.column(schema.clock.column).combine_chunks(), schema.clock.column)[0]
        if len(times) and (int(times.min()) < -MOST_TICKS or int(times.max()) > MOST_TICKS):
            raise ValueError("the time of an event is out of bounds")
        order = schema.order_column
        if order is not None and (order not in table.column_names or table.column(order).null_count):
            raise ValueError("an event has no order")
        return table


def _opened(data: bytes | bytearray | memoryview) -> tuple[Json, BlobReader]:
    """The description and the blobs, of bytes that are whole."""
    try:
        view = memoryview(data).toreadonly().cast("B")
    except TypeError:
        raise RestoreError(f"a save is bytes, not a {type(data).__name__}") from None
    if view[: len(MAGIC)] != MAGIC[: len(view)]:
        raise RestoreError("these bytes are not a save of Hamlet\nhint: give what engine.save() returned, unchanged")
    if len(view) < _HEAD.size:
        _refuse_length(len(view), None)
    _, format, head, length, digest = _HEAD.unpack_from(view)
    if format != FORMAT:
        raise RestoreError(
            f"the save has format {format}, and Hamlet {__version__} reads format {FORMAT}\n"
            "hint: restore it with the version that wrote it"
        )
    rest = view[_HEAD.size :]
    if len(rest) != length:
        _refuse_length(len(view), _HEAD.size + length)
    if _digest(head, [rest]) != digest:
        raise RestoreError("the save is damaged: its bytes do not fit their digest\nhint: take an older save")
    if head + -head % WORD > length:
        raise RestoreError("the save is damaged: its description is longer than the save")
    try:
        description = json.loads(bytes(rest[:head]), parse_constant=_refuse_constant)
        fields(description, *_DESCRIBED)
    except (ValueError, RecursionError) as error:
        raise RestoreError(f"the save is damaged: its description cannot be read ({error})") from None
    return description, BlobReader(rest[head + -head % WORD :])


def _refuse_length(found: int, expected: int | None) -> NoReturn:
    wanted = "" if expected is None else f" instead of {expected}"
    raise RestoreError(
        f"the save is not whole: it has {found} bytes{wanted}\nhint: copy it again, or take an older one"
    )


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _check_origin(workload: Workload, description: Json) -> None:
    names = [text(name) for name in items(description["queries"])]
    if description["workload"] != _fingerprint(workload):
        shown = one_of([repr(name) for name in names[:5]], "and") + (", ..." if len(names) > 5 else "")
        raise RestoreError(
            f"the save is of an engine of another workload (with the queries {shown})\n"
            "hint: restore it with the workload that it was saved with; comments and layout may differ, names may not"
        )
    if description["byte_order"] != sys.byteorder:
        raise RestoreError(f"the save was written by a {description['byte_order']}-endian machine, and this is another")


def _options(description: Json) -> dict[str, Any]:
    if not isinstance(description, dict) or not all(
        value is None or isinstance(value, (str, int)) for value in description.values()
    ):
        raise ValueError("the options are no options")
    for name in ("time_column", "type_column", "time_unit"):
        text(description.get(name))
    if description.get("order_column") is not None:
        text(description["order_column"])
    return description


def _maybe(value: Json, most: int) -> int | None:
    return None if value is None else whole(value, -most - 1, most)


def _schema(workload: Workload, description: Json, options: Mapping[str, Any]) -> Schema | None:
    """The types learned so far."""
    if description is None:
        return None
    closed, clock, columns = fields(description, "closed", "clock", "columns")
    arrow = type_of(clock)
    if type(closed) is not bool or not is_clock(arrow) or clock_type(arrow) != arrow:
        raise ValueError("the time column has a type that no time column has")
    found: dict[str, AttributeType | None] = {}
    arrows, units = {}, {}
    for column in items(columns):
        name, attribute, arrow_type, unit = items(column, 4)
        if text(name) in found:
            raise ValueError("two columns have equal names")
        found[name] = None if attribute is None else AttributeType(attribute)
        if arrow_type is not None:
            arrows[name] = type_of(arrow_type)
        if unit is not None:
            units[name] = _unit(unit)
        if found[name] is AttributeType.TIMESTAMP and unit is None:
            raise ValueError(f"the column {name!r} has no unit")
    unit = arrow.unit if pa.types.is_timestamp(arrow) else options["time_unit"]
    clock = Clock(options["time_column"], unit, arrow)
    schema = Schema(found, clock, options["type_column"], options.get("order_column"), closed, units, arrows)
    names = _columns_read(workload, schema)
    if not set(found) <= set(names) or (closed and len(found) < len(names)):
        raise ValueError("the columns are not those that the workload reads")
    return schema


def _unit(description: Json) -> tuple[str, str | None]:
    unit, zone = items(description, 2)
    type_of(["timestamp", unit, zone])  # raises where there are no such timestamps
    return unit, zone


def _signature(description: Json) -> Signature:
    type, accepted = items(description, 2)
    return Signature(text(type), frozenset(whole(each) for each in items(accepted)))


def _check_keys(schema: Schema, attributes: Sequence[str], types: Sequence[Sequence[pa.DataType]]) -> None:
    for name, kinds in zip(attributes, types, strict=True):
        if not all(_is_within(attribute_type(kind), schema.columns.get(name)) for kind in kinds):
            raise ValueError(f"a partition's {name!r} does not fit the types seen so far")


def _is_within(type: AttributeType | None, known: AttributeType | None) -> bool:
    """Whether values of a type can be in a column of a known type; None is a column of NULLs."""
    return type is None or type is known or (type is AttributeType.INT and known is AttributeType.DOUBLE)
