"""Events that a specification reads: what all sources of them have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from hamlet.input.csvform import Dropped
from hamlet.input.widening import merged_schema
from hamlet.streams.clock import Times


class Feed:
    """Events to be read once.

    Attributes
    ----------
    name : str
        For messages.
    rows : int or None
        How many, where that is known.
    closed : bool
        Whether a column that is not there is a mistake.
    names : sequence of str or None
        The columns, where they are known before reading.
    has_header : bool
        Whether these stand in a header, which may be wrong.
    """

    name = "the events"
    rows: int | None = None
    closed = True
    names: Sequence[str] | None = None
    has_header = False

    @property
    def types(self) -> Mapping[str, pa.DataType | None] | None:
        """The columns with their types, None where text is read as what the inputs are; None before reading."""
        return None

    def settled(self, is_read: Callable[[str], bool]) -> pa.Schema:
        """The columns that are read, in types that hold for all events; null where none has a value."""
        known = self.types
        schemas = (each.schema for each in self.batches()) if known is None else [pa.schema(list(known.items()))]
        read = (pa.schema([each for each in schema if is_read(each.name)]) for schema in schemas)
        return merged_schema([(self.name, schema) for schema in read])

    def unreadable(self) -> dict[str, str]:
        """Columns of text whose first values are none of their input's type, and what was found there."""
        return {}

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The events, at least one a batch."""
        raise NotImplementedError

    def survey(self, times: Times) -> None:
        """Tell what the times are, where the first batch may not show it."""

    def notes(self) -> list[str]:
        """What to know of the events, when they have been read: rows that were dropped."""
        found = self.dropped.sentence()
        return [] if found is None else [found]

    @property
    def dropped(self) -> Dropped:
        """Rows that were left out."""
        return Dropped()

    def findings(self, read: Sequence[tuple[int, Iterable[str]]] = ()) -> list[str]:  # noqa: ARG002
        """What files lack that others have; `read` says how many events of each are read, and their columns."""
        return []

    def leave_out_period(self, since: Any, until: Any, time_unit: str) -> None:
        """Leave out what is known to lie outside a period without being read."""


class Around(Feed):
    """A feed that gives the events of another one, some of them or in another order.

    Parameters
    ----------
    feed : Feed
    """

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._rows, self._columns_read = 0, dict[str, None]()
        self.name, self.closed, self.names = feed.name, feed.closed, feed.names

    def _given(self) -> Iterator[pa.RecordBatch]:
        """All events of the other feed."""
        for batch in self._feed.batches():
            self._rows += batch.num_rows
            self._columns_read.update(dict.fromkeys(batch.schema.names))
            yield batch

    @property
    def read(self) -> tuple[int, list[str]]:
        """How many events there were so far before some were chosen, and their columns."""
        return self._feed.read if isinstance(self._feed, Around) else (self._rows, list(self._columns_read))

    @property
    def types(self) -> Mapping[str, pa.DataType | None] | None:
        """The types of the columns, where they are known before the events are read."""
        return self._feed.types

    def notes(self) -> list[str]:
        """What to know of the input."""
        return self._feed.notes()

    @property
    def dropped(self) -> Dropped:
        """Rows that were left out."""
        return self._feed.dropped

    def settled(self, is_read: Callable[[str], bool]) -> pa.Schema:
        """The columns that are read, in types that hold for all events of the other feed."""
        return self._feed.settled(is_read)

    def unreadable(self) -> dict[str, str]:
        """The columns that no input can be read from, with their types."""
        return self._feed.unreadable()

    def survey(self, times: Times) -> None:
        """Look at all times before the first event is given."""
        self._feed.survey(times)

    def leave_out_period(self, since: Any, until: Any, time_unit: str) -> None:
        """Leave out what is known to lie outside a period without being read."""
        self._feed.leave_out_period(since, until, time_unit)
