"""Values as 64-bit codes: what relations hold in their columns.

Equal values of one type have equal codes, so joins, unions and projections look at codes only. An integer between
-2**62 and 2**62 is its own code, and a float's code are its bits (with one zero and one NaN). A larger integer and
every string have a number in a pool; their codes are `POOLED` plus the place in the pool.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from hamlet.arrays import np, npt, pa
from hamlet.input.buffers import from_numpy, from_texts, to_numpy
from hamlet.output.digits import integer_of
from hamlet.policies.syntax.formula import Type, Value

Codes: TypeAlias = "npt.NDArray[np.int64]"
POOLED = 1 << 62
_BITS, _DOUBLE = struct.Struct("=q"), struct.Struct("=d")


class Pool:
    """Strings and large integers by number; one pool for all operators of an evaluation."""

    def __init__(self) -> None:
        self.values: list[Value] = []
        self._texts: dict[str, int] = {}
        self._numbers: dict[int, int] = {}

    def code(self, value: Value) -> int:
        """The code of a value."""
        if isinstance(value, bool):
            return int(value)
        if isinstance(value, int) and -POOLED < value < POOLED:
            return value
        if isinstance(value, float):
            plain = math.nan if value != value else value or 0.0  # one NaN, one zero
            code: int = _BITS.unpack(_DOUBLE.pack(plain))[0]
            return code
        known: dict[Any, int] = self._texts if isinstance(value, str) else self._numbers
        code = known.get(value, -1)
        if code < 0:
            code = known[value] = POOLED + len(self.values)
            self.values.append(value)
        return code

    def keep(self, used: npt.NDArray[np.bool_]) -> Codes:
        """Forget all other values; gives the new code of each that is kept, by its old number."""
        places = np.flatnonzero(used).tolist()
        fresh = np.full(len(used), -1, np.int64)
        fresh[used] = POOLED + np.arange(len(places))
        self.values = [self.values[place] for place in places]
        self._texts = {value: POOLED + at for at, value in enumerate(self.values) if isinstance(value, str)}
        self._numbers = {value: POOLED + at for at, value in enumerate(self.values) if isinstance(value, int)}
        return fresh

    def codes(self, values: Iterable[Value]) -> Codes:
        """The codes of some values."""
        return np.fromiter((self.code(value) for value in values), np.int64)

    def _codes_of_texts(self, texts: Sequence[str]) -> Codes:
        known = self._texts
        found = [known.get(text, -1) for text in texts]
        if -1 in found:
            for text in texts:
                if text not in known:
                    known[text] = POOLED + len(self.values)
                    self.values.append(text)
            found = [known[text] for text in texts]
        return np.array(found, np.int64)

    def value(self, code: int, type: Type) -> Value:
        """The value of a code in a column of this type."""
        if type == "bool":
            return bool(code)
        if type == "float":
            number: float = _DOUBLE.unpack(_BITS.pack(code))[0]
            return number
        return self.values[code - POOLED] if code >= POOLED else code

    def decode(self, codes: Codes, type: Type) -> list[Any]:
        """The values of a column."""
        if type == "float":
            floats: list[Any] = floats_of(codes).tolist()
            return floats
        plain: list[Any] = codes.tolist()
        if type == "bool":
            return [bool(code) for code in plain]
        if type == "int" and (not len(codes) or int(codes.max()) < POOLED):
            return plain
        values = self.values
        return [values[code - POOLED] if code >= POOLED else code for code in plain]

    def array(self, codes: Codes, type: Type) -> pa.Array | list[Any]:
        """The values of a column as an Arrow array; as a list where an integer has more than 62 bits."""
        plain = self.plain(codes, type)
        if plain is not None:
            return from_numpy(plain)
        if type == "string":
            kinds, places = np.unique(codes, return_inverse=True)
            return from_texts(self.decode(kinds, type)).take(from_numpy(places))
        return self.decode(codes, type)

    def plain(self, codes: Codes, type: Type) -> npt.NDArray[Any] | None:
        """The values of a column of numbers as an array; None of texts, and where an integer has more than 62 bits."""
        match type:
            case "float":
                return floats_of(codes)
            case "bool":
                return np.not_equal(codes, 0)
            case "int" if not len(codes) or int(codes.max()) < POOLED:
                return codes
        return None

    def encode(self, column: pa.Array | pa.ChunkedArray | npt.NDArray[Any], type: Type) -> Codes:
        """The codes of a column without NULL, whose type fits."""
        if isinstance(column, np.ndarray):
            if type == "int":
                return self._within(column)
            return float_codes(column) if type == "float" else np.asarray(column, np.int64)
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):  # pyarrow keeps several chunks of long strings
            return np.concatenate([self.encode(chunk, type) for chunk in column.chunks])
        if type == "bool":
            return np.asarray(to_numpy(column.cast(pa.int8())), np.int64)
        if type == "int" and pa.types.is_integer(column.type):
            return self._integers(column)
        if type == "float":
            return float_codes(np.asarray(to_numpy(column.cast(pa.float64(), safe=False)), np.float64))
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        values = column.dictionary.to_pylist()
        if type == "int":
            values = [integer_of(each) if isinstance(each, str) else int(each) for each in values]
        known = self._codes_of_texts(values) if type == "string" else self.codes(values)
        places = to_numpy(column.indices)
        return known[places] if len(known) else np.zeros(len(column), np.int64)

    def _integers(self, column: pa.Array) -> Codes:
        if pa.types.is_uint64(column.type):
            return self.codes(column.to_pylist())
        return self._within(np.asarray(to_numpy(column.cast(pa.int64())), np.int64))

    def _within(self, codes: Codes) -> Codes:
        """Codes of integers of 64 bits."""
        if len(codes) and (int(codes.max()) >= POOLED or int(codes.min()) <= -POOLED):
            return self.codes(codes.tolist())
        return codes


def float_codes(values: npt.NDArray[np.float64]) -> Codes:
    """The codes of floats: their bits, with one zero and one NaN."""
    values = np.where(values == 0, 0.0, values)
    values[np.isnan(values)] = math.nan
    return values.view(np.int64)


def floats_of(codes: Codes) -> npt.NDArray[np.float64]:
    """The floats of codes."""
    found: npt.NDArray[np.float64] = codes.view(np.float64)
    return found
