import numpy as np
import numpy.typing as npt

class Words:
    live: int
    bytes: int
    def codes(
        self,
        ends: npt.NDArray[np.int64],
        letters: npt.NDArray[np.uint8],
        present: npt.NDArray[np.uint8],
        out: npt.NDArray[np.uint64],
    ) -> None: ...
    def code(self, word: str) -> int: ...
    def crowded(self) -> bool: ...
    def sweep(self, held: set[int]) -> None: ...
