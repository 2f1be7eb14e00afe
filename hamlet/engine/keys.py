"""Numbers for partitions, and the values they stand for: what is known of the keys that are alive.

The kernels know partitions by number only. Numbers of partitions without an open window are given anew
(`KeyIndex.forget`), so memory follows the partitions that are alive at one time, however many a stream ever has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hamlet.errors import DataError
from hamlet.input.buffers import filled, from_numpy, to_numpy
from hamlet.input.columns import Int64Array, as_dictionary, column, doubles, integers, validity
from hamlet.kernel.keys import KeyTable
from hamlet.language.schema import duration, nanoseconds, timestamp
from hamlet.output.components import Values

Key = tuple[Any, ...]
Bytes = npt.NDArray[np.uint8]

_FEW = 1 << 14  # keys and values that are kept without a look at which are alive
_MANY = 8  # times as many values as rows are not copied for these rows
_VALUE_BYTES = 150  # of a value that is no integer, in a dict and a list; measured


class _Values:
    """The values of one partition attribute as 64-bit codes.

    Integers are their own codes. From the first value of another type on, all values are numbered as Python objects;
    equal objects (1 and 1.0) are one value, the first of them.
    """

    def __init__(self, name: str, *, seconds: bool = False) -> None:
        self.name = name
        self._seconds = seconds
        self.plain = True
        self.objects: list[Any] = []
        self._numbers: dict[Any, int] = {}
        self._spare: list[int] = []
        self._snapshot: list[Any] | None = None
        self._dictionary: tuple[pa.Array, Int64Array, Bytes | None] | None = None  # the last one, its codes

    def __len__(self) -> int:
        return len(self._numbers)

    def code(self, value: Any) -> int:
        """The code of a value other than NULL."""
        if self.plain:
            return int(value)
        number = self._numbers.get(value)
        if number is None:
            number = self._spare.pop() if self._spare else len(self.objects)
            self._numbers[value] = number
            self._snapshot = None
            if number == len(self.objects):
                self.objects.append(value)
            else:
                self.objects[number] = value
        return number

    def encode(self, array: pa.Array | None, rows: int, chosen: npt.NDArray[np.int32] | None) -> Any:
        """Codes of a column and 1 where there is a value; of rows that are not chosen they may be anything."""
        if array is None or pa.types.is_null(array.type):
            return np.zeros(rows, np.int64), np.zeros(rows, np.uint8)
        if self.plain and pa.types.is_integer(array.type):
            if pa.types.is_int32(array.type) and not array.null_count:
                return to_numpy(array), None
            return integers(array, self.name)
        if chosen is None:
            return self._encoded(array)
        codes, valid = np.zeros(rows, np.int64), np.zeros(rows, np.uint8)
        codes[chosen], found = self._encoded(array.take(from_numpy(chosen)))
        valid[chosen] = 1 if found is None else found
        return codes, valid

    def _encoded(self, array: pa.Array) -> Any:
        if pa.types.is_floating(array.type):  # -0.0 is 0.0 and NaN is NULL
            data, valid = doubles(array)
            array = from_numpy(data + 0.0, missing=None if valid is None else valid == 0)
        array = as_dictionary(array, _FEW)
        places = to_numpy(filled(array.indices, 0))
        valid = validity(array)
        codes, present = self._of_dictionary(array.dictionary)
        if present is not None:
            valid = present[places] if valid is None else valid & present[places]
        return codes[places], valid

    def _of_dictionary(self, dictionary: pa.Array) -> tuple[Int64Array, Bytes | None]:
        """The codes of the values of a dictionary, which often is that of the batch before."""
        if self._dictionary is None or not self._dictionary[0].equals(dictionary):
            values = _objects(dictionary, self.name)
            codes = np.array([0 if value is None else self.code(value) for value in values] or [0], np.int64)
            self._dictionary = dictionary, codes, validity(dictionary)
        return self._dictionary[1], self._dictionary[2]

    def values(self, codes: Int64Array, valid: Bytes) -> list[Any]:
        """The values of some codes."""
        if self.plain:
            found: list[Any] = codes.tolist()
        else:
            objects = self.objects
            found = [objects[code] for code in codes.tolist()] if objects else [None] * len(codes)
        if not valid.all():
            found = [value if there else None for value, there in zip(found, valid.tolist(), strict=True)]
        return found

    @property
    def snapshot(self) -> list[Any]:
        """The values by code, a list that never changes."""
        if self._snapshot is None:
            self._snapshot = [self.shown(code) for code in range(len(self.objects))]
        return self._snapshot

    def shown(self, code: int) -> Any:
        """The value of a code as rows have it: times with a fraction, which are durations here, as seconds."""
        value = self.objects[code]
        return nanoseconds(value) / 1_000_000_000 if self._seconds and value is not None else value

    def forget(self, codes: Int64Array, valid: Bytes) -> None:
        """Keep the values of these codes only."""
        used = np.zeros(len(self.objects), np.bool_)
        used[codes[valid != 0]] = True
        for number in np.nonzero(~used)[0].tolist():
            if self._numbers.get(self.objects[number]) == number:
                del self._numbers[self.objects[number]]
                self._spare.append(number)
                self.objects[number] = None
        self._dictionary = self._snapshot = None


class KeyIndex:
    """Numbers for partitions: tuples of attribute values, NULL an ordinary value.

    Attributes
    ----------
    attributes : tuple of str
    version : int
        Another one whenever a number stands for another key than before.

    Parameters
    ----------
    attributes : sequence of str
    seconds : str, optional
        The column of times, where these have a fraction.
    """

    def __init__(self, attributes: Sequence[str], seconds: str | None = None) -> None:
        self.attributes = tuple(attributes)
        self._values = [_Values(name, seconds=name == seconds) for name in self.attributes]
        self._table = KeyTable(len(self.attributes))
        self._forgotten = 0  # times that keys were forgotten
        self._limit = _FEW
        self._tables: dict[int, tuple[tuple[int, int], Values]] = {}
        self._lists: dict[int, tuple[tuple[int, int], list[Any]]] = {}

    def encode(self, batch: pa.RecordBatch, chosen: npt.NDArray[np.int32] | None = None) -> npt.NDArray[np.int32]:
        """The partition number of each row, or of each that is chosen.

        Parameters
        ----------
        batch : pyarrow.RecordBatch
        chosen : int32 array of shape (m,), optional
            Rows, each at most once.
        """
        rows = batch.num_rows
        columns = []
        for place, values in enumerate(self._values):
            array = column(batch, values.name)
            if values.plain and array is not None and not _is_plain(array.type):
                self._number_objects(place)
            columns.append(values.encode(array, rows, chosen))
        return self._table.encode(columns, chosen, rows)

    def in_bytes(
        self, batch: pa.RecordBatch, classes: npt.NDArray[np.int8], matched: int
    ) -> npt.NDArray[np.int8] | None:
        """The partition number of each row as a byte, -1 where the class of the row is negative.

        None where that is not as good: where keys may be new, or are many, or of more than one column.
        """
        if not self.attributes:
            return classes >> 7 if self._table.count else None
        [values, *others] = self._values
        array = column(batch, values.name)
        if others or array is None or array.null_count or (values.plain and not _is_plain(array.type)):
            return None
        if not values.plain and matched < batch.num_rows:
            return None  # values of rows that are left out are not numbered
        codes, valid = values.encode(array, batch.num_rows, None)
        return None if valid is not None else self._table.in_bytes(codes, classes, matched)

    def number(self, key: Key) -> int:
        """The number of a partition; a new one where it has not been seen."""
        for place, value in enumerate(key):
            if self._values[place].plain and value is not None and type(value) is not int:
                self._number_objects(place)
        coded = zip(self._values, key, strict=True)
        return self._table.number([None if value is None else values.code(value) for values, value in coded])

    def add(self, other: KeyIndex) -> None:
        """Number the partitions of another index of the same attributes too."""
        numbers, columns = other.numbers, []
        for place, values in enumerate(self._values):
            codes, valid, objects = other.codes(place, numbers)
            if values.plain and objects is not None:
                self._number_objects(place)
            if not values.plain:
                there = zip(other.values(place, numbers), valid.tolist(), strict=True)
                codes = np.array([values.code(value) if known else 0 for value, known in there], np.int64)
            columns.append((codes, valid))
        self._table.encode(columns, None, len(numbers))

    def _number_objects(self, place: int) -> None:
        """From now on values of an attribute are more than integers."""
        values, numbers = self._values[place], self._table.numbers()
        codes, valid = self._table.codes(place, numbers)
        values.plain = False
        known = zip(codes.tolist(), valid.tolist(), strict=True)
        numbered = [values.code(value) if there else 0 for value, there in known]
        self._table.recode(place, numbers, np.array(numbered, np.int64))

    # ---------------------------------------------------------------------------------------- what numbers stand for

    @property
    def size(self) -> int:
        """All numbers are below."""
        return self._table.size

    @property
    def created(self) -> int:
        """Partitions numbered so far; one that was forgotten counts anew."""
        return self._table.created

    @property
    def version(self) -> tuple[int, int]:
        """Another one whenever a number stands for another key than before."""
        return self._forgotten, self._table.created

    @property
    def numbers(self) -> Int64Array:
        """The numbers of the partitions that are known, ascending."""
        return self._table.numbers()

    @property
    def keys(self) -> Mapping[int, Key]:
        """The partitions that are known, by number, ascending."""
        numbers = self._table.numbers()
        return dict(zip(numbers.tolist(), self.tuples(numbers), strict=True))

    def key(self, number: int) -> Key:
        """The partition of a number."""
        return self.tuples(np.array([number], np.int64))[0]

    def tuples(self, numbers: Int64Array, places: Sequence[int] | None = None) -> list[Key]:
        """The values of some attributes (by default all) of partitions."""
        chosen = range(len(self.attributes)) if places is None else places
        if not chosen:
            return [()] * len(numbers)
        return list(zip(*(self.values(place, numbers) for place in chosen), strict=True))

    def listed(self, place: int) -> list[Any]:
        """The values of one attribute by number of the partition; the same list while no key comes or goes."""
        found = self._lists.get(place)
        if found is None or found[0] != self.version:
            found = self._lists[place] = self.version, self._table_of(place).tolist()
        return found[1]

    def values(self, place: int, numbers: Int64Array) -> list[Any]:
        """The values of one attribute of partitions."""
        return self._values[place].values(*self._table.codes(place, numbers))

    def codes(self, place: int, numbers: Int64Array) -> tuple[Int64Array, Bytes, list[Any] | None]:
        """Codes of one attribute's values, 1 where there is one, and what codes stand for (None: themselves)."""
        values = self._values[place]
        return *self._table.codes(place, numbers), None if values.plain else values.objects

    def column(self, place: int, numbers: npt.NDArray[np.int32]) -> Values:
        """The values of one attribute of partitions; they stay what they are when the partitions are forgotten."""
        if self.size <= _MANY * len(numbers):
            return replace(self._table_of(place), places=numbers)
        codes, valid, objects = self.codes(place, numbers.astype(np.int64))
        there = None if valid.all() else valid != 0
        if objects is None:
            return Values(codes, there)
        if _MANY * len(codes) < len(objects):
            used, codes = np.unique(codes, return_inverse=True)
            return Values(codes, there, [self._values[place].shown(code) for code in used.tolist()])
        return Values(codes, there, self._values[place].snapshot)

    def _table_of(self, place: int) -> Values:
        """The values of one attribute of all partitions, by number; made once for partitions that stay the same."""
        found = self._tables.get(place)
        if found is None or found[0] != self.version:
            numbers = self.numbers
            codes, valid = np.zeros(self.size, np.int64), np.zeros(self.size, np.bool_)
            codes[numbers], valid[numbers], objects = self.codes(place, numbers)
            snapshot = None if objects is None else self._values[place].snapshot
            found = self.version, Values(codes, None if valid.all() else valid, snapshot)
            self._tables[place] = found
        return found[1]

    # --------------------------------------------------------------------------------------------- keys come and go

    @property
    def crowded(self) -> bool:
        """Whether it is time to look which partitions are still alive."""
        return max(self._table.count, *map(len, self._values)) > self._limit if self._values else False

    def forget(self, live: Bytes) -> None:
        """Forget all partitions but the live ones: 1 by their number."""
        self._forgotten += 1
        self._table.forget(live)
        most = self._table.count
        for place, values in enumerate(self._values):
            if not values.plain:
                values.forget(*self._table.codes(place, self._table.numbers()))
                most = max(most, len(values))
        self._limit = max(_FEW, 2 * most)

    def load(self, keys: Sequence[Key], used: Bytes, created: int) -> None:
        """Take over the keys of another index; this one is new.

        Parameters
        ----------
        keys : sequence of tuple
        used : uint8 array of shape (size,)
            1 for the numbers of these keys.
        created : int
        """
        columns = []
        for place, values in enumerate(self._values):
            column = [key[place] for key in keys]
            values.plain = all(value is None or type(value) is int for value in column)
            codes = [0 if value is None else values.code(value) for value in column]
            valid = [value is not None for value in column]
            columns.append((np.array(codes, np.int64), np.array(valid, np.uint8)))
        self._table.load(columns, used, created)
        self._limit = max(_FEW, 2 * len(keys))

    @property
    def nbytes(self) -> int:
        """Bytes of the partitions; of values other than integers an estimate."""
        if not self.attributes:
            return 0
        return self._table.nbytes + _VALUE_BYTES * sum(len(values.objects) for values in self._values)


