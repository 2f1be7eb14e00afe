"""The types that values of streams have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, Union


@dataclass(frozen=True, slots=True)
class Scalar:
    """A type without parts.

    Attributes
    ----------
    name : str
        ``Bool``, ``String``, ``Bytes``, or `family` and `bits` together: ``Int8`` ... ``UInt64``, ``Float32``,
        ``Float64``. Values have 64 bits whatever the width; widths matter to the check only. Bytes are texts of two
        small hexadecimal digits a byte, which have the order of the bytes.
    """

    name: str

    @property
    def family(self) -> str:
        """``Bool``, ``String`` (of Bytes, too), ``Int``, ``UInt`` or ``Float``."""
        return "String" if self.name == "Bytes" else self.name.rstrip("0123456789")

    @property
    def bits(self) -> int:
        """The width that the type's name says; 0 where it has none."""
        digits = self.name[len(self.family) :]
        return int(digits) if digits else 0

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class TupleOf:
    """A tuple type; values are Python tuples. ``()`` is the type of a stream without an expression."""

    parts: tuple[ValueType, ...]

    def __str__(self) -> str:
        return f"({', '.join(str(part) for part in self.parts)})"


@dataclass(frozen=True, slots=True)
class OptionalOf:
    """``T?``: a value of the inner type, or none (Python None). Only expressions have it, never a stream."""

    inner: ValueType

    def __str__(self) -> str:
        return f"{self.inner}?"


ValueType: TypeAlias = Union[Scalar, TupleOf, OptionalOf]
Value: TypeAlias = "bool | int | float | str | tuple[Value, ...]"

BOOL, STRING, BYTES = Scalar("Bool"), Scalar("String"), Scalar("Bytes")
INT64, UINT64, FLOAT64 = Scalar("Int64"), Scalar("UInt64"), Scalar("Float64")
