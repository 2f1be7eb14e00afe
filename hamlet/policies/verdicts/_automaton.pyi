import numpy as np
import numpy.typing as npt

from hamlet.policies.verdicts.progression import Progression

class Automaton:
    progression: Progression
    width: int
    all_points: bool
    @property
    def states(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def __init__(self, progression: Progression, width: int) -> None: ...
    def stream(self) -> Stream: ...

class Stream:
    points: int
    state: int
    @property
    def nbytes(self) -> int: ...
    @property
    def undecided(self) -> int: ...
    def __init__(self, automaton: Automaton) -> None: ...
    def copy(self) -> Stream: ...
    def feed(self, times: npt.NDArray[np.int64], atoms: npt.NDArray[np.int32]) -> None: ...
    def move(self, automaton: Automaton, state: int) -> None: ...
    def finish(self, atoms: int = 0) -> None: ...
    def saved(
        self,
    ) -> tuple[
        list[int],
        npt.NDArray[np.int64],
        npt.NDArray[np.int64],
        tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int8]],
    ]: ...
    def load(
        self,
        numbers: list[int],
        slots: npt.NDArray[np.int64],
        point_runs: npt.NDArray[np.int64],
        times: npt.NDArray[np.int64],
        offsets: npt.NDArray[np.int64],
        verdicts: npt.NDArray[np.int8],
    ) -> None: ...
    def take(
        self,
    ) -> tuple[
        npt.NDArray[np.int64],
        npt.NDArray[np.int64],
        npt.NDArray[np.int8],
        npt.NDArray[np.int64] | None,
        npt.NDArray[np.int64] | None,
    ]: ...
