"""What the clauses of a stream say of its instances: which one a condition is about, which one an access reads."""

from __future__ import annotations

from collections.abc import Iterator

from hamlet.streams.program import ir


def clauses_of(stream: ir.Stream) -> Iterator[tuple[ir.Pacing, tuple[ir.Expression, ...], bool]]:
    """Every clause of a stream: its pacing, its expressions, and whether it is the spawn clause."""
    if stream.spawn is not None:
        more = () if stream.spawn.condition is None else (stream.spawn.condition,)
        yield stream.spawn.pacing, (*more, *stream.spawn.arguments), True
    for each in stream.evals:
        yield each.pacing, (*(() if each.condition is None else (each.condition,)), each.expression), False
    if stream.close is not None:
        yield stream.close.pacing, () if stream.close.condition is None else (stream.close.condition,), False


def bound_values(
    stream: ir.Stream, condition: ir.Expression | None
) -> tuple[list[ir.Expression] | None, ir.Expression | None]:
    """What all parameters must be for a condition to hold, None where it does not say; and what else it asks for."""
    if condition is None or not stream.parameters:
        return None, condition
    found: dict[int, ir.Expression] = {}
    rest: ir.Expression | None = None
    for each in _conjuncts(condition):
        pair = _equation(each)
        if pair is None or pair[0] in found:
            rest = each if rest is None else ir.Binary("&&", rest, each)
        else:
            found[pair[0]] = pair[1]
    if len(found) < len(stream.parameters):
        return None, condition
    return [found[place] for place in range(len(stream.parameters))], rest


def _conjuncts(expression: ir.Expression) -> Iterator[ir.Expression]:
    """The parts of a conjunction, in order."""
    if isinstance(expression, ir.Binary) and expression.operator == "&&":
        yield from _conjuncts(expression.left)
        yield from _conjuncts(expression.right)
    else:
        yield expression


def _equation(expression: ir.Expression) -> tuple[int, ir.Expression] | None:
    """The parameter and what it must be equal to, of ``p = e`` where no parameter stands in e."""
    if not isinstance(expression, ir.Binary) or expression.operator not in ("=", "=="):
        return None
    for side, other in ((expression.left, expression.right), (expression.right, expression.left)):
        if isinstance(side, ir.Parameter) and not any(isinstance(each, ir.Parameter) for each in ir.walk(other)):
            # windows of an instance's own cannot be read without the instance
            if any(isinstance(each, ir.ReadWindow) for each in ir.walk(other)):
                return None
            return side.index, other
    return None


def reads_own_key(read: ir.Read | ir.ReadWindow, stream: ir.Stream) -> bool:
    """Whether a read is of the instance with the parameters of the reading one."""
    return len(read.arguments) == len(stream.parameters) and all(
        isinstance(each, ir.Parameter) and each.index == place for place, each in enumerate(read.arguments)
    )
