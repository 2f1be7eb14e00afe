"""Events in columns as time-points and relations.

The type of an event is its predicate, the attributes of the signature are columns. A time-point is all events of one
time (and order), or each event. An event of a type that is no predicate belongs to its time-point and to no relation;
one with NULL (or NaN) in an attribute of its predicate is in no relation, and counted.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hamlet.errors import DataError, near_miss
from hamlet.input.buffers import filled, from_numpy, to_numpy
from hamlet.input.moments import seconds
from hamlet.input.ordering import SortKey
from hamlet.input.ticks import refuse_far
from hamlet.input.widening import FRACTION, attribute_type, cast
from hamlet.language.query import AttributeType
from hamlet.policies.logs.reader import LogChunk, Predicate
from hamlet.policies.syntax.signature import PredicateSchema, Signature

_MOST_ROWS = 1 << 15  # that are taken at once
_WANTED = {
    "int": (lambda kind: pa.types.is_integer(kind) or _is_wide(kind), pa.int64(), "integers"),
    "float": (
        lambda kind: attribute_type(kind) in (AttributeType.INT, AttributeType.DOUBLE) or kind == FRACTION,
        pa.float64(),
        "numbers",
    ),
    "string": (lambda kind: _is_text(kind), pa.string(), "text"),
    "bool": (pa.types.is_boolean, pa.bool_(), "true or false"),
}


def _is_wide(kind: pa.DataType) -> bool:
    """Whether a column holds integers that may have more than 64 bits."""
    return bool(pa.types.is_decimal(kind)) and kind.scale == 0


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _is_text(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


class Tables:
    """Turns batches of events into time-points.

    Parameters
    ----------
    signature : Signature
    wanted : container of (str, int)
        The predicates that somebody reads; the columns of these must be there.
    schema : pyarrow.Schema
        Of the batches.
    key : SortKey
        The time and the order column.
    type_column : str
    time_points : {'step', 'event'}
    counted : (int, int), optional
        The first and the last time whose events count in the attributes below; by default all do.

    Attributes
    ----------
    nulls : int
        Events left out of their relation for a NULL.
    matched : int
        Events in relations.
    events : int
    points : int
        Time-points.

    Raises
    ------
    DataError
        With every column that is missing or has another type than the signature says.
    """

    def __init__(
        self,
        signature: Signature,
        wanted: Container[Predicate],
        schema: pa.Schema,
        key: SortKey,
        type_column: str,
        time_points: str = "step",
        *,
        open_columns: bool = False,
        counted: tuple[int, int] | None = None,
    ) -> None:
        self.nulls = self.matched = self.events = self.points = 0
        self._counted = counted
        self._key = key
        self._type = type_column
        self._by_step = time_points == "step"
        self._predicates = [each for each in signature if (each.name, each.arity) in wanted]
        self._open_columns = open_columns
        self._check(schema)
        self._first = 0
        self._held: list[pa.RecordBatch] = []

    @property
    def columns(self) -> list[str]:
        """The attributes that are read, in the order of the signature."""
        return list(dict.fromkeys(name for each in self._predicates for name in each.attributes if name is not None))

    def _check(self, schema: pa.Schema) -> None:
        """Whether the columns are those of the signature."""
        problems = []
        for each in self._predicates:
            for name, kind in zip(each.attributes, each.types, strict=True):
                if name is None:
                    problems.append(
                        f"{each}: the signature names no attribute, and columns are found by name; write "
                        f"{each.name}(attribute: {kind}, ...)"
                    )
                    break
                if name not in schema.names:
                    if not self._open_columns:
                        near = near_miss(name, schema.names)
                        hint = f"did you mean {near!r}?" if near else f"the columns are {', '.join(schema.names)}"
                        problems.append(f"{each}: there is no column {name!r}; {hint}")
                    continue
                found = schema.field(name).type
                fits, _, noun = _WANTED[kind]
                if not fits(found) and not pa.types.is_null(found):
                    problems.append(f"{each}: the column {name!r} is of type {found}, and {kind} means {noun}")
        if problems:
            if any("type double, and int" in each for each in problems):
                problems.append(
                    "hint: pandas makes doubles of integers where some are missing; df.convert_dtypes() keeps them"
                )
            raise DataError(f"{self._key.source}: " + "\n".join(dict.fromkeys(problems)))

    def chunks(self, batches: Iterable[pa.RecordBatch]) -> Iterator[LogChunk]:
        """The time-points of batches in the order of (time, order); the last ones come with `close`."""
        for batch in batches:
            for begin in range(0, batch.num_rows, _MOST_ROWS):  # what is worked out at once takes memory
                yield from self.feed(batch.slice(begin, _MOST_ROWS))
        yield from self.close()

    def feed(self, batch: pa.RecordBatch) -> Iterator[LogChunk]:
        """The time-points that are complete with a batch: all but the last one, or all where each event is one."""
        if not batch.num_rows:
            return
        if not self._by_step:
            yield self._chunk(batch)
            return
        times, orders = self._key.columns_of(batch)
        cut = self._last_step(times, orders)
        if cut == 0 and self._held and self._same(batch):
            self._held.append(batch)
            return
        held, self._held = self._held, [batch.slice(cut)]
        if held and not self._joins(held[-1], batch):
            yield self._chunk(_joined(held))
            held = []
        head = [*held, batch.slice(0, cut)] if cut else held
        if head:
            yield self._chunk(_joined(head))

    def close(self) -> Iterator[LogChunk]:
        """The last time-point."""
        held, self._held = self._held, []
        if held:
            yield self._chunk(_joined(held))

    def _last_step(self, times: npt.NDArray[np.int64], orders: npt.NDArray[np.int64] | None) -> int:
        """Where the last time-point of a batch begins."""
        cut = int(np.searchsorted(times, times[-1]))
        return cut if orders is None else cut + int(np.searchsorted(orders[cut:], orders[-1]))

    def _same(self, batch: pa.RecordBatch) -> bool:
        return self._joins(self._held[-1], batch)

    def _joins(self, held: pa.RecordBatch, batch: pa.RecordBatch) -> bool:
        """Whether a batch begins in the time-point that is held."""
        for name in self._key.names:
            if held.column(name)[held.num_rows - 1].as_py() != batch.column(name)[0].as_py():
                return False
        return True

    def _chunk(self, batch: pa.RecordBatch) -> LogChunk:
        """Complete time-points."""
        times, orders = self._key.columns_of(batch)
        if len(times):
            refuse_far(self._key.time, int(times[0]), int(times[-1]))
        points: npt.NDArray[np.int64]
        if self._by_step:
            new = np.ones(len(times), np.bool_)
            new[1:] = times[1:] != times[:-1]
            if orders is not None:
                new[1:] |= orders[1:] != orders[:-1]
            points = np.cumsum(new) - 1
            stamps = times[new]
        else:
            points, stamps = np.arange(len(times)), times
        inside = self._inside(times)
        self.events += inside[1] - inside[0]
        relations = {}
        typed = self._type in batch.schema.names  # dicts may all be without a type
        types = batch.column(self._type) if typed else pa.nulls(len(batch), pa.string())
        codes, names = _types_of(types)
        for each in self._predicates:
            if each.name in names:
                rows = np.nonzero(codes == names[each.name])[0]
                found = self._relation(each, batch, rows, points, inside)
                if found is not None:
                    relations[each.name, each.arity] = found
        chunk = LogChunk(self._first, np.ascontiguousarray(stamps), relations, 0)
        self._first += len(stamps)
        low, high = self._inside(stamps)
        self.points += high - low
        return chunk

    def _inside(self, times: npt.NDArray[np.int64]) -> tuple[int, int]:
        """From where on, and until where, what has these times counts."""
        if self._counted is None:
            return 0, len(times)
        first, last = self._counted
        return int(np.searchsorted(times, first)), int(np.searchsorted(times, last, side="right"))

    def _relation(
        self,
        each: PredicateSchema,
        batch: pa.RecordBatch,
        rows: npt.NDArray[np.int64],
        points: npt.NDArray[np.int64],
        inside: tuple[int, int],
    ) -> tuple[npt.NDArray[np.int64], tuple[pa.Array, ...]] | None:
        """The tuples of a predicate."""
        if not len(rows):
            return None
        places = from_numpy(rows)
        columns: list[Any] = []
        for name, kind in zip(each.attributes, each.types, strict=True):
            if name is None or name not in batch.schema.names:
                columns.append(pa.nulls(len(rows), _WANTED[kind][1]))
                continue
            column = batch.column(name)
            column = column if len(rows) == batch.num_rows else column.take(places)
            column = seconds(column) if column.type == FRACTION else column
            columns.append(column if _is_wide(column.type) and kind == "int" else cast(column, _WANTED[kind][1], name))
        keep: Any = None
        for column in columns:
            missing = pc.is_null(column, nan_is_null=True)
            if column.null_count or (pa.types.is_floating(column.type) and pc.any(missing).as_py()):
                valid = pc.invert(missing)
                keep = valid if keep is None else pc.and_(keep, valid)
        if keep is not None:
            kept = to_numpy(keep)
            self.nulls += _between(rows[~kept], inside)
            rows, columns = rows[kept], [column.filter(keep) for column in columns]
        self.matched += _between(rows, inside)
        return (points[rows], tuple(columns)) if len(rows) else None


def _between(rows: npt.NDArray[np.int64], inside: tuple[int, int]) -> int:
    """How many of some rows, which ascend, are among those from one on and before another."""
    low, high = np.searchsorted(rows, inside).tolist()
    return int(high - low)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    (found,) = pa.Table.from_batches(batches).unify_dictionaries().combine_chunks().to_batches()
    return found


def _types_of(types: pa.Array) -> tuple[npt.NDArray[np.int64], dict[str, int]]:
    """A number for the type of each event (-1 for NULL), and the numbers by name."""
    coded = types if pa.types.is_dictionary(types.type) else types.dictionary_encode()
    names = {str(name): place for place, name in enumerate(coded.dictionary.to_pylist()) if name is not None}
    return to_numpy(filled(coded.indices.cast(pa.int64()), -1)), names
