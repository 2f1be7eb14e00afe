"""How many events of each type there were over time, counted while a run reads them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hamlet.input.columns import Int64Array, integers
from hamlet.language.schema import Schema
from hamlet.pages.timeline import Bins

MOST_BINS = 180
_MOST_TYPES = 8


class Activity:
    """Events by type and bin of time; bins are joined as the stream grows longer, so their number stays bounded.

    Parameters
    ----------
    schema : Schema
        Of the stream.
    """

    def __init__(self, schema: Schema) -> None:
        self.clock = schema.clock
        self.events = 0
        self.bins = Bins(schema.clock, MOST_BINS)
        self._type_column = schema.type_column
        self._counts: Counter[tuple[int, str | None]] = Counter()  # (bin, type) -> events

    def add(self, batch: pa.RecordBatch) -> None:
        """Count the events of a batch; no time is NULL."""
        if batch.num_rows == 0:
            return
        self.events += batch.num_rows
        times = integers(batch.column(self.clock.column), self.clock.column)[0]
        low, high = int(times.min()), int(times.max())
        self._join(self.bins.cover(low, high))
        names, codes = _coded(batch.column(self._type_column))
        first = low // self.bins.length
        bins = times // self.bins.length - first
        counts = np.bincount(bins * len(names) + codes)
        for place in np.nonzero(counts)[0].tolist():
            self._counts[first + place // len(names), names[place % len(names)]] += int(counts[place])

    def merge(self, other: Activity) -> None:
        """Add what another part of the same stream has."""
        joined, theirs = self.bins.merge(other.bins)
        self._join(joined)
        self.events += other.events
        for (number, name), count in other._counts.items():
            self._counts[number // theirs, name] += count

    def _join(self, joined: int) -> None:
        """Put so many neighbouring bins into one."""
        if joined > 1:
            before, self._counts = self._counts, Counter()
            for (number, name), count in before.items():
                self._counts[number // joined, name] += count

    def shown(self) -> dict[str, Any] | None:
        """What the page draws: first tick, length of a bin, and for each type its events by bin; None without any.

        The types with the fewest events are put together where there are many.
        """
        if not self.bins.count:
            return None
        totals: Counter[str | None] = Counter()
        for (_, name), count in self._counts.items():
            totals[name] += count
        ranked = sorted(totals, key=lambda name: (-totals[name], name or ""))
        own = ranked if len(ranked) <= _MOST_TYPES else ranked[: _MOST_TYPES - 1]
        counts = {name: [0] * self.bins.count for name in own}
        rest = [0] * self.bins.count
        for (number, name), count in self._counts.items():
            counts.get(name, rest)[number - self.bins.first] += count
        types = [{"name": "(no type)" if name is None else name, "counts": each} for name, each in counts.items()]
        if len(ranked) > len(own):
            types.append({"name": f"{len(ranked) - len(own)} other types", "counts": rest})
        return {"first": self.bins.first * self.bins.length, "length": self.bins.length, "types": types}


def _coded(types: pa.Array) -> tuple[list[str | None], Int64Array]:
    """The names of a column of types, and for each row the place of its name."""
    coded = types if pa.types.is_dictionary(types.type) else pc.dictionary_encode(types)
    names: list[str | None] = [*coded.dictionary.to_pylist(), None]
    return names, pc.fill_null(coded.indices.cast(pa.int64()), len(names) - 1).to_numpy(zero_copy_only=False)
