"""The most memory that a run may take: how it is written, and what is said where a run needs more.

It counts what grows with the data between two batches: exactly, what the kernels allocate (states of queries and
groups, single events that predicates look back at, their indexes, rows of closed windows that nobody has taken yet);
by estimate, the values of partition attributes, the texts that conditions and distinct counts have met, events that are
held back because earlier ones may still come, and events that are delivered to several partitions. Not counted are the
interpreter and its libraries (about 100 MiB), the batch that is being read and worked on, and result rows once they are
Python's (`hamlet.run` keeps all of them).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hamlet._core import Kernel
from hamlet.engine.keys import KeyIndex
from hamlet.errors import MemoryLimitError, option
from hamlet.language.printing import name_text
from hamlet.planner.compiled import CompiledQuery
from hamlet.planner.memory import bound
from hamlet.planner.tables import QueryTables
from hamlet.runtime.sizes import size_text

BESIDE = 0.1  # of what a run holds; smaller shares of other things than queries are not worth a word


@dataclass(frozen=True)
class Holding:
    """What a query holds in the kernels.

    Attributes
    ----------
    query : CompiledQuery
    bytes : int
        Of all partitions together.
    partitions : int
        That hold anything.
    most : int
        Bytes of the partition that holds the most.
    key : mapping of str to object
        Values of this partition's attributes.
    tables : sequence of QueryTables
        What the kernels run for it.
    """

    query: CompiledQuery
    bytes: int
    partitions: int
    most: int
    key: Mapping[str, Any]
    tables: Sequence[QueryTables]


def holding(
    query: CompiledQuery,
    parts: Sequence[int],
    tables: Sequence[QueryTables],
    kernels: Sequence[Kernel],
    index: KeyIndex,
) -> Holding:
    """What a query holds; `parts` are its numbers in the kernels, over which the partitions are spread."""
    held = np.zeros(max(1, index.size), np.int64)
    for number, kernel in enumerate(kernels):
        mine = held[number :: len(kernels)]
        for part in parts:
            found = kernel.memory(part)[: len(mine)]  # a kernel hears of new partitions with their first events
            mine[: len(found)] += found
    most = int(held.argmax())
    key = dict(zip(index.attributes, index.key(most), strict=True)) if index.size else {}
    return Holding(query, int(held.sum()), int(np.count_nonzero(held)), int(held[most]), key, tables)


def exceeded(limit: int, holdings: Sequence[Holding], others: Mapping[str, int]) -> MemoryLimitError:
    """The error of a run that needs more than its limit.

    Parameters
    ----------
    limit : int
        Bytes.
    holdings : sequence of Holding
        Of all queries.
    others : mapping of str to int
        Bytes of what is no query's, by what it is.
    """
    total = sum(each.bytes for each in holdings) + sum(others.values())
    said = [f"the run stops, since it needs more memory than its limit, {size_text(limit)}"]
    most = max(holdings, key=lambda each: each.bytes)
    if most.bytes:
        said.append(_described(most))
    said += [f"{what} take {size_text(size)}" for what, size in others.items() if size > BESIDE * total]
    error = MemoryLimitError("; ".join(said) + f"\nhint: {_advice(most)}")
    return error.about(query=most.query.name, group=most.key or None) if most.bytes else error


def _described(most: Holding) -> str:
    text = f"query '{most.query.name}' holds the most, {size_text(most.bytes)}"
    if not most.key:
        return text
    group = ", ".join(f"{name_text(name)} = {_shown(value)}" for name, value in most.key.items())
    if most.partitions == 1:
        return f"{text}, all of it for the group {group}"
    return f"{text}, in {most.partitions:,} groups: {size_text(most.most)} of it for the group {group}"


def _shown(value: Any) -> str:
    text = "NULL" if value is None else repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _advice(most: Holding) -> str:
    """What makes a query smaller, as far as it applies."""
    ways = ["shorten its WITHIN", "split its events further with GROUP-BY or [attribute]"]
    if most.query.exact:
        ways.append("count with numbers=float")
    if bound(most.tables).event:
        ways.append("leave out more events by conditions on single ones, since its adjacent condition keeps them all")
    return f"{', '.join(ways)}, or raise the limit ({option('max_memory')})"
