from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Rows = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.uint64]]

class KernelOverflow(Exception):
    query: int
    predicate: int
    place: int
    row: int

class TooManyGroups(Exception):
    query: int

class Interface:
    @property
    def counters(self) -> dict[str, int]: ...
    @property
    def waiting(self) -> int: ...
    def process(
        self,
        keys: npt.NDArray[np.integer[Any]],
        times: npt.NDArray[np.int64],
        orders: npt.NDArray[np.int64] | None,
        classes: npt.NDArray[np.integer[Any]],
        columns: Sequence[tuple[npt.NDArray[Any], npt.NDArray[np.uint8] | None]],
        ranks: npt.NDArray[np.int64],
        key_count: int,
        part: int = 0,
        parts: int = 1,
        until: int = ...,
        rows: npt.NDArray[np.int32] | None = ...,
        sequence: tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]] | None = ...,
        distinct: bool = False,
        hashes: npt.NDArray[np.uint64] | None = ...,
    ) -> None: ...
    def reads_bytes(self, rows: int, key_count: int) -> bool: ...
    def takes_whole(self, rows: int) -> bool: ...
    def advance(self, time: int) -> None: ...
    def memory(self, query: int) -> npt.NDArray[np.int64]: ...
    def save(self) -> bytes: ...
    def load(self, data: bytes | memoryview, key_count: int, events: int, limits: npt.NDArray[np.int64]) -> None: ...
    def live(self) -> npt.NDArray[np.uint8]: ...
    def forget(self) -> None: ...
    def closed(self) -> dict[int, int]: ...
    def drop(self, query: int) -> None: ...
    def rows(self, query: int) -> Rows: ...
    def take_columns(
        self, query: int
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64], npt.NDArray[np.int64], list[tuple[Any, Any]]] | None: ...
