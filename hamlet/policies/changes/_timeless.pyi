from collections.abc import Callable
from typing import Any

from hamlet.policies.changes._changes import Line, Operator

Row = tuple[int, ...]

class Event(Operator):
    def __init__(self, key: tuple[str, int], constants: Any, equal: Any, columns: tuple[int, ...]) -> None: ...

class Position(Operator):
    def __init__(self, name: str) -> None: ...

class Constant(Operator):
    def __init__(self, held: list[Row]) -> None: ...

class Shape(Operator):
    def __init__(
        self, child: Operator, constants: Any, equal: Any, columns: tuple[int, ...], counted: bool
    ) -> None: ...

class Compare:
    def __init__(
        self, word: str, left: int, right: int, constant: int, negated: bool, other: Callable[[Row], bool]
    ) -> None: ...
    def __call__(self, row: Row) -> bool: ...

class Filter(Operator):
    def __init__(self, child: Operator, test: Callable[[Row], bool]) -> None: ...

class Extend(Operator):
    def __init__(self, child: Operator, term: Callable[[Row], int]) -> None: ...

class Join(Operator):
    def __init__(
        self,
        left: Operator,
        right: Operator,
        on_left: tuple[int, ...],
        on_right: tuple[int, ...],
        rest: tuple[int, ...],
    ) -> None: ...

class Minus(Operator):
    def __init__(
        self, left: Operator, right: Operator, on_left: tuple[int, ...], on_right: tuple[int, ...]
    ) -> None: ...

class Union(Operator):
    def __init__(self, left: Operator, right: Operator, order: tuple[int, ...]) -> None: ...

class Aggregate(Operator):
    def __init__(
        self,
        child: Operator,
        operator: str,
        place: int,
        groups: tuple[int, ...],
        make: Callable[[], Any],
        code: Callable[[Any], int],
        value: Callable[[int], Any],
        nothing: int,
    ) -> None: ...

class Answers:
    seen: int
    count: int
    def __init__(self, goal: Operator) -> None: ...
    def take(self, line: Line) -> list[tuple[int, int, list[Row]]]: ...
