"""Registers of approximate distinct counts as sketches of Apache DataSketches, and back.

The hash is theirs (MurmurHash3, 128 bits, seed 9001), so what one side has counted can be merged with what the other
has: ``datasketches.hll_sketch.deserialize(to_sketch(registers))``. Whole numbers hash as integers here whatever their
column's type; in a sketch made elsewhere over doubles, give them as integers, too. They leave an empty string out.
Source: https://datasketches.apache.org/docs/HLL/HllSketches.html (HLL_8, its serialized form).
"""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt

BITS = 12  # of a hash choose one of 2^12 registers
_HEAD = struct.Struct("<8B3d2i")  # words, version, family, bits, -, flags, least, kind; two sums of 2^-v; zeros, -
_WORDS, _VERSION, _FAMILY = 10, 1, 7
_HLL, _EIGHT_BITS = 2, 2 << 2
_OUT_OF_ORDER, _COMPACT = 16, 8
_KINDS = {0: "HLL_4", 1 << 2: "HLL_6", _EIGHT_BITS: "HLL_8"}


def to_sketch(registers: npt.NDArray[np.uint8]) -> bytes:
    """A sketch of type HLL_8 with these registers.

    Parameters
    ----------
    registers : uint8 array of shape (4096,)

    Returns
    -------
    bytes
        The compact form, 4136 bytes.
    """
    registers = np.asarray(registers, np.uint8)
    weights = np.exp2(-registers.astype(np.float64))
    low, high = float(weights[registers < 32].sum()), float(weights[registers >= 32].sum())
    zeros = int((registers == 0).sum())
    head = _HEAD.pack(
        _WORDS, _VERSION, _FAMILY, BITS, 0, _COMPACT | _OUT_OF_ORDER, 0, _HLL | _EIGHT_BITS, 0.0, low, high, zeros, 0
    )  # fmt: skip
    return head + registers.tobytes()


def from_sketch(sketch: bytes) -> npt.NDArray[np.uint8]:
    """The registers of a sketch of type HLL_8 with 2^12 registers.

    Returns
    -------
    uint8 array of shape (4096,)

    Raises
    ------
    ValueError
        For anything else; a sketch of few values is a list of them until it is asked for its ``serialize_updatable``
        form after a union, or made with ``start_full_size=True``.
    """
    if len(sketch) < _HEAD.size:
        raise ValueError("the bytes are no HLL_8 sketch with 2^12 registers: they are too few")
    words, version, family, bits, _, _, _, kind, *_ = _HEAD.unpack_from(sketch)
    if (words, version, family) != (_WORDS, _VERSION, _FAMILY) or kind & 3 != _HLL:
        raise ValueError("the bytes are no HyperLogLog sketch of Apache DataSketches that has registers")
    if bits != BITS or kind & 12 != _EIGHT_BITS or len(sketch) < _HEAD.size + (1 << BITS):
        shown = _KINDS.get(kind & 12, "of another type")
        raise ValueError(f"the sketch is {shown} with 2^{bits} registers; it must be HLL_8 with 2^{BITS}")
    return np.frombuffer(sketch, np.uint8, 1 << BITS, _HEAD.size).copy()
