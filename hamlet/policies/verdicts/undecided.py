"""Time-points, and where atoms are true, until the truth of all atoms is known."""

from __future__ import annotations

from collections.abc import Sequence

from hamlet.arrays import np, npt, pa
from hamlet.policies.verdicts.atoms import Hits


class Waiting:
    """Time-points, and where atoms are true, until the truth of all atoms is known.

    Attributes
    ----------
    points, first : int
        Time-points so far, and the first of them that waits.
    times : list of int64 arrays
        Of those that wait.
    hits : list of list of Hits
        For each atom.
    """

    def __init__(self, atoms: int) -> None:
        self.points = 0
        self.first = 0
        self.times: list[npt.NDArray[np.int64]] = []
        self.hits: list[list[Hits]] = [[] for _ in range(atoms)]

    @property
    def nbytes(self) -> int:
        """Bytes that are kept."""
        hits: int = sum(
            points.nbytes + sum(each.nbytes for each in columns) for parts in self.hits for points, columns in parts
        )
        return 8 * (self.points - self.first) + hits

    def add(self, times: npt.NDArray[np.int64], hits: Sequence[Hits]) -> None:
        """More time-points, and hits counted from the first of them."""
        if len(times):
            self.times.append(times)
        for known, (points, columns) in zip(self.hits, hits, strict=True):
            if len(points):
                known.append((points + self.points, columns))
        self.points += len(times)

    def take(self, end: int) -> tuple[npt.NDArray[np.int64], list[Hits]]:
        """The time-points before one, and hits counted from the first of them."""
        times = np.concatenate([*self.times, np.zeros(0, np.int64)])
        first, count = self.first, end - self.first
        hits = [_before(parts, first, end) for parts in self.hits]
        self.times = [times[count:]] if count < len(times) else []
        self.hits = [[each for each in (_from(part, end) for part in parts) if len(each[0])] for parts in self.hits]
        self.first = end
        return np.ascontiguousarray(times[:count]), hits


def _before(parts: Sequence[Hits], first: int, end: int) -> Hits:
    """Hits before a time-point, put together and counted from `first`."""
    chosen = [_filtered(points, columns, points < end) for points, columns in parts]
    chosen = [each for each in chosen if len(each[0])]
    if not chosen:
        return np.zeros(0, np.int64), []
    points = np.concatenate([points for points, _ in chosen]) - first
    return points, [_together(columns) for columns in zip(*(columns for _, columns in chosen), strict=True)]


def _from(part: Hits, end: int) -> Hits:
    points, columns = part
    return _filtered(points, columns, points >= end)


def _filtered(points: npt.NDArray[np.int64], columns: list[pa.Array], keep: npt.NDArray[np.bool_]) -> Hits:
    if keep.all():
        return points, columns
    return points[keep], [column.filter(pa.array(keep)) for column in columns]


def _together(parts: Sequence[pa.Array]) -> pa.Array:
    if len(parts) == 1:
        return parts[0]
    wide = next((each.type for each in parts if pa.types.is_decimal(each.type)), parts[0].type)
    return pa.concat_arrays([each.cast(wide) for each in parts])
