from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hamlet.kernel.interface import Interface
from hamlet.memory.budget import Budget

SEMANTICS: dict[str, int]
SIZES: dict[str, int]

def hash_texts(texts: Sequence[str]) -> npt.NDArray[np.uint64]: ...

class Matching(Interface):
    def __init__(
        self,
        tables: Sequence[Any],
        budget: Budget | None = None,
        apart: bool = False,
        ordered_queries: Sequence[int] = (),
    ) -> None: ...
    def add_class(self, entries: Sequence[tuple[int, Sequence[int], Sequence[int], bool]], type: int) -> int: ...
    def adopt(
        self,
        other: Matching,
        widened: Sequence[
            tuple[
                Sequence[tuple[int, int]],
                Sequence[int],
                Sequence[tuple[int, int]],
                Sequence[int],
                Sequence[tuple[int, int]],
            ]
        ],
    ) -> None: ...
    @property
    def due(self) -> int: ...
    def events(self, query: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]: ...
    def marks(self, query: int) -> npt.NDArray[np.int64]: ...
    def sets(self, query: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.uint8]]: ...
