from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hamlet.engine.sharing import Sharing
from hamlet.kernel.interface import Interface, Rows
from hamlet.kernel.state.dicts import Listing
from hamlet.memory.budget import Budget

COMPONENTS: dict[str, int]
SOURCES: dict[str, int]
POLICIES: dict[str, int]
OPERATORS: dict[str, int]
FEATURES: dict[str, int]
DECISIONS: dict[int, str]
RECORD: np.dtype[np.void]

class Kernel(Interface):
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
        ordered_queries: Sequence[int] = (),
        allowed: int = ...,
        features: int = ...,
        alone: Sequence[int] = ...,
    ) -> None: ...
    def add_class(self, entries: Sequence[tuple[int, Sequence[int], Sequence[int], int]], type: int) -> int: ...
    def adopt(self, other: Kernel, widened: Sequence[Sequence[tuple[int, int]]]) -> None: ...
    def take_trace(self) -> tuple[npt.NDArray[np.void], npt.NDArray[np.int32]]: ...
    def take_listed(
        self, listings: list[Listing], ranks: npt.NDArray[np.int64], limit: int, values: list[list[Any]]
    ) -> list[tuple[int, list[dict[str, Any]]]]: ...
    def exported(self, query: int, place: int) -> Rows: ...
