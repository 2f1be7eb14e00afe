from collections.abc import Callable, Sequence
from typing import Any

class Listing:
    part: int
    index: int
    def __init__(
        self,
        part: int,
        index: int,
        name: str,
        names: Sequence[str],
        items: Sequence[tuple[str, int, int, Callable[..., Any] | None]],
        within: int,
        slide: int,
        present: Callable[[int], Any] | None,
        beyond: Callable[[tuple[float, int]], Any],
    ) -> None: ...
