"""Syntax to nodes: what every name, access and call means, and what that says of the types.

Types are made equal as the tree is climbed; a mistake is reported where two have nothing in common, and what has one
fits everything afterwards, so that it is reported once.
"""

from __future__ import annotations

from fractions import Fraction

from hamlet.errors import Span
from hamlet.streams.check.calls import Calls
from hamlet.streams.check.declarations import read_type
from hamlet.streams.check.unify import (
    ANY,
    BOOL,
    FLOAT,
    INTEGER,
    NUMBER,
    OPTIONAL,
    PLAIN,
    SIGNED_INTEGER,
    STRING,
    TUPLE,
    Type,
    declared,
    describe,
    optional_of,
    tuple_of,
    unify,
)
from hamlet.streams.check.unresolved import Node
from hamlet.streams.program.ir import Access
from hamlet.streams.syntax import tree as s

_ARITHMETIC = ("+", "-", "*", "/", "%", "**")
_BITWISE = ("&", "|", "^", "<<", ">>")
_EQUAL = ("=", "!=")


class Expressions(Calls):
    """Turns the expressions of one stream into nodes; see `Calls` for the parameters."""

    def build(self, tree: s.Expression) -> Node:
        """The node of an expression."""
        match tree:
            case s.Boolean(value=value):
                return Node("constant", Type(BOOL), tree.span, value=value)
            case s.Text(value=text):
                return Node("constant", Type(STRING), tree.span, value=text)
            case s.Number():
                return self.number(tree)
            case s.Name():
                return self._name(tree)
            case s.Unary():
                return self._unary(tree)
            case s.Binary():
                return self._binary(tree)
            case s.Choice():
                return self._choice(tree)
            case s.MakeTuple(parts=parts):
                built = [self.build(part) for part in parts]
                return Node("tuple", tuple_of(part.type for part in built), tree.span, built)
            case s.Field():
                return self._field(tree)
            case s.Call():
                return self.call(tree)
            case s.Method():
                return self.method(tree)
            case s.Index(operand=operand, offset=offset):
                return self.offset(operand, offset, tree.span)
        raise AssertionError(tree)

    def boolean(self, tree: s.Expression | None, what: str) -> Node | None:
        """The node of a condition; `what` names it in messages."""
        if tree is None:
            return None
        node = self.build(tree)
        self.want(node, BOOL, f"{what} is a condition: true or false")
        return node

    # ------------------------------------------------------------------------------------------- leaves

    def number(self, tree: s.Number) -> Node:
        """A literal: every integer type, or every Float where it has a point."""
        if tree.unit:
            hint = "durations stand in windows, offsets and pacing only"
            return self.wrong(f"a number with the unit '{tree.unit}' is no value", tree.span, hint)
        if tree.whole:
            if not -(2**63) <= tree.value < 2**64:
                return self.wrong("this number is too large", tree.span, "integers have 64 bits")
            mask = INTEGER if tree.value >= 0 else SIGNED_INTEGER
            return Node("constant", Type(mask), tree.span, value=int(tree.value))
        value = -0.0 if tree.minus and not tree.value else _float(tree.value)
        if value is None:
            return self.wrong("this number is too large", tree.span, "Float64 goes to 1.8e308")
        return Node("constant", Type(FLOAT), tree.span, value=value)

    def _name(self, tree: s.Name) -> Node:
        if tree.name in self.parameters:
            return self.parameter(tree.name, tree.span)
        constant = self.table.constants.get(tree.name)
        if constant is not None:
            node = self.constant(constant)
            node.span = tree.span
            return node
        if tree.name == "self" and self.stream is not None and not self.stream.trigger:
            return self.read(self.stream, self.own_arguments(tree.span), Access.NOW, tree.span)
        stream = self.table.names.get(tree.name)
        if stream is None:
            if tree.name in self.instance_parameters:
                hint = "the values of parameters are what spawn with says"
                return self.wrong(f"'{tree.name}' has no value before the instance exists", tree.span, hint)
            return self.wrong(
                f"there is no stream '{tree.name}'", tree.span, self.table.near(tree.name, self.parameters)
            )
        if stream.parameters:
            return self.missing_arguments(stream, tree.span)
        return self.read(stream, [], Access.NOW, tree.span)

    def constant(self, declaration: s.ConstantDeclaration) -> Node:
        """The value of a constant, with its declared type."""
        node = self.build(declaration.value)
        if declaration.type is not None:
            kind = read_type(self.table, declaration.type, self.reports)
            if kind is not None and not unify(node.type, declared(kind)):
                hint = _literal_hint(node, kind.name) if hasattr(kind, "name") else None
                message = f"{self.reports.quote(node.span)} is {describe(node.type)}, not {kind}"
                return self.wrong(message, node.span, hint)
        return node

    # --------------------------------------------------------------------------------------- operators

    def _unary(self, tree: s.Unary) -> Node:
        operand = self.build(tree.operand)
        if tree.operator == "!":
            self.want(operand, BOOL, "! negates a Bool")
            return Node("unary", Type(BOOL), tree.span, [operand], "!")
        mask, what = (NUMBER, "- negates a number") if tree.operator == "-" else (INTEGER, "~ flips an integer's bits")
        fits = self.want(operand, mask, what)
        return Node("unary", operand.type if fits else Type(ANY), tree.span, [operand], tree.operator)

    def _binary(self, tree: s.Binary) -> Node:
        left, right = self.build(tree.left), self.build(tree.right)
        operator = tree.operator
        if operator in ("&&", "||", "->"):
            for side in (left, right):
                self.want(side, BOOL, f"{operator} joins conditions")
            if operator == "->":  # a -> b is !a || b
                left, operator = Node("unary", Type(BOOL), left.span, [left], "!"), "||"
            return Node("binary", Type(BOOL), tree.span, [left, right], operator)
        if operator in _ARITHMETIC or operator in _BITWISE:
            mask = NUMBER if operator in _ARITHMETIC else INTEGER
            what = f"{operator} takes {'numbers' if mask == NUMBER else 'integers'}"
            fits = self.want(left, mask, what)
            fits &= self.want(right, mask, what)
            same = fits and self.same(left, right, tree.span)
            return Node("binary", left.type if same else Type(mask), tree.span, [left, right], operator)
        if operator not in _EQUAL:
            for side in (left, right):
                self.want(side, PLAIN, f"{operator} compares values")
        self.same(left, right, tree.span)
        return Node("binary", Type(BOOL), tree.span, [left, right], operator)

    def _choice(self, tree: s.Choice) -> Node:
        condition = self.build(tree.condition)
        self.want(condition, BOOL, "what stands behind if is a condition: true or false")
        left, right = self.build(tree.left), self.build(tree.right)
        same = self.same(left, right, tree.span)
        return Node("choice", left.type if same else Type(ANY), tree.span, [condition, left, right])

    def _field(self, tree: s.Field) -> Node:
        operand = self.build(tree.operand)
        if tree.name.isdigit():
            place: int | None = int(tree.name) if len(tree.name) < 6 else None
        else:
            place = self.table.fields.get(tree.name)
        if place is None:
            hint = "parts of a tuple are numbered from 0: pair.0; a method needs brackets: s.hold()"
            return self.wrong(f"there is no part '{tree.name}'", tree.span, hint)
        optional = operand.type.optional
        outer = operand.type.inside(0) if optional else operand.type
        part = Type(ANY)
        before = describe(outer)
        if not unify(outer, Type(TUPLE, {place: part})):
            known = outer.root()
            if known.mask == TUPLE and known.length is not None:
                message = f"{self.reports.quote(tree.operand.span)} has {known.length} parts, numbered from 0"
            else:
                message = f"{self.reports.quote(tree.operand.span)} is {before}, which has no parts"
            return self.wrong(message, tree.span, None)
        kind = optional_of(part) if optional else part
        return Node("part", kind, tree.span, [operand], value=place)

    # ------------------------------------------------------------------------------------------- types

    def same(self, left: Node, right: Node, span: Span) -> bool:
        """Make the types of two operands equal; a mistake where they have nothing in common."""
        if "wrong" in (left.kind, right.kind):
            return False
        first, second = describe(left.type), describe(right.type)
        if left.type.optional != right.type.optional and not (
            left.type.root().mask == ANY or right.type.root().mask == ANY
        ):
            self.missing_default(left if left.type.optional else right)
            return False
        if unify(left.type, right.type):
            return True
        self.reports.error(f"{first} and {second} have no common type", span, self._common_hint(left, right))
        return False

    def want(self, node: Node, mask: int, what: str) -> bool:
        """Make a node one of the types of `mask`; a mistake that says `what` is expected where it is none."""
        if node.kind == "wrong" or (node.type.root().mask & mask == node.type.root().mask):
            return True
        before = describe(node.type)
        if node.type.optional and not mask & OPTIONAL:
            self.missing_default(node)
            return False
        if unify(node.type, Type(mask)):
            return True
        hint = "compare it with something, as in x > 0" if mask == BOOL else None
        self.reports.error(f"{self.reports.quote(node.span)} is {before}; {what}", node.span, hint)
        return False

    def missing_default(self, node: Node) -> None:
        """Say that a value may be missing."""
        hint = "say what counts then: .defaults(to: ...)"
        self.reports.error(f"{self.reports.quote(node.span)} may have no value", node.span, hint)

    def _common_hint(self, left: Node, right: Node) -> str | None:
        for node, other in ((left, right), (right, left)):
            kind = describe(other.type)
            if node.kind == "constant" and (hint := _literal_hint(node, kind)):
                return hint
        names = [describe(each.type) for each in (left, right)]
        if all(name[:1].isupper() and name not in ("Bool", "String") and name[-1].isdigit() for name in names):
            return f"convert one of them: cast<{names[0]}, {names[1]}>({self.reports.quote(left.span)[1:-1]})"
        return None


def _literal_hint(node: Node, kind: str) -> str | None:
    """How a literal is written as another type."""
    value = node.value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, int) and "Float" in kind:
        return f"write {value}.0"
    if isinstance(value, float) and ("Int" in kind or "integer" in kind) and value == int(value):
        return f"write {int(value)}"
    return None


def _float(value: Fraction) -> float | None:
    try:
        return float(value)
    except OverflowError:
        return None
