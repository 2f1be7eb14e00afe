from hamlet.policies.changes._changes import Block, Line, Operator

Row = tuple[int, ...]

class Shift(Operator):
    def __init__(self, child: Operator, back: bool, least: int, most: int | None, held: list[Row]) -> None: ...
    @property
    def relation(self) -> tuple[list[Row], list[Block]]: ...

class Since(Operator):
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

class Once(Operator):
    def __init__(self, child: Operator, least: int, most: int | None, alive: list[tuple[int, int, Row]]) -> None: ...
    def alive(self, line: Line) -> list[tuple[int, int, Row]]: ...

class Historically(Operator):
    def __init__(self, child: Operator, least: int, most: int | None, periods: list[tuple[int, int, Row]]) -> None: ...
    def periods(self) -> list[tuple[int, int, Row]]: ...
