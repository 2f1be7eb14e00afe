"""Claims and what they follow from, which proofs of policies and values of specifications have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Self, TypeVar


class Claim(Protocol):
    """A claim that follows from others."""

    place: int

    @property
    def below(self) -> Sequence[Self]:
        """What it follows from."""


Node = TypeVar("Node", bound=Claim)


def in_order(claim: Node) -> list[Node]:
    """A claim and all that it follows from, each behind what is below it, with their places."""
    made: list[Node] = []
    stack: list[tuple[Node, int]] = [(claim, 0)]
    seen = {id(claim)}
    while stack:
        node, turn = stack.pop()
        if turn < len(node.below):
            stack.append((node, turn + 1))
            child = node.below[turn]
            if id(child) not in seen:
                seen.add(id(child))
                stack.append((child, 0))
        else:
            node.place = len(made)
            made.append(node)
    return made
