from typing import Any

import numpy.typing as npt

class Matches:
    count: int
    error: tuple[int, int, int] | None
    def add(self, start: int, number: int, partition: int, steps: npt.NDArray[Any]) -> None: ...
    def renumber(self, numbers: npt.NDArray[Any]) -> None: ...
    def cut(self, count: int) -> None: ...
    def in_order(self) -> Matches: ...
    def rows(self, first: int = 0) -> npt.NDArray[Any]: ...
    def steps(self, first: int = 0) -> npt.NDArray[Any]: ...
    def arrays(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]: ...

class Table:
    def __init__(
        self,
        kinds: npt.NDArray[Any],
        first: npt.NDArray[Any],
        second: npt.NDArray[Any],
        variables: npt.NDArray[Any],
        masks: list[npt.NDArray[Any]],
        bounded: bool,
        bounds: npt.NDArray[Any] | None = None,
    ) -> None: ...
    def edges(self, begins: bool, open_end: bool) -> None: ...
    def prepared(self, low: int, high: int, end: int) -> None: ...

def rows_read(
    members: npt.NDArray[Any],
    readings: npt.NDArray[Any],
    variables: npt.NDArray[Any],
    steps: npt.NDArray[Any],
) -> int: ...
def walk(
    table: Table,
    start_step: int,
    offsets: npt.NDArray[Any],
    horizon: npt.NDArray[Any],
    skip: int,
    member: npt.NDArray[Any],
) -> Matches: ...
def walk_all(
    table: Table,
    starts: npt.NDArray[Any],
    offsets: npt.NDArray[Any],
    skips: npt.NDArray[Any],
    members: npt.NDArray[Any],
) -> list[Matches]: ...
def walk_on(
    table: Table,
    found: Matches,
    start_step: int,
    partition: int,
    low: int,
    high: int,
    begin: int,
    number: int,
    horizon: npt.NDArray[Any],
    skip: int,
    member: npt.NDArray[Any],
) -> tuple[int, int]: ...
