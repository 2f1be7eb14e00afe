from typing import Any

import numpy as np
import numpy.typing as npt

def looked_up(numbers: npt.NDArray[np.signedinteger[Any]], table: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]: ...
def sifted(
    numbers: npt.NDArray[np.signedinteger[Any]], table: npt.NDArray[np.int32]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32] | None]: ...
def ascending(numbers: npt.NDArray[np.int64], seconds: npt.NDArray[np.int64] | None = None) -> bool: ...
