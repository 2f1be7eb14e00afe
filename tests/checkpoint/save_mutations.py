"""Saves that are wrong on purpose: another description or other bytes behind a digest that is right.

One description of the ways (`mutated`), two sources of chance: a seeded generator in the tests, a fuzzer's bytes in
``fuzz/``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Protocol

from hamlet.checkpoint import frame
from hamlet.checkpoint.columns import WORD

NUMBERS = (0, 1, -1, 2, 7, 8, 63, 64, 255, 2**16, 2**31 - 1, -(2**31), 2**32, 2**61, 2**62, 2**63 - 1, -(2**63), 2**64)
WORDS = ("", "s", "5 s", "INT", "STRING", "DOUBLE", "TIMESTAMP", "UTC", "null", "int64", "large_binary")
VALUES = (*NUMBERS, *WORDS, None, True, 0.5, [], {}, [[]])


class Chance(Protocol):
    """Where random decisions come from."""

    def below(self, end: int) -> int:
        """Any of ``0..end - 1``."""
        ...


def opened(data: bytes) -> tuple[Any, bytearray]:
    """The description and the blobs of a save that is right."""
    length = frame.HEAD.unpack_from(data)[2]
    start = frame.HEAD.size
    return json.loads(data[start : start + length]), bytearray(data[start + length + -length % WORD :])


def sealed(description: Any, blobs: bytes | bytearray, *, format: int = frame.FORMAT) -> bytes:
    """A save with a digest that is right."""
    return frame.sealed(json.dumps(description).encode(), [blobs], format)


def mutated(data: bytes, chance: Chance) -> bytes:
    """A save with one to four mistakes."""
    description, blobs = opened(data)
    for _ in range(1 + chance.below(4)):
        if blobs and chance.below(3):
            blobs = WAYS[chance.below(len(WAYS))](blobs, chance)
        else:
            description = _another(description, chance)
    return sealed(description, blobs)


# ------------------------------------------------------------------------------------------------------- blobs


def _word(blobs: bytearray, chance: Chance) -> bytearray:
    """Another number, often one that is near a limit or near the old one."""
    place = chance.below(max(1, len(blobs) // WORD)) * WORD
    old = int.from_bytes(blobs[place : place + WORD], "little")
    near = old + (1, -1, 8, -8, 1 << 9, -(1 << 9))[chance.below(6)]
    new = near if chance.below(2) else NUMBERS[chance.below(len(NUMBERS))]
    blobs[place : place + WORD] = (new % 2**64).to_bytes(WORD, "little")
    return blobs


def _flip(blobs: bytearray, chance: Chance) -> bytearray:
    blobs[chance.below(len(blobs))] ^= 1 << chance.below(8)
    return blobs


def _swap(blobs: bytearray, chance: Chance) -> bytearray:
    one, other = (chance.below(max(1, len(blobs) // WORD)) * WORD for _ in range(2))
    blobs[one : one + WORD], blobs[other : other + WORD] = blobs[other : other + WORD], blobs[one : one + WORD]
    return blobs


def _cut(blobs: bytearray, chance: Chance) -> bytearray:
    place = chance.below(len(blobs) // WORD + 1) * WORD
    end = place + (1 + chance.below(4)) * WORD
    return blobs[:place] + blobs[end:]


def _repeat(blobs: bytearray, chance: Chance) -> bytearray:
    place = chance.below(len(blobs) // WORD + 1) * WORD
    return blobs[:place] + blobs[max(0, place - (1 + chance.below(4)) * WORD) :]


WAYS: tuple[Callable[[bytearray, Chance], bytearray], ...] = (_word, _word, _word, _flip, _swap, _cut, _repeat)


# ------------------------------------------------------------------------------------------------- description


def _another(value: Any, chance: Chance) -> Any:
    """A description with one value changed, left out, or put elsewhere."""
    if isinstance(value, dict) and value and chance.below(12):
        name = list(value)[chance.below(len(value))]
        return value | {name: _another(value[name], chance)}
    if isinstance(value, list) and value and chance.below(8):
        place = chance.below(len(value))
        match chance.below(12):
            case 0:
                return value[:place] + value[place + 1 :]
            case 1:
                return value[:place] + value[place:][:1] + value[place:]
            case 2:
                return value[::-1]
        return [*value[:place], _another(value[place], chance), *value[place + 1 :]]
    if type(value) is int and chance.below(2):
        return value + (1, -1, 8, -8)[chance.below(4)]
    if isinstance(value, dict) and value and chance.below(2):
        name = list(value)[chance.below(len(value))]
        return {each: kept for each, kept in value.items() if each != name}
    return VALUES[chance.below(len(VALUES))]
