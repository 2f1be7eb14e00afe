from collections.abc import Sequence

from hamlet.policies.changes._changes import Line, Operator

Row = tuple[int, ...]

class Until(Operator):
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

class Eventually(Operator):
    def __init__(self, child: Operator, least: int, most: int, undecided: Sequence[tuple[int, int, Row]]) -> None: ...
    def undecided(self, line: Line) -> list[tuple[int, int, Row]]: ...

class Always(Operator):
    def __init__(
        self,
        child: Operator,
        least: int,
        most: int,
        undecided: Sequence[tuple[int, int, Row]],
        going: list[tuple[int, Row]],
    ) -> None: ...
    def kept(self) -> tuple[list[tuple[int, int, Row]], list[tuple[int, Row]]]: ...
