"""Types while they are being found out: unknowns that are made equal until one type is left for each.

A `Type` is the set of scalar types that are still possible, as a bit mask, or a tuple or optional with types inside. A
literal ``5`` can be every integer, a stream without a declared type everything but optional. `unify` makes two equal,
`settle` chooses where several are left: 64 bits, Int before UInt before Float.
"""

from __future__ import annotations

from collections.abc import Iterable

from hamlet.streams.program.ir import OptionalOf, Scalar, TupleOf, ValueType

_NAMES = (
    "Int64", "Int32", "Int16", "Int8", "UInt64", "UInt32", "UInt16", "UInt8", "Float64", "Float32", "Bool", "String",
    "Bytes",
)  # fmt: skip
BITS = {name: 1 << place for place, name in enumerate(_NAMES)}
SIGNED_INTEGER = sum(BITS[name] for name in _NAMES if name.startswith("Int"))
UNSIGNED = sum(BITS[name] for name in _NAMES if name.startswith("UInt"))
INTEGER = SIGNED_INTEGER | UNSIGNED
FLOAT = BITS["Float64"] | BITS["Float32"]
NUMBER = INTEGER | FLOAT
SIGNED = SIGNED_INTEGER | FLOAT
BOOL, STRING, BYTES = BITS["Bool"], BITS["String"], BITS["Bytes"]
TUPLE, OPTIONAL = 1 << len(_NAMES), 1 << (len(_NAMES) + 1)
PLAIN = NUMBER | BOOL | STRING | BYTES | TUPLE  # all that a stream can be
ANY = PLAIN | OPTIONAL

_WORDS = {
    NUMBER: "a number",
    INTEGER: "an integer",
    SIGNED: "a signed number",
    SIGNED_INTEGER: "a signed integer",
    UNSIGNED: "an unsigned integer",
    FLOAT: "a Float",
    TUPLE: "a tuple",
    PLAIN: "a value",
    ANY: "a value",
    PLAIN & ~TUPLE: "a plain value",
}


class Type:
    """An unknown.

    Attributes
    ----------
    mask : int
        What it can still be: bits of `BITS`, TUPLE, OPTIONAL.
    parts : dict of int to Type
        Of a tuple by place, of an optional the one inside at 0.
    length : int or None
        How many parts a tuple has; None while only some of them are known.
    """

    __slots__ = ("_same", "length", "mask", "parts")

    def __init__(self, mask: int = PLAIN, parts: dict[int, Type] | None = None, length: int | None = None) -> None:
        self._same: Type | None = None
        self.mask = mask
        self.parts: dict[int, Type] = parts or {}
        self.length = length

    def root(self) -> Type:
        """The one that stands for all that are equal to this."""
        found = self
        while found._same is not None:
            found = found._same
        each = self
        while each._same is not None and each._same is not found:
            each._same, each = found, each._same
        return found

    @property
    def optional(self) -> bool:
        """Whether it is an optional for sure."""
        return self.root().mask == OPTIONAL

    def inside(self, place: int) -> Type:
        """A part of the tuple, or what is in the optional (0)."""
        return self.root().parts.setdefault(place, Type(PLAIN if self.root().mask & OPTIONAL else ANY))

    def join(self, other: Type) -> None:
        """Make `other` stand for this one too; both are roots."""
        self._same = other


def optional_of(inner: Type) -> Type:
    """``T?``."""
    return Type(OPTIONAL, {0: inner}, 1)


def tuple_of(parts: Iterable[Type]) -> Type:
    """``(T, U)``."""
    inside = dict(enumerate(parts))
    return Type(TUPLE, inside, len(inside))


def declared(kind: ValueType) -> Type:
    """A type that is known."""
    if isinstance(kind, TupleOf):
        return tuple_of(declared(part) for part in kind.parts)
    if isinstance(kind, OptionalOf):
        return optional_of(declared(kind.inner))
    return Type(BITS[kind.name])


def unify(one: Type, other: Type) -> bool:
    """Make two types equal; False where they have nothing in common (they are left apart, parts may be joined)."""
    waiting = [(one, other)]
    while waiting:
        first, second = (each.root() for each in waiting.pop())
        if first is second:
            continue
        mask = first.mask & second.mask
        if not mask:
            return False
        length = first.length if first.length is not None else second.length
        if mask == TUPLE:
            lengths = {first.length, second.length} - {None}
            known = max([*first.parts, *second.parts], default=-1) + 1
            if len(lengths) > 1 or (length is not None and known > length) or _within(first, second):
                return False
        waiting += [(part, second.parts[place]) for place, part in first.parts.items() if place in second.parts]
        second.parts = {**first.parts, **second.parts}
        second.mask, second.length = mask, length
        first.join(second)
    return True


def _within(first: Type, second: Type) -> bool:
    """Whether one of two tuples is a part of the other: such a type would have no end."""
    for outer, inner in ((first, second), (second, first)):
        waiting, seen = list(outer.parts.values()), set()
        while waiting:
            each = waiting.pop().root()
            if each is inner:
                return True
            if id(each) not in seen:
                seen.add(id(each))
                waiting += each.parts.values()
    return False


def width(kind: Type) -> int:
    """How many plain values stand in a value of a type, parts that several tuples share counted for each."""
    known: dict[int, int] = {}

    def of(each: Type) -> int:
        each = each.root()
        if id(each) not in known:
            known[id(each)] = sum(map(of, each.parts.values())) if each.parts else 1
        return known[id(each)]

    return of(kind)


def describe(kind: Type) -> str:
    """A type in the words of a message: its name, or ``an integer`` where several are possible."""
    kind = kind.root()
    if kind.mask == OPTIONAL:
        inner = describe(kind.inside(0))
        return f"{inner}?" if inner[0].isupper() or inner[0] == "(" else f"optional {inner.partition(' ')[2]}"
    if kind.mask == TUPLE and kind.length is not None:
        return f"({', '.join(describe(kind.inside(place)) for place in range(kind.length))})"
    if kind.mask in _WORDS:
        return _WORDS[kind.mask]
    names = [name for name in _NAMES if BITS[name] & kind.mask]
    return names[0] if len(names) == 1 else "a number" if kind.mask & NUMBER else "a value"


def settle(kind: Type) -> ValueType | None:
    """The type that is left, the first of `_NAMES` where several numbers are; None where anything could be meant."""
    kind = kind.root()
    if kind.mask == OPTIONAL:
        inner = settle(kind.inside(0))
        return None if inner is None else OptionalOf(inner)
    if kind.mask == TUPLE:
        if kind.length is None:
            return None
        parts = [settle(kind.inside(place)) for place in range(kind.length)]
        return TupleOf(tuple(part for part in parts if part is not None)) if all(parts) or not parts else None
    if kind.mask & ~NUMBER and kind.mask & (kind.mask - 1):
        return None
    return Scalar(next(name for name in _NAMES if BITS[name] & kind.mask))
