"""Partial rows as bytes: what tasks exchange before the partitions of a group are merged.

A partial row is ``(query, window, group, components)``. The group's bytes sort as the group does (values
ascending, NULL first) and are equal exactly where the groups are, so a sort or a hash over plain binary columns orders,
routes and merges rows exactly, whatever the attributes' types. The components are integers of any size, which no column
type of Arrow or Spark holds, hence bytes as well.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hamlet.language.schema import duration, timestamp
from hamlet.output.rows import GroupRows
from hamlet.planner.aggregates import SCALED, SETS, Component, ComponentKey, merged

SCHEMA = pa.schema(
    [
        pa.field("query", pa.int32(), nullable=False),  # place in the workload
        pa.field("window", pa.int64(), nullable=False),  # window number
        pa.field("group", pa.binary(), nullable=False),
        pa.field("components", pa.binary(), nullable=False),
    ]
)

Group = tuple[Any, ...]

_NULL, _VALUE = b"\x00", b"\x01"
_END = b"\x00"  # of a string; a zero byte inside it becomes _ZERO, which is above every byte that may follow _END
_ZERO = b"\x00\xff"
_TOP = np.uint64(1 << 63)
_WIDE = Context(prec=100, Emin=MIN_EMIN, Emax=MAX_EMAX)  # exact for decimals of 256 bits
_DECIMAL_BYTES = 32
_MIDDLE = 1 << (8 * _DECIMAL_BYTES - 1)
_LENGTH = struct.Struct("<I")
_INT = struct.Struct("<?q")
_DOUBLE = struct.Struct("<?d")
_SCALED = struct.Struct("<dq")


# ---------------------------------------------------------------------------------------------------- groups


class GroupCodec:
    """Groups of one query to bytes and back.

    Parameters
    ----------
    types : sequence of pyarrow.DataType
        Of the grouping attributes, in order, as the engine reads them; a dictionary stands for its values.
    """

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        self._types = [each.value_type if pa.types.is_dictionary(each) else each for each in types]
        self._encoded: dict[Group, bytes] = {}
        self._decoded: dict[bytes, Group] = {}

    def encode(self, groups: Sequence[Group]) -> list[bytes]:
        """The bytes of each group; a group that has been seen is looked up."""
        fresh = [group for group in dict.fromkeys(groups) if group not in self._encoded]
        if fresh:
            encoded = [b""] * len(fresh)
            for place, type in enumerate(self._types):
                column = _encoder(type)(pa.array([group[place] for group in fresh], type))
                encoded = [before + value for before, value in zip(encoded, column, strict=True)]
            self._encoded.update(zip(fresh, encoded, strict=True))
        return [self._encoded[group] for group in groups]

    def decode(self, encoded: bytes) -> Group:
        """The group of some bytes, its values as `hamlet.engine.keys.KeyIndex` has them."""
        group = self._decoded.get(encoded)
        if group is None:
            place, values = 0, []
            for type in self._types:
                value, place = _decoded(type, encoded, place)
                values.append(value)
            group = self._decoded[encoded] = tuple(values)
        return group


def _encoder(type: pa.DataType) -> Callable[[pa.Array], list[bytes]]:
    if _is_text(type):
        return _encode_text
    if pa.types.is_decimal(type):
        return _encode_decimal
    return _encode_double if pa.types.is_floating(type) else _encode_int


def _is_text(type: pa.DataType) -> bool:
    return bool(pa.types.is_string(type) or pa.types.is_large_string(type))


def _encode_text(array: pa.Array) -> list[bytes]:
    return [
        _NULL if text is None else _VALUE + text.encode().replace(b"\x00", _ZERO) + _END for text in array.to_pylist()
    ]


def _encode_decimal(array: pa.Array) -> list[bytes]:
    scale = array.type.scale
    return [
        _NULL
        if number is None
        else _VALUE + (int(number.scaleb(scale, _WIDE)) + _MIDDLE).to_bytes(_DECIMAL_BYTES, "big")
        for number in array.to_pylist()
    ]


def _encode_double(array: pa.Array) -> list[bytes]:
    """Bits that sort as the doubles do: negative ones turned round, positive ones moved above them."""
    values = array.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0  # no negative zero
    bits = values.view(np.uint64)
    return _with_null(array, np.where(bits >> np.uint64(63), ~bits, bits ^ _TOP))


def _encode_int(array: pa.Array) -> list[bytes]:
    """Integers, truth values, dates and timestamps."""
    if pa.types.is_date32(array.type):
        array = array.cast(pa.int32())
    values = array.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    return _with_null(array, values.view(np.uint64) ^ _TOP)


def _with_null(array: pa.Array, words: npt.NDArray[np.uint64]) -> list[bytes]:
    raw = words.astype(">u8").tobytes()
    return [
        _VALUE + raw[8 * row : 8 * row + 8] if there else _NULL
        for row, there in enumerate(array.is_valid().to_pylist())
    ]


def _decoded(type: pa.DataType, encoded: bytes, place: int) -> tuple[Any, int]:
    """The value that starts at a place, and where the next one starts."""
    if encoded[place : place + 1] == _NULL:
        return None, place + 1
    place += 1
    if _is_text(type):
        end = encoded.index(_END, place)
        while encoded[end : end + 2] == _ZERO:
            end = encoded.index(_END, end + 2)
        return encoded[place:end].replace(_ZERO, b"\x00").decode(), end + 1
    if pa.types.is_decimal(type):
        end = place + _DECIMAL_BYTES
        unscaled = int.from_bytes(encoded[place:end], "big") - _MIDDLE
        return Decimal(unscaled).scaleb(-type.scale, _WIDE), end
    word = int.from_bytes(encoded[place : place + 8], "big")
    if pa.types.is_floating(type):
        bits = word ^ int(_TOP) if word >> 63 else ~word & (2 * int(_TOP) - 1)
        return struct.unpack("<d", bits.to_bytes(8, "little"))[0], place + 8
    if pa.types.is_timestamp(type):
        return timestamp(word - int(_TOP), type.unit, type.tz), place + 8
    if pa.types.is_duration(type):
        return duration(word - int(_TOP), type.unit), place + 8
    number = pa.array([word - int(_TOP)])
    if pa.types.is_date32(type):
        number = number.cast(pa.int32())
    return number.cast(type)[0].as_py(), place + 8


# ------------------------------------------------------------------------------------------------ components


def encode_components(keys: Sequence[ComponentKey], columns: Sequence[Sequence[Component]]) -> list[bytes]:
    """The components of each row as bytes.

    Parameters
    ----------
    keys : sequence of ComponentKey
        The query's layout.
    columns : sequence of sequences, shape (components, rows)
    """
    return [b"".join(row) for row in zip(*map(_encode_column, keys, columns), strict=True)]


def _encode_column(key: ComponentKey, column: Sequence[Component]) -> list[bytes]:
    if key.kind in SCALED:
        return [_SCALED.pack(*number) for number in column]
    if key.kind == "present":
        return [b"\x01" if there else b"\x00" for there in column]
    if key.kind in SETS:
        packed = [_PACKED[key.kind](each) for each in column]
        return [_LENGTH.pack(len(each)) + each for each in packed]
    if key.kind.startswith(("least", "greatest")):
        form = _DOUBLE if key.kind.endswith("double") else _INT
        return [form.pack(number is not None, number or 0) for number in column]
    raw = [number.to_bytes((number.bit_length() >> 3) + 1, "little", signed=True) for number in column]
    return [_LENGTH.pack(len(each)) + each for each in raw]


def _packed(values: frozenset[Any]) -> bytes:
    """Distinct values, all of one type: integers, doubles or strings."""
    kind = next(("d" if isinstance(each, float) else "s" if isinstance(each, str) else "q" for each in values), "q")
    if kind != "s":
        return kind.encode() + struct.pack(f"<{len(values)}{kind}", *values)
    texts = [each.encode("utf-8", "surrogatepass") for each in values]
    return b"s" + b"".join(_LENGTH.pack(len(each)) + each for each in texts)


def _unpacked(encoded: bytes) -> frozenset[Any]:
    """The inverse of `_packed`."""
    kind = encoded[:1].decode()
    if kind != "s":
        return frozenset(struct.unpack(f"<{len(encoded) // 8}{kind}", encoded[1:]))
    place, found = 1, set()
    while place < len(encoded):
        start = place + _LENGTH.size
        place = start + _LENGTH.unpack_from(encoded, place)[0]
        found.add(encoded[start:place].decode("utf-8", "surrogatepass"))
    return frozenset(found)


def _packed_events(events: frozenset[tuple[int, int, int | float | None]]) -> bytes:
    """Sets of matched events: what tells each apart, how many are alike, the value."""
    kind = "d" if any(isinstance(value, float) for _, _, value in events) else "q"
    form = struct.Struct(f"<qq?{kind}")
    return kind.encode() + b"".join(form.pack(id, count, v is not None, v or 0) for id, count, v in events)


def _unpacked_events(encoded: bytes) -> frozenset[tuple[int, int, int | float | None]]:
    """The inverse of `_packed_events`."""
    form = struct.Struct(f"<qq?{encoded[:1].decode()}")
    found = form.iter_unpack(encoded[1:])
    return frozenset((id, count, value if there else None) for id, count, there, value in found)


_PACKED: dict[str, Callable[[Any], bytes]] = {
    "distinct": _packed,
    "registers": lambda registers: zlib.compress(registers, 1),
    "events": _packed_events,
}
_UNPACKED: dict[str, Callable[[bytes], Component]] = {
    "distinct": _unpacked,
    "registers": zlib.decompress,
    "events": _unpacked_events,
}


def decode_components(keys: Sequence[ComponentKey], encoded: bytes) -> list[Component]:
    """The components of one row."""
    place = 0
    found: list[Component] = []
    for key in keys:
        if key.kind in SCALED:
            found.append(_SCALED.unpack_from(encoded, place))
            place += _SCALED.size
        elif key.kind == "present":
            found.append(encoded[place] != 0)
            place += 1
        elif key.kind.startswith(("least", "greatest")):
            there, number = (_DOUBLE if key.kind.endswith("double") else _INT).unpack_from(encoded, place)
            found.append(number if there else None)
            place += _INT.size
        else:
            start = place + _LENGTH.size
            place = start + _LENGTH.unpack_from(encoded, place)[0]
            if key.kind in SETS:
                some = encoded[start:place]
                found.append(_UNPACKED[key.kind](some))
                continue
            found.append(int.from_bytes(encoded[start:place], "little", signed=True))
    return found


# ------------------------------------------------------------------------------------------------------ rows


class PartialCodec:
    """Partial rows of one query to record batches and back.

    Parameters
    ----------
    query : int
        Its place in the workload.
    keys : sequence of ComponentKey
        Its layout.
    types : sequence of pyarrow.DataType
        Of its grouping attributes.
    """

    def __init__(self, query: int, keys: Sequence[ComponentKey], types: Sequence[pa.DataType]) -> None:
        self.query = query
        self._keys = tuple(keys)
        self._groups = GroupCodec(types)

    def encode(self, rows: GroupRows) -> pa.RecordBatch:
        """Rows of closed windows as a batch of `SCHEMA`."""
        arrays = [
            pa.array(np.full(len(rows.windows), self.query, np.int32)),
            pa.array(rows.windows, pa.int64()),
            pa.array(self._groups.encode(rows.groups), pa.binary()),
            pa.array(encode_components(self._keys, rows.components), pa.binary()),
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)

    def merge(self, windows: Sequence[int], groups: Sequence[bytes], components: Sequence[bytes]) -> GroupRows:
        """Rows in the order of window and group; neighbours that agree on both are added up."""
        found: list[list[Component]] = []
        kept_windows: list[int] = []
        kept_groups: list[Group] = []
        last: tuple[int, bytes] | None = None
        for window, group, encoded in zip(windows, groups, components, strict=True):
            row = decode_components(self._keys, encoded)
            if (window, group) == last:
                found[-1] = merged(self._keys, found[-1], row)
                continue
            last = (window, group)
            found.append(row)
            kept_windows.append(window)
            kept_groups.append(self._groups.decode(group))
        columns = [list(column) for column in zip(*found, strict=True)]
        return GroupRows(kept_windows, kept_groups, columns or [[] for _ in self._keys])
