"""What tells events apart that several partitions of a group may take: a hash of all that is read of them.

Events that are alike in all of it are in trends together, so it does not matter that they have one number. It is the
same in every process, for the events of a type without a key reach the tasks of all partitions.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from hamlet.input.columns import BatchColumns, Int64Array
from hamlet.language.query import AttributeType
from hamlet.language.schema import Schema

_EXACT = 1 << 53  # integers below it are doubles, too: a column may widen while an event is kept

Words = npt.NDArray[np.uint64]


def event_ids(batch: BatchColumns, schema: Schema) -> Int64Array:
    """A number for each event; int64 array of shape (rows,)."""
    found = np.zeros(batch.batch.num_rows, np.uint64)
    for name in batch.batch.schema.names:
        type = schema.type_of(name)
        if name in (schema.clock.column, schema.order_column):
            type = AttributeType.INT
        elif name == schema.type_column:
            type = AttributeType.STRING
        if type is None:
            continue  # without values so far
        data, valid = batch.values(name, type)
        hashed = _mixed(_words(data, type, batch) + np.uint64(_hash_of(name)))
        found += hashed if valid is None else np.where(valid != 0, hashed, np.uint64(0))
    return found.view(np.int64)


def _words(data: npt.NDArray[Any], type: AttributeType, batch: BatchColumns) -> Words:
    """Values as words, the same in every process."""
    if type is AttributeType.STRING:
        used, places = np.unique(data, return_inverse=True)
        texts = batch.strings.texts
        return np.array([_hash_of(texts[each]) if texts else 0 for each in used.tolist()], np.uint64)[places]
    doubles = data.astype(np.float64) + 0.0  # no negative zero
    if data.dtype == np.float64:
        return doubles.view(np.uint64)
    return np.where(np.abs(doubles) < _EXACT, doubles.view(np.uint64), data.view(np.uint64))


@lru_cache(maxsize=65_536)
def _hash_of(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def _mixed(words: Words) -> Words:
    """Words whose bits all depend on all bits of the given ones (the finalizer of SplitMix64)."""
    words = (words ^ words >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ words >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return words ^ words >> np.uint64(31)
