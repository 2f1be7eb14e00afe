from hamlet.streams.evaluate._nodes import Node
from hamlet.streams.evaluate._store import Store, Stream, Tally
from hamlet.streams.evaluate._windows import WindowTable

class ParameterNode(Node):
    def __init__(self, family: int, index: int, alone: bool, celled: bool) -> None: ...

class PlainRead(Node):
    def __init__(self, stream: Stream) -> None: ...

class ReadNode(Node):
    def __init__(
        self, store: Store, stream: Stream, access: int, amount: int, arguments: list[Node], own: bool
    ) -> None: ...

class WindowNode(Node):
    def __init__(self, table: WindowTable, arguments: list[Node]) -> None: ...

class TallyNode(Node):
    def __init__(self, tally: Tally) -> None: ...
