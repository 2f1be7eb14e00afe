from collections.abc import Callable, Iterable, Sequence
from typing import Any

Row = tuple[int, ...]

class Line:
    base: int
    known: int
    bound: int
    tables: Any
    def __init__(self, times: list[int], base: int, bound: int) -> None: ...
    def add(self, time: int) -> int: ...
    def forget(self, point: int) -> int: ...
    def tolist(self) -> list[int]: ...
    def at(self, point: int) -> int: ...
    @property
    def nbytes(self) -> int: ...

class Block:
    point: int
    gone: tuple[Row, ...]
    come: tuple[Row, ...]
    def __init__(self, point: int, gone: Iterable[Row], come: Iterable[Row]) -> None: ...

class Queue:
    def put(self, block: Block) -> None: ...
    def __len__(self) -> int: ...
    @property
    def waiting(self) -> list[Block]: ...

class Operator:
    children: list[Operator]
    queues: list[Queue]
    outs: list[Queue]
    seen: int
    done: int
    def step(self, line: Line) -> int: ...
    @property
    def rows(self) -> int: ...
    @property
    def oldest(self) -> int: ...
    def base(self) -> list[list[Row]]: ...

class Events(Operator):
    def __init__(self, key: tuple[str, int], constants: Any, equal: Any, columns: tuple[int, ...]) -> None: ...

class Positions(Operator):
    def __init__(self, name: str) -> None: ...

class Constants(Operator):
    def __init__(self, held: list[Row]) -> None: ...

class Shapes(Operator):
    def __init__(
        self, child: Operator, constants: Any, equal: Any, columns: tuple[int, ...], counted: bool
    ) -> None: ...

class Compare:
    def __init__(
        self, word: str, left: int, right: int, constant: int, negated: bool, other: Callable[[Row], bool]
    ) -> None: ...
    def __call__(self, row: Row) -> bool: ...

class Filters(Operator):
    def __init__(self, child: Operator, test: Callable[[Row], bool]) -> None: ...

class Extends(Operator):
    def __init__(self, child: Operator, term: Callable[[Row], int]) -> None: ...

class Joins(Operator):
    def __init__(
        self,
        left: Operator,
        right: Operator,
        on_left: tuple[int, ...],
        on_right: tuple[int, ...],
        rest: tuple[int, ...],
    ) -> None: ...

class Differences(Operator):
    def __init__(
        self, left: Operator, right: Operator, on_left: tuple[int, ...], on_right: tuple[int, ...]
    ) -> None: ...

class Unions(Operator):
    def __init__(self, left: Operator, right: Operator, order: tuple[int, ...]) -> None: ...

class Aggregates(Operator):
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

class Shifts(Operator):
    def __init__(self, child: Operator, back: bool, least: int, most: int | None, held: list[Row]) -> None: ...
    @property
    def relation(self) -> tuple[list[Row], list[Block]]: ...

class Pasts(Operator):
    def __init__(
        self,
        right: Operator,
        left: Operator | None,
        most: int | None,
        negated: bool,
        key: tuple[int, ...],
        alive: list[tuple[int, Row]],
    ) -> None: ...
    def alive(self, line: Line) -> list[tuple[int, Row]]: ...

class Delays(Operator):
    def __init__(self, child: Operator, least: int, most: int | None, alive: list[tuple[int, int, Row]]) -> None: ...
    def alive(self, line: Line) -> list[tuple[int, int, Row]]: ...

class Throughouts(Operator):
    def __init__(self, child: Operator, least: int, most: int | None, periods: list[tuple[int, int, Row]]) -> None: ...
    def periods(self) -> list[tuple[int, int, Row]]: ...

class Untils(Operator):
    def __init__(
        self,
        right: Operator,
        left: Operator | None,
        most: int,
        negated: bool,
        key: tuple[int, ...],
        undecided: Sequence[tuple[int, int, Row]],
        lefts: list[tuple[int, Row]],
    ) -> None: ...
    def undecided(self) -> list[tuple[int, int, Row]]: ...
    def lefts(self) -> list[tuple[int, Row]]: ...

class Eventuallys(Operator):
    def __init__(self, child: Operator, least: int, most: int, undecided: Sequence[tuple[int, int, Row]]) -> None: ...
    def undecided(self, line: Line) -> list[tuple[int, int, Row]]: ...

class Henceforths(Operator):
    def __init__(
        self,
        child: Operator,
        least: int,
        most: int,
        undecided: Sequence[tuple[int, int, Row]],
        going: list[tuple[int, Row]],
    ) -> None: ...
    def kept(self) -> tuple[list[tuple[int, int, Row]], list[tuple[int, Row]]]: ...

class Answers:
    seen: int
    count: int
    def __init__(self, goal: Operator) -> None: ...
    def take(self, line: Line) -> list[tuple[int, int, list[Row]]]: ...
