"""From typed expressions to the nodes that compute them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hamlet.language.regular import RegularExpression, of_any_alphabet
from hamlet.streams.evaluate._arithmetic import CompareNode, FloatNode, IntegerNode
from hamlet.streams.evaluate._nodes import ConstantNode, Node
from hamlet.streams.evaluate._operators import (
    CastNode,
    ChoiceNode,
    DefaultNode,
    FunctionNode,
    LazyNode,
    LogNode,
    UnaryNode,
)
from hamlet.streams.evaluate._reads import ParameterNode, PlainRead, ReadNode, TallyNode, WindowNode
from hamlet.streams.evaluate._store import Store, Stream, Tally
from hamlet.streams.evaluate._texts import AtNode, FormatNode, MatchNode, PartNode, TupleNode
from hamlet.streams.evaluate._windows import WindowTable
from hamlet.streams.program import ir

FAMILIES = ("Bool", "Int", "UInt", "Float")
INT, FLOAT, OBJECT = 1, 3, 4
_ARITHMETIC = ("+", "-", "*", "/", "%", "**", "&", "|", "^", "<<", ">>", "min", "max")
_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
_ACCESSES = {
    ir.Access.NOW: 0,
    ir.Access.OFFSET: 1,
    ir.Access.HOLD: 2,
    ir.Access.GET: 3,
    ir.Access.FRESH: 4,
    ir.Access.TIME: 5,
}


def family_of(kind: ir.ValueType) -> int:
    """The family of a type: 0 Bool, 1 Int, 2 UInt, 3 Float, 4 strings and tuples; an optional's is its inner one's."""
    while isinstance(kind, ir.OptionalOf):
        kind = kind.inner
    if isinstance(kind, ir.Scalar) and kind.family in FAMILIES:
        return FAMILIES.index(kind.family)
    return OBJECT


class Builder:
    """Makes nodes.

    Parameters
    ----------
    store : Store
    streams, tallies : sequence
        By number.

    Attributes
    ----------
    windows : mapping of int to WindowTable
        Of the clause whose expressions come next, by number.
    """

    def __init__(
        self,
        store: Store,
        streams: Sequence[Stream],
        tallies: Sequence[Tally],
    ) -> None:
        self.store = store
        self.streams, self.tallies = streams, tallies
        self.windows: Mapping[int, WindowTable] = {}

    def node(self, expression: ir.Expression, reader: ir.Stream) -> Node:
        """The node of an expression that stands in a clause of a stream."""
        match expression:
            case ir.Constant(value=value, type=kind):
                return ConstantNode(family_of(kind), value, self.store.words)
            case ir.Parameter(index=index, type=kind):
                celled = self.streams[reader.id].key_family >= 0
                return ParameterNode(family_of(kind), index, len(reader.parameters) == 1, celled)
            case ir.Unary(operator=operator, operand=operand):
                return UnaryNode(operator, self.node(operand, reader), (1 << 64) - 1)
            case ir.Binary():
                return self._binary(expression, reader)
            case ir.Choice(condition=condition, left=left, right=right):
                return ChoiceNode(*(self.node(each, reader) for each in (condition, left, right)))
            case ir.MakeTuple(parts=parts):
                return TupleNode([self.node(each, reader) for each in parts])
            case ir.GetPart(operand=operand, index=index, type=kind):
                return PartNode(family_of(kind), self.node(operand, reader), index)
            case ir.Default(operand=operand, value=value):
                return DefaultNode(self.node(operand, reader), self.node(value, reader))
            case ir.Call():
                return self._call(expression, reader)
            case ir.Read():
                return self._read(expression, reader)
            case ir.ReadWindow(window=window, arguments=arguments):
                return WindowNode(self.windows[window], [self.node(each, reader) for each in arguments])
            case ir.ReadInstances(aggregate=aggregate):
                return TallyNode(self.tallies[aggregate])
        raise TypeError(f"no node for {expression!r}")

    def _binary(self, expression: ir.Binary, reader: ir.Stream) -> Node:
        left, right = self.node(expression.left, reader), self.node(expression.right, reader)
        operator = expression.operator
        if operator in ("&&", "||"):
            return LazyNode(operator == "||", left, right)
        if operator in _COMPARISONS or operator == "==":
            return CompareNode(_COMPARISONS.index("=" if operator == "==" else operator), left, right)
        place = _ARITHMETIC.index(operator)
        if left.family == 0:  # & | ^ of Booleans: as integers of one bit
            return _of_bits(place, left, right)
        return (FloatNode if left.family == FLOAT else IntegerNode)(left.family, place, left, right)

    def _read(self, read: ir.Read, reader: ir.Stream) -> Node:
        stream = self.streams[read.stream]
        if not stream.keyed and read.access in (ir.Access.NOW, ir.Access.HOLD):
            return PlainRead(stream)
        own = read.stream == reader.id and bool(reader.parameters) and _is_own(read)
        arguments = [self.node(each, reader) for each in read.arguments]
        return ReadNode(self.store, stream, _ACCESSES[read.access], read.amount, arguments, own)

    def _call(self, call: ir.Call, reader: ir.Stream) -> Node:
        name, arguments = call.function, call.arguments
        if name == "format":
            template = arguments[0]
            assert isinstance(template, ir.Constant)
            return FormatNode(str(template.value), [self.node(each, reader) for each in arguments[1:]])
        if name == "matches":
            pattern = arguments[1]
            assert isinstance(pattern, ir.Constant)
            expression = RegularExpression(of_any_alphabet(str(pattern.value)))
            return MatchNode(self.node(arguments[0], reader), expression.found)
        nodes = [self.node(each, reader) for each in arguments]
        if name == "at":
            return AtNode(nodes[0], nodes[1])
        if name in ("cast", "widen"):
            return CastNode(family_of(call.type), nodes[0])
        if name in ("round", "log"):
            number = nodes[0] if nodes[0].family == FLOAT else CastNode(FLOAT, nodes[0])
            return LogNode(name == "round", number, nodes[1])
        if name in ("min", "max"):
            made = FloatNode if nodes[0].family == FLOAT else IntegerNode
            return made(nodes[0].family, _ARITHMETIC.index(name), nodes[0], nodes[1])
        return FunctionNode(name, nodes[0])


def _of_bits(place: int, left: Node, right: Node) -> Node:
    """``& | ^`` of Booleans."""
    if _ARITHMETIC[place] == "^":
        return CompareNode(_COMPARISONS.index("!="), left, right)
    return LazyNode(_ARITHMETIC[place] == "|", left, right)


def _is_own(read: ir.Read) -> bool:
    """Whether the arguments of a read are the parameters of the reading instance."""
    return all(isinstance(each, ir.Parameter) and each.index == place for place, each in enumerate(read.arguments))
