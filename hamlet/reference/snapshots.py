"""Snapshots of queries that share, and expressions over them. Importing this does not load sympy.

Source: HAMLET (SIGMOD'21) §3.3, Defs. 3.9-3.11.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import sympy

Expression = Any  # sympy.Expr, which has no types of its own


class Snapshots(Mapping[Any, dict[str, int]]):
    """The value of every snapshot for every query that it was made for, in the order in which they were made.

    Keys are sympy symbols; their names will do as well.

    Examples
    --------
    >>> import sympy
    >>> found = Snapshots({sympy.Symbol("x"): {"q1": 2, "q2": 1}})
    >>> found["x"] == found[sympy.Symbol("x")]
    True
    """

    def __init__(self, values: Mapping[Any, dict[str, int]]) -> None:
        self._symbols = {str(symbol): symbol for symbol in values}
        self._values = {str(symbol): each for symbol, each in values.items()}

    def __getitem__(self, snapshot: Any) -> dict[str, int]:
        return self._values[str(snapshot)]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._symbols.values())

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and self._values == {str(key): value for key, value in other.items()}

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._values)


@dataclass(frozen=True)
class Count:
    """The number of trends that an event ends, for some queries: one expression, and each query's value of it."""

    expression: Expression
    of_query: dict[str, int]


@dataclass
class Made:
    """The snapshots made so far."""

    values: dict[Expression, dict[str, int]] = field(default_factory=dict)
    graphlets: int = 0
    events: int = 0

    def of_graphlet(self, of_query: dict[str, int]) -> sympy.Symbol:
        """A snapshot of what flows into a graphlet."""
        self.graphlets += 1
        return self._symbol(("x", "y")[self.graphlets - 1] if self.graphlets < 3 else f"x{self.graphlets}", of_query)

    def of_event(self, of_query: dict[str, int]) -> sympy.Symbol:
        """A snapshot of an event whose queries disagree."""
        self.events += 1
        return self._symbol("z" if self.events == 1 else f"z{self.events}", of_query)

    def _symbol(self, name: str, of_query: dict[str, int]) -> sympy.Symbol:
        import sympy

        symbol = sympy.Symbol(name)
        self.values[symbol] = of_query
        return symbol

    def together(self, counts: Iterable[Count]) -> Expression | None:
        """One expression for all queries that match an event."""
        found = list(counts)
        if len({count.expression for count in found}) > 1:
            return self.of_event({name: value for count in found for name, value in count.of_query.items()})
        return found[0].expression if found else None


def evaluated(expression: Expression, values: Mapping[Any, dict[str, int]], query: str) -> Expression:
    """An expression with a query's values of its snapshots: a sympy integer."""
    import sympy

    return expression.xreplace({each: sympy.Integer(values[each][query]) for each in expression.free_symbols})


def zero() -> Expression:
    """No trends."""
    import sympy

    return sympy.S.Zero
