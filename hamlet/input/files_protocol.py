"""What a reader of events is, whatever they are kept in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import pyarrow as pa


class Reader(Protocol):
    """Something that holds events in columns.

    Attributes
    ----------
    name : str
        File name or kind of object, for messages.
    schema : pyarrow.Schema
        All columns, as they come in.
    rows : int or None
        How many rows there are; None where only reading would tell.
    ordered : bool or None
        Whether the rows are known to be in (time, order) order; None where nobody has looked yet.
    """

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def schema(self) -> pa.Schema: ...  # noqa: D102
    @property
    def rows(self) -> int | None: ...  # noqa: D102
    @property
    def ordered(self) -> bool | None: ...  # noqa: D102

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows as they stand, with exactly these columns in this order; all names are in the schema."""
        ...


def within(reader: Any) -> Iterator[Any]:
    """A reader, and all readers in it."""
    yield reader
    for inner in getattr(reader, "readers", None) or (getattr(reader, "reader", None),):
        if inner is not None:
            yield from within(inner)
