from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

class LogMistake(Exception):
    args: tuple[str, int, bytes]

class LogScanner:
    unknown: int
    points: int
    commands: int
    def __init__(
        self, predicates: Sequence[tuple[bytes, Sequence[int], bool]], ignore_unknown: bool = ..., any_order: bool = ...
    ) -> None: ...
    def scan(self, buffer: bytes, final: bool) -> int: ...
    def widen(self) -> None: ...
    def take(
        self,
    ) -> tuple[
        npt.NDArray[np.int64],
        list[tuple[int, npt.NDArray[np.int64], list[npt.NDArray[np.generic] | tuple[npt.NDArray[np.int32], bytes]]]],
    ]: ...
