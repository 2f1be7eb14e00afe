"""Strongly connected parts of a graph, and a cycle in one; without recursion, for graphs of any depth."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence


def components(nodes: Sequence[int], edges: Callable[[int], Iterable[int]]) -> list[list[int]]:
    """The groups of nodes that reach each other, a group behind all that it reaches.

    Parameters
    ----------
    nodes : sequence of int
        Edges to others are left out.
    edges : callable
        What a node reaches in one step.

    Returns
    -------
    list of list of int
        Every node is in one group; within a group they stand as in `nodes`. Source: Tarjan 1972.
    """
    place = {node: index for index, node in enumerate(nodes)}
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    found: list[list[int]] = []
    for root in nodes:
        if root in index:
            continue
        work = [(root, iter(list(edges(root))))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, following = work[-1]
            for target in following:
                if target not in place:
                    continue
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, iter(list(edges(target)))))
                    break
                if target in on_stack:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    group = [stack.pop()]
                    while group[-1] != node:
                        group.append(stack.pop())
                    on_stack.difference_update(group)
                    found.append(sorted(group, key=place.__getitem__))
    return found


def cycle(group: Sequence[int], edges: Callable[[int], Iterable[int]]) -> list[int]:
    """A shortest way from the first node of a group back to itself, the node at both ends."""
    start, inside = group[0], set(group)
    before: dict[int, int] = {}
    waiting = [start]
    for node in waiting:
        for target in edges(node):
            if target == start:
                path = [start, node] if node != start else [start]
                while path[-1] != start:
                    path.append(before[path[-1]])
                return [start, *reversed(path[:-1])] if len(path) > 1 else [start, start]
            if target in inside and target not in before:
                before[target] = node
                waiting.append(target)
    raise AssertionError(group)
