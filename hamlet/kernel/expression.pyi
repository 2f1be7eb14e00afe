from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

OPERATIONS: dict[str, int]
COMPARISONS: dict[str, int]

class OverflowInExpression(Exception):
    text: str
    row: int

class Program:
    vector_columns: tuple[str, ...]
    scalar_columns: tuple[str, ...]
    texts: tuple[object, ...]

    def __init__(
        self,
        steps: Sequence[tuple[str, int, object]],
        constants: Sequence[int | float],
        vector_columns: Sequence[str],
        scalar_columns: Sequence[str],
    ) -> None: ...
    def select(
        self,
        columns: Sequence[tuple[npt.NDArray[Any], npt.NDArray[np.uint8] | None]],
        rows: int,
        ranks: npt.NDArray[np.int64],
        scalars: Sequence[tuple[npt.NDArray[Any], npt.NDArray[np.uint8] | None]] = ...,
        row: int = ...,
    ) -> npt.NDArray[np.uint8]: ...
