"""Accesses to streams, now, before and at other times, and their defaults: a part of `expressions`."""

from __future__ import annotations

from collections.abc import Mapping

from hamlet.errors import Span
from hamlet.frontend.reports import Reports
from hamlet.frontend.units import LONGEST, SECONDS
from hamlet.runtime.sizes import size_text
from hamlet.streams.check.declarations import Declared, Table
from hamlet.streams.check.unify import (
    ANY,
    BOOL,
    Type,
    describe,
    optional_of,
    unify,
)
from hamlet.streams.check.unresolved import Node
from hamlet.streams.program.ir import Access
from hamlet.streams.syntax import tree as s

MOST_COUNTED = 2**31 - 1  # values of a window
FURTHEST_OFFSET = 2**27  # values; eight bytes of each are kept


class Accesses:
    """Builds the nodes of accesses to streams, in the clauses of one stream.

    Parameters
    ----------
    table : Table
        All names.
    reports : Reports
        Receives the mistakes.
    stream : Declared or None
        Whose clauses are built; None for constants.
    """

    def __init__(self, table: Table, reports: Reports, stream: Declared | None) -> None:
        self.table = table
        self.reports = reports
        self.stream = stream
        self.instance_parameters: Mapping[str, Type] = {} if stream is None else stream.parameters
        self.parameters: Mapping[str, Type] = self.instance_parameters

    # What `hamlet.streams.check.expressions` gives.
    def build(self, tree: s.Expression) -> Node:
        """The node of an expression."""
        raise NotImplementedError

    def want(self, node: Node, mask: int, what: str) -> bool:
        """Make a node one of some types."""
        raise NotImplementedError

    def same(self, left: Node, right: Node, span: Span) -> bool:
        """Make the types of two operands equal."""
        raise NotImplementedError

    def missing_default(self, node: Node) -> None:
        """Say that a value may be missing."""
        raise NotImplementedError

    def wrong(self, message: str, span: Span, hint: str | None) -> Node:
        """Report a mistake; the node fits everything."""
        self.reports.error(message, span, hint)
        return Node("wrong", Type(ANY), span)

    def parameter(self, name: str, span: Span) -> Node:
        """The value of a parameter."""
        return Node("parameter", self.parameters[name], span, value=list(self.parameters).index(name))

    def own_arguments(self, span: Span) -> list[Node]:
        """The parameters of the instance itself: what ``self`` is read with."""
        return [self.parameter(name, span) for name in self.parameters]

    def default(self, node: Node, value: Node, span: Span) -> Node:
        """``node.defaults(to: value)``."""
        if node.kind == "wrong" or value.kind == "wrong":
            return Node("wrong", Type(ANY), span)
        if not node.type.optional:
            hint: str | None = "leave .defaults out"
            if node.kind == "read":
                hint = "leave .defaults out; the value before is .offset(by: -1), the newest .hold()"
            elif node.kind in ("window", "instances"):
                hint = "leave .defaults out; an empty window has a value, too"
            return self.wrong(f"{self.reports.quote(node.span)} always has a value", span, hint)
        if value.type.optional:
            self.missing_default(value)
            return Node("wrong", node.type.inside(0), span)
        inner = node.type.inside(0)
        first, second = describe(inner), describe(value.type)
        if not unify(inner, value.type):
            literal = value.value
            hint = None
            if value.kind == "constant" and isinstance(literal, int) and "Float" in first:
                hint = f"write {literal}.0"
            return self.wrong(f"{first} and {second} have no common type", value.span, hint)
        return Node("default", inner, span, [node, value])

    # ---------------------------------------------------------------------------------------- accesses

    def read(self, stream: Declared, arguments: list[Node], access: Access, span: Span, amount: int = 0) -> Node:
        """An access to a stream."""
        kind = stream.type
        if access is Access.FRESH:
            kind = Type(BOOL)
        elif access is not Access.NOW:
            kind = optional_of(kind)
        return Node("read", kind, span, arguments, stream=stream, access=access, amount=amount)

    def _access(self, tree: s.Method, access: Access, amount: int = 0) -> Node:
        target = self._target(tree.operand, tree.name)
        if target is None:
            return Node("wrong", Type(ANY), tree.span)
        return self.read(*target, access, tree.span, amount)

    def offset(self, operand: s.Expression, by: s.Expression, span: Span) -> Node:
        """``s.offset(by: -n)``, ``s[-n]``, ``s.offset(by: -2s)``."""
        target = self._target(operand, "offset")
        if not isinstance(by, s.Number):
            return self.wrong("an offset is a number", by.span, "the value before is .offset(by: -1)")
        if target is None:
            return Node("wrong", Type(ANY), span)
        if by.value > 0:
            return self.wrong("there are no values of the future", by.span, "the value before is .offset(by: -1)")
        if by.unit:
            if by.unit not in SECONDS:
                return self.wrong(f"'{by.unit}' is no duration", by.span, f"units are {', '.join(SECONDS)}")
            ago = -by.value * SECONDS[by.unit]
            if ago > LONGEST:
                return self.wrong("this offset is too long", by.span, "times have 64 bits of nanoseconds")
            nanoseconds = ago.numerator * 10**9 // ago.denominator
            return self.read(*target, Access.TIME if nanoseconds else Access.NOW, span, nanoseconds)
        if not by.whole:
            return self.wrong("an offset counts values", by.span, "write -1, or -1.5s for the value of that time")
        if -by.value > FURTHEST_OFFSET:
            hint = f"at most {FURTHEST_OFFSET:,} values back ({size_text(8 * FURTHEST_OFFSET)})"
            needs = f"this offset goes too far back: {size_text(8 * int(-by.value))} would be kept for it"
            return self.wrong(needs, by.span, hint)
        return self.read(*target, Access.OFFSET if by.value else Access.NOW, span, int(-by.value))

    def _target(self, operand: s.Expression, what: str) -> tuple[Declared, list[Node]] | None:
        """The stream and the arguments that an access is to; None after a mistake."""
        if isinstance(operand, s.Name):
            if operand.name == "self" and self.stream is not None and not self.stream.trigger:
                return self.stream, self.own_arguments(operand.span)
            stream = self.table.names.get(operand.name)
            if stream is not None and operand.name not in self.parameters:
                if stream.parameters:
                    self.missing_arguments(stream, operand.span)
                    return None
                return stream, []
            if operand.name not in self.parameters and operand.name not in self.table.constants:
                self.reports.error(f"there is no stream '{operand.name}'", operand.span, self.table.near(operand.name))
                return None
        elif isinstance(operand, s.Call) and operand.name in self.table.names:
            stream = self.table.names[operand.name]
            if not stream.parameters:
                self.reports.error(f"{operand.name} has no parameters", operand.span, f"write {operand.name}")
                return None
            arguments = self._stream_arguments(stream, operand)
            return None if arguments is None else (stream, arguments)
        hint = "compute it in an output of its own and read that"
        self.reports.error(f"{what} needs a stream, not {self.reports.quote(operand.span)}", operand.span, hint)
        return None

    def missing_arguments(self, stream: Declared, span: Span) -> Node:
        """Say that an instance must be chosen."""
        call = f"{stream.name}({', '.join(stream.parameters)})"
        hint = f"write {call} for one of them, or {stream.name}.aggregate(over_instances: all, using: sum) for all"
        return self.wrong(f"{stream.name} has an instance for every {', '.join(stream.parameters)}", span, hint)

    def _stream_arguments(self, stream: Declared, tree: s.Call) -> list[Node] | None:
        wanted = stream.parameters
        if len(tree.arguments) != len(wanted):
            many = f"{len(wanted)} parameter{'s' if len(wanted) > 1 else ''}"
            message = f"{stream.name} has {many}, not {len(tree.arguments)}"
            self.reports.error(message, tree.span, f"write {stream.name}({', '.join(wanted)})")
            return None
        built = [self.build(argument.value) for argument in tree.arguments]
        for node, (name, kind) in zip(built, wanted.items(), strict=True):
            first, second = describe(node.type), describe(kind)
            if node.kind == "wrong":
                return None
            if node.type.optional:
                self.missing_default(node)
                return None
            if not unify(node.type, kind):
                message = f"{self.reports.quote(node.span)} is {first}, the parameter {name} {second}"
                self.reports.error(message, node.span, None)
                return None
        return built
