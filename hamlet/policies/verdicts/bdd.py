"""Reduced ordered binary decision diagrams: Boolean expressions of which equal ones are one number.

An expression is an integer: 0 is false, 1 is true, others are places in a table of (variable, low, high), where the
variable is smaller than those of both branches. Variables are numbered from 0 as the user likes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

FALSE, TRUE = 0, 1
_LAST = 1 << 62  # behind all variables, where the constants stand


class Diagrams:
    """A table of expressions.

    Examples
    --------
    >>> table = Diagrams()
    >>> p, q = table.variable(0), table.variable(1)
    >>> table.both(p, q) == table.negated(table.either(table.negated(p), table.negated(q)))
    True
    """

    def __init__(self) -> None:
        self._nodes: list[tuple[int, int, int]] = [(_LAST, 0, 0), (_LAST, 1, 1)]
        self._places: dict[tuple[int, int, int], int] = {}
        self._known: dict[tuple[int, int, int], int] = {}

    def __len__(self) -> int:
        return len(self._nodes)

    @property
    def nbytes(self) -> int:
        """Bytes that are held, roughly."""
        return 250 * len(self._nodes) + 200 * len(self._known)

    def variable(self, number: int) -> int:
        """The expression that is one variable."""
        return self._node(number, FALSE, TRUE)

    def _node(self, variable: int, low: int, high: int) -> int:
        if low == high:
            return low
        key = (variable, low, high)
        found = self._places.get(key)
        if found is None:
            found = self._places[key] = len(self._nodes)
            self._nodes.append(key)
        return found

    def choice(self, condition: int, then: int, otherwise: int) -> int:
        """``then`` where the condition holds, else ``otherwise``."""
        if condition == TRUE or then == otherwise:
            return then
        if condition == FALSE:
            return otherwise
        key = (condition, then, otherwise)
        found = self._known.get(key)
        if found is not None:
            return found
        nodes = self._nodes
        top = min(nodes[condition][0], nodes[then][0], nodes[otherwise][0])
        parts = [nodes[each][1:] if nodes[each][0] == top else (each, each) for each in key]
        low = self.choice(parts[0][0], parts[1][0], parts[2][0])
        high = self.choice(parts[0][1], parts[1][1], parts[2][1])
        found = self._known[key] = self._node(top, low, high)
        return found

    def negated(self, expression: int) -> int:
        """Not."""
        return self.choice(expression, FALSE, TRUE)

    def both(self, left: int, right: int) -> int:
        """And."""
        return self.choice(left, right, FALSE)

    def either(self, left: int, right: int) -> int:
        """Or."""
        return self.choice(left, TRUE, right)

    def below(self, expressions: Iterable[int]) -> list[tuple[int, int, int, int]]:
        """Expressions and their parts as (expression, variable, low, high), parts first; without true and false."""
        found: dict[int, tuple[int, int, int, int]] = {}
        for root in expressions:
            todo = [root]
            while todo:
                each = todo[-1]
                variable, low, high = self._nodes[each]
                parts = [part for part in (low, high) if part > TRUE and part not in found]
                if each <= TRUE or each in found or not parts:
                    todo.pop()
                    if each > TRUE:
                        found.setdefault(each, (each, variable, low, high))
                else:
                    todo += parts
        return list(found.values())

    def replaced(self, expression: int, value: Callable[[int], int], known: dict[int, int]) -> int:
        """The expression with another one in place of each variable.

        Parameters
        ----------
        expression : int
        value : callable
            Gives an expression for a variable's number.
        known : dict
            What has been replaced by the same values already; grows.
        """
        if expression <= TRUE:
            return expression
        found = known.get(expression)
        if found is None:
            variable, low, high = self._nodes[expression]
            then = self.replaced(high, value, known)
            otherwise = self.replaced(low, value, known)
            found = known[expression] = self.choice(value(variable), then, otherwise)
        return found
