from datetime import date, datetime
from typing import Any

import numpy.typing as npt

class Live:
    def __init__(
        self,
        kinds: npt.NDArray[Any],
        first: npt.NDArray[Any],
        second: npt.NDArray[Any],
        variables: npt.NDArray[Any],
        start: int,
        programs: list[tuple[npt.NDArray[Any], npt.NDArray[Any], bool] | None],
        cells: int,
        back: int,
        ahead: int,
        skip: int,
        member: npt.NDArray[Any],
        within: int | float | None,
        searching: tuple[Any, ...] | None,
        later: tuple[npt.NDArray[Any], npt.NDArray[Any]] | None,
        unmatched: bool,
        max_steps: int,
    ) -> None: ...

def days(value: date) -> int: ...
def microseconds(value: datetime) -> int: ...
def without_row(code: npt.NDArray[Any], reals: npt.NDArray[Any], real: bool) -> int | float | None: ...

class Partition:
    rows: list[tuple[Any, ...]]
    start: int
    number: int
    covered: int
    begins: bool
    size: int
    deadline: int | float | None
    def __init__(self, live: Live) -> None: ...
    def take(self, row: tuple[Any, ...], time: Any, values: tuple[Any, ...]) -> None: ...
    def settle(self, known_time: Any, found: list[tuple[int, int, int, Any]]) -> tuple[int, int] | None: ...
    def forget(self, back: int) -> int: ...
