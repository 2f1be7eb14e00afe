from typing import Any

from hamlet.streams._store import Store, Stream, Tally, WindowTable

def text_of(value: Any) -> str: ...

class Node:
    family: int

class ConstantNode(Node):
    def __init__(self, family: int, value: Any) -> None: ...

class ParameterNode(Node):
    def __init__(self, family: int, index: int, alone: bool) -> None: ...

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

class FloatNode(Node):
    def __init__(self, operator: int, left: Node, right: Node) -> None: ...

class IntegerNode(Node):
    def __init__(self, operator: int, left: Node, right: Node) -> None: ...

class CompareNode(Node):
    def __init__(self, operator: int, left: Node, right: Node) -> None: ...

class LazyNode(Node):
    def __init__(self, decides: bool, left: Node, right: Node) -> None: ...

class UnaryNode(Node):
    def __init__(self, operator: str, operand: Node, mask: int) -> None: ...

class ChoiceNode(Node):
    def __init__(self, condition: Node, left: Node, right: Node) -> None: ...

class DefaultNode(Node):
    def __init__(self, operand: Node, value: Node) -> None: ...

class TupleNode(Node):
    def __init__(self, parts: list[Node]) -> None: ...

class PartNode(Node):
    def __init__(self, family: int, operand: Node, index: int) -> None: ...

class FunctionNode(Node):
    def __init__(self, name: str, operand: Node) -> None: ...

class LogNode(Node):
    def __init__(self, rounds: bool, value: Node, other: Node) -> None: ...

class CastNode(Node):
    def __init__(self, family: int, operand: Node) -> None: ...

class FormatNode(Node):
    def __init__(self, template: str, arguments: list[Node]) -> None: ...

class MatchNode(Node):
    def __init__(self, text: Node, pattern: str) -> None: ...
