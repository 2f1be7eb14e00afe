from typing import Any

import numpy.typing as npt

from hamlet.patterns.automaton._walk import Matches, Table

class Search:
    truth: dict[Any, bool]
    asked: dict[Any, tuple[int, int, npt.NDArray[Any], int, int]]
    work: int
    waits: bool
    def __init__(
        self,
        table: Table,
        start_step: int,
        members: npt.NDArray[Any],
        slots: npt.NDArray[Any],
        columns: list[tuple[npt.NDArray[Any], npt.NDArray[Any]]],
        sums: npt.NDArray[Any],
        programs: list[Any],
        keep: npt.NDArray[Any],
        all_labels: bool,
    ) -> None: ...
    def start(self, row: int, most: int, number: int, partition: int, max_steps: int, guess: bool) -> None: ...
    def advance(
        self,
        found: Matches,
        partition: int,
        row: int,
        end: int,
        number: int,
        horizon: npt.NDArray[Any],
        skip: int,
        member: npt.NDArray[Any],
        max_steps: int,
        most_work: int,
    ) -> tuple[int, int, int]: ...
