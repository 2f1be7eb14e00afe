"""Hypercube shares: how finely each attribute is hashed where the types of one pattern carry different keys.

A slice is a cell of a grid with one dimension per attribute. An event is sent to all cells that agree with the values
it carries, so a type without an attribute is copied along that dimension. The shares say how many steps each dimension
has. Source: Schneider et al. (STTT 2021) §5, Algorithms 1 (shares) and 2 (heavy values); the exhaustive search over
whole shares is that of Chu, Balazinska, Suciu (SIGMOD 2015) §4, the grid that of Afrati and Ullman (TKDE 2011). Checked
against the examples with which the authors test theirs (Scalable Online Monitoring Project, ETH Zürich).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

Places = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Relation:
    """The events that carry one set of attributes.

    Attributes
    ----------
    carried : tuple of int
        Places of the attributes.
    events : float
        How many there are, or their share of all.
    """

    carried: Places
    events: float


def load(relations: Sequence[Relation], shares: Sequence[int]) -> float:
    """Expected events of one cell: every relation is spread over the dimensions that it carries.

    Parameters
    ----------
    relations : sequence of Relation
    shares : sequence of int, shape (attributes,)

    Examples
    --------
    >>> load([Relation((0,), 90.0), Relation((0, 1), 60.0)], (3, 2))
    40.0
    """
    return sum(each.events / math.prod(shares[place] for place in each.carried) for each in relations)


def best_shares(relations: Sequence[Relation], attributes: int, slices: int) -> Places:
    """Whole shares with the least load per cell; Algorithm 1.

    Parameters
    ----------
    relations : sequence of Relation
    attributes : int
        Number of dimensions.
    slices : int
        Most cells that there may be; at least 1.

    Returns
    -------
    tuple of int, shape (attributes,)
        Of those with the least load the one with fewest cells, then with the smallest largest share.

    Examples
    --------
    >>> best_shares([Relation((0, 1), 1.0), Relation((1, 2), 1.0), Relation((0, 2), 1.0)], 3, 64)
    (4, 4, 4)
    """
    return min(
        _whole_shares(attributes, slices),
        key=lambda shares: (round(load(relations, shares), 9), math.prod(shares), max(shares, default=1), shares),
    )


def _whole_shares(attributes: int, slices: int) -> Iterator[Places]:
    """All tuples of positive integers whose product is at most `slices`."""
    if attributes == 0:
        yield ()
        return
    for share in range(1, slices + 1):
        for rest in _whole_shares(attributes - 1, slices // share):
            yield (share, *rest)


def grids(
    sizes: Mapping[tuple[Places, Places], float], attributes: int, heavy: Sequence[bool], slices: int
) -> dict[Places, Places]:
    """The shares for every set of attributes that may hold a heavy value; Algorithm 2.

    A value that is so frequent that hashing it spreads nothing is heavy. Partitions with heavy values in the
    attributes H have a grid of their own, in which those attributes have one step each and the others share all slices.

    Parameters
    ----------
    sizes : mapping of (carried, heavy places) to float
        Events that carry these attributes and are heavy in exactly these of them; what is not known may be left out.
    attributes : int
    heavy : sequence of bool, shape (attributes,)
        Which attributes have heavy values at all.
    slices : int

    Returns
    -------
    dict of tuple of int to tuple of int
        Set of heavy attributes -> shares of its grid.

    Examples
    --------
    >>> sizes = {((0,), ()): 10.0, ((0,), (0,)): 90.0, ((0, 1), ()): 100.0, ((0, 1), (0,)): 900.0}
    >>> grids(sizes, 2, (True, False), 8)
    {(): (8, 1), (0,): (1, 8)}
    """
    candidates = [place for place in range(attributes) if heavy[place]]
    found: dict[Places, Places] = {}
    for size in range(len(candidates) + 1):
        for chosen in combinations(candidates, size):
            free = [place for place in range(attributes) if place not in chosen]
            dimension = {place: number for number, place in enumerate(free)}
            relations = [
                Relation(tuple(dimension[place] for place in carried if place in dimension), events)
                for (carried, held), events in sizes.items()
                if held == tuple(place for place in carried if place in chosen)
            ]
            shares = best_shares(relations, len(free), slices)
            found[chosen] = tuple(shares[dimension[place]] if place in dimension else 1 for place in range(attributes))
    return found
