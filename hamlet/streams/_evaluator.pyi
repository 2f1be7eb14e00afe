from collections.abc import Sequence
from typing import Any

from hamlet.input.columns import Int64Array
from hamlet.streams._nodes import Node
from hamlet.streams._store import Store, Stream

class DeadlineLimit(Exception): ...
class MemoryLimit(Exception): ...

class Clause:
    def __init__(
        self, pacing: int, local: bool, condition: Node | None, value: Node | None, binding: list[Node] | None
    ) -> None: ...

class Task:
    def __init__(
        self, stream: Stream, clauses: list[Clause], arguments: list[Node] | None, emits: bool, pacings: list[int]
    ) -> None: ...

class Closer:
    def __init__(self, stream: Stream, clause: Clause, narrow: bool) -> None: ...
    def watch(self, task: Task) -> None: ...

class Evaluator:
    store: Store
    rows: list[tuple[int, int, Any, Any]]
    events: int
    deadlines: int
    current: Stream | None
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
    ) -> None: ...
    def feed(self, times: Int64Array, start: int, tick: int, columns: Sequence[Any], first: int) -> None: ...
    def advance(self, until: int, inclusive: bool) -> None: ...
    def take(self) -> list[tuple[int, int, Any, Any]]: ...
    def state(self) -> dict[str, Any]: ...
    def load(self, state: dict[str, Any]) -> None: ...
