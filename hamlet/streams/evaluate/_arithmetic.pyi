from hamlet.streams.evaluate._nodes import Node

class FloatNode(Node):
    def __init__(self, family: int, operator: int, left: Node, right: Node) -> None: ...

class IntegerNode(Node):
    def __init__(self, family: int, operator: int, left: Node, right: Node) -> None: ...

class CompareNode(Node):
    def __init__(self, operator: int, left: Node, right: Node) -> None: ...
