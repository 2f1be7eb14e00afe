from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

class Columns:
    def __init__(
        self,
        kinds: Sequence[str],
        columns: Sequence[Any],
        missing: Sequence[npt.NDArray[np.uint8] | None],
        null: str,
    ) -> None: ...

def rows_of(befores: list[str], columns: Columns, ending: str, rows: int) -> str: ...
def tuples_of(
    heads: list[str],
    starts: npt.NDArray[np.int64],
    order: npt.NDArray[np.int64],
    columns: Columns,
    opened: str,
    between: str,
    closed: str,
    holds: npt.NDArray[np.uint8],
) -> str: ...
