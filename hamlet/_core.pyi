from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hamlet.engine.sharing import Sharing
from hamlet.kernel.dicts import Listing
from hamlet.kernel.memory import Budget

COMPONENTS: dict[str, int]
SOURCES: dict[str, int]
POLICIES: dict[str, int]
OPERATORS: dict[str, int]
FEATURES: dict[str, int]
DECISIONS: dict[int, str]
RECORD: np.dtype[np.void]

class KernelOverflow(Exception):
    query: int
    predicate: int
    place: int
    row: int

class Kernel:
    @property
    def counters(self) -> dict[str, int]: ...
    @property
    def work(self) -> dict[str, tuple[int, int, int]]: ...
    @property
    def reached(self) -> dict[str, int]: ...
    def __init__(
        self,
        tables: Sequence[Any],
        floating: Sequence[int] = (),
        sharing: Sharing | None = None,
        budget: Budget | None = None,
        bands: Sequence[Any] = (),
        whole_from: int = ...,
        sheets: Sequence[int] = (),
        allowed: int = ...,
        features: int = ...,
        alone: Sequence[int] = ...,
    ) -> None: ...
    def add_class(self, entries: Sequence[tuple[int, Sequence[int], Sequence[int], int]], type: int) -> int: ...
    def adopt(self, other: Kernel, widened: Sequence[Sequence[tuple[int, int]]]) -> None: ...
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
    @property
    def waiting(self) -> int: ...
    def take_trace(self) -> tuple[npt.NDArray[np.void], npt.NDArray[np.int32]]: ...
    def take_listed(
        self, listings: list[Listing], ranks: npt.NDArray[np.int64], limit: int, values: list[list[Any]]
    ) -> list[tuple[int, list[dict[str, Any]]]]: ...
    def drop(self, query: int) -> None: ...
    def rows(
        self, query: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.uint64]]: ...
    def take_sheet(
        self, query: int
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64], npt.NDArray[np.int64], list[tuple[Any, Any]]] | None: ...
    def standing(
        self, query: int, place: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.uint64]]: ...
