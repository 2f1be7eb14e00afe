"""All plans that the choice of a shared query set is made from, for people and tests: `choose` never lists them.

Source: HAMLET (SIGMOD'21) §4.3, Fig. 7.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import TypeVar

Query = TypeVar("Query")


def plans(queries: Sequence[Query]) -> Iterator[tuple[Query, ...]]:
    """The shared set of each plan, the empty one (nothing is shared) first, then by size: 2^k - k of them.

    Parameters
    ----------
    queries : sequence
        k queries, k >= 0; those that a plan leaves out are on their own.

    Examples
    --------
    >>> list(plans("abc"))
    [(), ('a', 'b'), ('a', 'c'), ('b', 'c'), ('a', 'b', 'c')]
    """
    yield ()
    for size in range(2, len(queries) + 1):
        yield from combinations(queries, size)
