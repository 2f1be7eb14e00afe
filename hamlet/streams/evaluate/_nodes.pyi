from typing import Any

from hamlet.streams.evaluate._words import Words

class Node:
    family: int
    columnar: bool
    coded: bool
    celled: bool

class ConstantNode(Node):
    def __init__(self, family: int, value: Any, words: Words) -> None: ...
