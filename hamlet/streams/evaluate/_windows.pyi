from hamlet.streams.evaluate._store import Store, Stream

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
        paired: bool,
    ) -> None: ...
    def begin(self) -> None: ...
    def kept(self) -> int: ...
