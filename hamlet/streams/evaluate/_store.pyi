from typing import Any

from hamlet.streams.evaluate._windows import WindowTable
from hamlet.streams.evaluate._words import Words

INSTANCE_BYTES: int

class Stream:
    number: int
    name: str
    family: int
    keyed: bool
    spawned: bool
    key_family: int
    def __init__(
        self,
        store: Store,
        number: int,
        name: str,
        family: int,
        depth: int,
        keep: int,
        keyed: bool,
        spawned: bool,
        key_family: int,
        coded: bool,
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
    words: Words
    bytes: int
    def __init__(self) -> None: ...
    def tidy(self, at_once: bool = False) -> None: ...
    def time(self) -> int: ...
    def state(self) -> dict[str, Any]: ...
    def load(self, state: dict[str, Any]) -> None: ...

class Tally:
    number: int
    def __init__(
        self, store: Store, number: int, target: Stream, only_fresh: bool, function: int, result: int, percentile: int
    ) -> None: ...
