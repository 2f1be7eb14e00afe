"""Expressions while they are being checked: names resolved, types still unknowns.

A `Node` is what becomes one expression of `hamlet.streams.program.ir`; its kind is named like the class there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from hamlet.errors import Span
from hamlet.streams.check.declarations import Declared
from hamlet.streams.check.unify import Type
from hamlet.streams.program.ir import Access, Value


@dataclass(slots=True, eq=False)
class WindowDraft:
    """What a window or an instance aggregate reads, but its type."""

    function: str
    percentile: int = 0
    duration: Fraction | None = None
    count: int | None = None
    exactly: bool = False
    selection: str = ""  # all, fresh: of an instance aggregate


@dataclass(slots=True, eq=False)
class Node:
    """One expression.

    Attributes
    ----------
    kind : str
        ``constant parameter unary binary choice tuple part default call read window instances``, or ``wrong`` for
        what has a mistake, which is reported.
    parts : list of Node
        Operands, arguments, in order.
    name : str
        The operator or function.
    value : Value
        Of a constant; the place of a parameter or part.
    stream : Declared or None
        What a read, window or instance aggregate is over.
    """

    kind: str
    type: Type
    span: Span
    parts: list[Node] = field(default_factory=list)
    name: str = ""
    value: Value | None = None
    stream: Declared | None = None
    access: Access = Access.NOW
    amount: int = 0
    window: WindowDraft | None = None

    @property
    def synchronous(self) -> bool:
        """Whether it reads a value that a clause must make sure of."""
        discrete = self.window is not None and self.window.count is not None
        return (self.kind == "read" and self.access in (Access.NOW, Access.OFFSET)) or discrete


def walk(*nodes: Node | None) -> list[Node]:
    """The nodes and all inside them, outer before inner."""
    found: list[Node] = []
    waiting = [each for each in reversed(nodes) if each is not None]
    while waiting:
        each = waiting.pop()
        found.append(each)
        waiting.extend(reversed(each.parts))
    return found


@dataclass(slots=True, eq=False)
class ClauseDraft:
    """A spawn, eval or close clause with its expressions as nodes."""

    word: str  # spawn, eval, close
    condition: Node | None
    expressions: list[Node]
    span: Span

    def nodes(self) -> list[Node]:
        """All nodes of the clause."""
        return walk(self.condition, *self.expressions)
