"""What a cell keeps between micro-batches, written as what has changed; no pyspark needed.

The parts of a state are a whole save, and changes of the one before each (`hamlet.checkpoint._delta`). Once they are as
long as the save itself, or many, a whole save takes their place: so over time a micro-batch that changes a hundredth of
a state writes about four hundredths of it, and reads at most twice the state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hamlet.checkpoint._delta import applied, encoded
from hamlet.errors import RestoreError

MOST_CHANGES = 32  # parts behind the whole save: each of them is gone through when the state is read
SMALL = 1024  # bytes of a save that is written whole


@dataclass(frozen=True)
class Writing:
    """What is written for a new state.

    Attributes
    ----------
    part : int
        Its number: 0 of a whole save.
    data : bytes
    dropped : range
        The parts that it takes the place of.
    """

    part: int
    data: bytes
    dropped: range


def whole(parts: Sequence[bytes]) -> bytes:
    """The save that parts lead to.

    Raises
    ------
    RestoreError
    """
    found = parts[0]
    try:
        for change in parts[1:]:
            found = applied(found, change)
    except ValueError as error:
        raise RestoreError(f"the checkpoint is damaged: {error}") from None
    return found


def writing(parts: Sequence[bytes], before: bytes | None, save: bytes) -> Writing:
    """What to write where the state is `save` now, and was `before`, of these parts."""
    changes = sum(map(len, parts[1:]))
    if before is not None and parts and len(save) > SMALL and len(parts) <= MOST_CHANGES:
        change = encoded(before, save)
        if change is not None and changes + len(change) <= len(parts[0]):
            return Writing(len(parts), change, range(0))
    return Writing(0, save, range(1, len(parts)))