def created(indexes: Sequence[KeyIndex]) -> int:
    """Partitions that indexes of the same attributes have numbered so far (`KeyIndex.created`), common ones once."""
    if len(indexes) == 1:
        return indexes[0].created
    together = KeyIndex(indexes[0].attributes)
    forgotten = 0
    for each in indexes:
        together.add(each)
        forgotten += each.created - len(each.numbers)
    return together.created + forgotten


def _is_plain(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_integer(arrow) or pa.types.is_null(arrow))


def _objects(array: pa.Array, name: str) -> list[Any]:
    """The values of a key column as Python objects."""
    if not (pa.types.is_timestamp(array.type) or pa.types.is_duration(array.type)):
        try:
            return array.to_pylist()  # type: ignore[no-any-return]
        except (OverflowError, ValueError) as error:
            raise DataError(f"column '{name}' holds a date outside the years 1 to 9999") from error
    if pa.types.is_duration(array.type):
        return [
            None if tick is None else duration(tick, array.type.unit) for tick in array.cast(pa.int64()).to_pylist()
        ]
    unit, zone = array.type.unit, array.type.tz
    ticks = array.cast(pa.int64()).to_pylist()
    if unit == "ns" and any(tick is not None and tick % 1000 for tick in ticks):
        raise DataError(
            f"column '{name}' holds nanoseconds, which no key can have; cut them to microseconds (timestamp[us])"
        )
    return [None if tick is None else timestamp(tick, unit, zone) for tick in ticks]
