from collections.abc import Callable
from typing import Any

from hamlet.streams.evaluate._nodes import Node

def text_of(value: Any) -> str: ...

class TupleNode(Node):
    def __init__(self, parts: list[Node]) -> None: ...

class PartNode(Node):
    def __init__(self, family: int, operand: Node, index: int) -> None: ...

class FormatNode(Node):
    def __init__(self, template: str, arguments: list[Node]) -> None: ...

class MatchNode(Node):
    def __init__(self, text: Node, search: Callable[[str], bool]) -> None: ...

class AtNode(Node):
    def __init__(self, text: Node, index: Node) -> None: ...
