from typing import Any

INSTANCE_BYTES: int

class Fault(ArithmeticError): ...

class Stream:
    number: int
    name: str
    family: int
    keyed: bool
    spawned: bool
    def __init__(
        self, store: Store, number: int, name: str, family: int, depth: int, keep: int, keyed: bool, spawned: bool
    ) -> None: ...
    def begin(self) -> None: ...
    def instances(self) -> int: ...
    def kept(self, most: int | None) -> int: ...
    def state(self) -> list[Any]: ...
    def load(self, state: list[Any]) -> None: ...

class Store:
    streams: list[Stream]
    tables: list[WindowTable]
    tallies: list[Tally]
    bytes: int
    def __init__(self) -> None: ...
    def time(self) -> int: ...
    def state(self) -> dict[str, Any]: ...
    def load(self, state: dict[str, Any]) -> None: ...

class WindowTable:
    number: int
    def __init__(
        self,
        store: Store,
        number: int,
        target: Stream,
        reader: Stream,
        function: int,
        family: int,
        result: int,
        percentile: int,
        duration: int,
        count: int,
        exactly: bool,
        period: tuple[int, int],
        local: bool,
        per_reader: bool,
    ) -> None: ...
    def begin(self) -> None: ...
    def kept(self) -> int: ...

class Tally:
    number: int
    def __init__(
        self, store: Store, number: int, target: Stream, only_fresh: bool, function: int, result: int, percentile: int
    ) -> None: ...
