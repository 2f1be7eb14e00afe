"""The template of a pattern: a finite automaton over its variables, the optimizer's and the compiler's common ground.

Source: HAMLET (SIGMOD'21) §3.1 (query template, after GRETA, VLDB'17, §4); guards are ours (docs/language.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

START = 0


@dataclass(frozen=True, slots=True)
class Transition:
    """An event bound to the target's variable extends a partial trend from `source` to `target`.

    `guards` holds indices into `Template.guards`: none of them may have a match strictly between the two events
    (between the window's begin and the event where the source is the start).
    """

    source: int
    target: int
    guards: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Final:
    """A trend may end in `state`; none of `guards` may match between its last event and the window's end."""

    state: int
    guards: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Guard:
    """A negated pattern: its text, for people, and its own template."""

    text: str
    template: Template


@dataclass(frozen=True)
class Template:
    """A deterministic automaton over (variable, set of guards), so that each trend has exactly one run.

    State 0 is the start and stands for the empty trend. Every other state is entered by one variable only, so a state
    is a *role*: a partial trend "stands in" state p when its last event was bound there.

    Attributes
    ----------
    variables : tuple of str
        The variables of the positive pattern, by first mention.
    types : tuple of str
        Event type of each variable.
    labels : tuple of int
        For each state the index of the variable that enters it; -1 for the start.
    transitions : tuple of Transition
    finals : tuple of Final
        Never the start: a trend has at least one event.
    guards : tuple of Guard
        Negated patterns; textually equal ones are one.

    Source: HAMLET §3.1; it is deterministic over (variable, set of guards).
    """

    variables: tuple[str, ...]
    types: tuple[str, ...]
    labels: tuple[int, ...]
    transitions: tuple[Transition, ...]
    finals: tuple[Final, ...]
    guards: tuple[Guard, ...] = ()

    @property
    def size(self) -> int:
        """Number of states, the start included."""
        return len(self.labels)

    def variable(self, state: int) -> str:
        """The variable that enters a state other than the start."""
        return self.variables[self.labels[state]]

    @cached_property
    def neighbours(self) -> frozenset[tuple[str, str]]:
        """Pairs of variables (X, Y) such that in some word Y directly follows X."""
        return frozenset(
            (self.variable(step.source), self.variable(step.target))
            for step in self.transitions
            if step.source != START
        )

    @cached_property
    def kleene_parts(self) -> tuple[frozenset[int], ...]:
        """The strongly connected parts that hold a cycle, by first state: what a Kleene operator made (Def. 3.1)."""
        return cyclic_parts(range(self.size), [(step.source, step.target) for step in self.transitions])

    @cached_property
    def kleene_states(self) -> frozenset[int]:
        """States that lie on a cycle, and so what queries may share (Def. 3.1)."""
        return frozenset[int]().union(*self.kleene_parts)


def cyclic_parts(states: Iterable[int], edges: Iterable[tuple[int, int]]) -> tuple[frozenset[int], ...]:
    """The strongly connected parts of a graph that hold a cycle, by first state.

    Parameters
    ----------
    states : iterable of int
    edges : iterable of (int, int)
        Those that leave the states are not looked at.

    Source: Tarjan 1972, without recursion.
    """
    targets: dict[int, list[int]] = {state: [] for state in states}
    for source, target in edges:
        if source in targets and target in targets:
            targets[source].append(target)
    index: dict[int, int] = {}  # order of the first visit
    low: dict[int, int] = {}  # the earliest state on the stack that is known to be reached
    stack: list[int] = []
    waiting: set[int] = set()  # what is on the stack
    found: list[frozenset[int]] = []
    for root in targets:
        path = [] if root in index else [(root, iter(targets[root]))]
        while path:
            state, rest = path[-1]
            if state not in index:
                index[state] = low[state] = len(index)
                stack.append(state)
                waiting.add(state)
            for target in rest:
                if target not in index:
                    path.append((target, iter(targets[target])))
                    break
                if target in waiting:
                    low[state] = min(low[state], index[target])
            if path[-1][0] != state:
                continue
            path.pop()
            if path:
                low[path[-1][0]] = min(low[path[-1][0]], low[state])
            if low[state] == index[state]:
                cut = stack.index(state)
                part = frozenset(stack[cut:])
                del stack[cut:]
                waiting -= part
                if len(part) > 1 or state in targets[state]:
                    found.append(part)
    return tuple(sorted(found, key=min))
