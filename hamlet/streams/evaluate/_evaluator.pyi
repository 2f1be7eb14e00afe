from collections.abc import Sequence
from typing import Any

from hamlet.input.columns import Int64Array
from hamlet.streams.evaluate._store import Store, Stream
from hamlet.streams.evaluate._tasks import Closer, Task

class DeadlineLimit(Exception): ...
class MemoryLimit(Exception): ...

class Evaluator:
    store: Store
    rows: list[tuple[int, int, Any, Any]]
    events: int
    deadlines: int
    current: Stream | None
    segments: bool
    def __init__(
        self,
        store: Store,
        inputs: list[Stream],
        pacings: list[tuple[object, ...]],
        tasks: list[tuple[Task, bool, bool]],
        closers: list[tuple[Closer, bool]],
        max_deadlines: int,
        span: int,
        cycle: int,
        max_memory: int,
        column_tasks: list[Task],
        segments: bool,
    ) -> None: ...
    def hint(self, place: int, stream: Stream) -> None: ...
    def feed(self, times: Int64Array, start: int, tick: int, columns: Sequence[Any]) -> None: ...
    def advance(self, until: int, inclusive: bool) -> None: ...
    def take(self) -> list[tuple[int, int, Any, Any]]: ...
    def state(self) -> dict[str, Any]: ...
    def load(self, state: dict[str, Any]) -> None: ...
