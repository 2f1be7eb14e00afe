from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]
Int64Array = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

def by_window(
    windows: Int64Array, keys: Int64Array, numbers: Int64Array, ranks: Int64Array, limit: int
) -> tuple[Int64Array, npt.NDArray[np.int32], Int64Array, Int64Array]: ...
def gathered(
    words: Words,
    widths: npt.NDArray[np.int32],
    order: Int64Array,
    layout: Sequence[tuple[str, int, int]],
) -> list[tuple[Any, Any]]: ...
def doubles_of(words: Words, starts: Int64Array, sizes: Int64Array) -> Doubles: ...
def scaled_of(words: Words, starts: Int64Array, sizes: Int64Array) -> tuple[Doubles, Int64Array]: ...
def logarithms_of_limbs(words: Words, starts: Int64Array, sizes: Int64Array) -> tuple[Doubles, Bools]: ...
def logarithms(mantissas: Doubles, exponents: Int64Array | None = None) -> tuple[Doubles, Bools]: ...
def presented(mantissas: Doubles, exponents: Int64Array) -> tuple[Doubles, int]: ...
