from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

def lines_of(
    heads: list[str],
    starts: npt.NDArray[np.int64],
    order: npt.NDArray[np.int64],
    kinds: list[str],
    columns: Sequence[Any],
    opened: str,
    between: str,
    closed: str,
    holds: npt.NDArray[np.uint8],
) -> str: ...
