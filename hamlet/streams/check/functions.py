"""Functions by name, of numbers, texts and conversions: a part of `hamlet.streams.check.expressions`."""

from __future__ import annotations

import re

from hamlet.errors import Span, near_miss
from hamlet.language.regular import RegularExpression, of_any_alphabet
from hamlet.streams.check.accesses import Accesses
from hamlet.streams.check.declarations import read_type
from hamlet.streams.check.unify import (
    ANY,
    BOOL,
    BYTES,
    FLOAT,
    NUMBER,
    SIGNED,
    STRING,
    UNSIGNED,
    Type,
    declared,
    describe,
    optional_of,
    unify,
)
from hamlet.streams.check.unresolved import Node
from hamlet.streams.program.ir import Access, Scalar, ValueType
from hamlet.streams.syntax import tree as s

HOLE = re.compile(r"\{\{[^{}]*\}\}")  # where a value stands in the text of format
_FLOAT_FUNCTIONS = ("sqrt", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "exp", "ln")
FUNCTIONS = {
    **dict.fromkeys(_FLOAT_FUNCTIONS, 1), "abs": 1, "min": 2, "max": 2, "round": 2, "log": 2,
    "delta": 2, "cast": 1, "widen": 1, "format": 0, "matches": 2, "at": 2,
}  # fmt: skip
_MATH = (*_FLOAT_FUNCTIONS, "abs", "min", "max", "round", "log")
_GENERICS = {"log": 2, "format": 0, "delta": 0}  # types that may stand in < >; one elsewhere


class Functions(Accesses):
    """Builds the nodes of functions."""

    def call(self, tree: s.Call) -> Node:
        """``f(x)``, or the value of an instance of a stream."""
        stream = self.table.names.get(tree.name)
        if stream is not None:
            if not stream.parameters:
                return self.wrong(f"{tree.name} has no parameters", tree.span, f"write {tree.name}")
            arguments = self._stream_arguments(stream, tree)
            if arguments is None:
                return Node("wrong", stream.type, tree.span)
            return self.read(stream, arguments, Access.NOW, tree.span)
        return self.function(tree.name, tree.types, tree.arguments, tree.name_span, tree.span)

    def function(
        self, name: str, types: tuple[s.TypeSyntax, ...], arguments: tuple[s.Argument, ...], name_span: Span, span: Span
    ) -> Node:
        """``f(x)``, written so or as ``x.f()``."""
        if name not in FUNCTIONS:
            meant = near_miss(name, [*FUNCTIONS, *self.table.names])
            hint = f"did you mean {meant}?" if meant else f"functions are {', '.join(FUNCTIONS)}"
            return self.wrong(f"there is no function '{name}'", name_span, hint)
        if name in _MATH and "math" not in self.table.modules:
            return self.wrong(f"'{name}' is in the module math", name_span, "write import math at the top")
        if name == "matches" and "regex" not in self.table.modules:
            return self.wrong("'matches' is in the module regex", name_span, "write import regex at the top")
        count = FUNCTIONS[name]
        if len(arguments) != count and name != "format":
            what = f"{count} argument{'s' if count > 1 else ''}"
            return self.wrong(f"{name} takes {what}, not {len(arguments)}", span, _example(name))
        labels = {"delta": (None, "or"), "matches": (None, "regex"), "at": (None, "index")}.get(
            name, (None,) * len(arguments)
        )
        for argument, label in zip(arguments, labels, strict=True):
            if argument.label != label and not (name == "delta" and argument.label in ("dft", "default")):
                return self.wrong(f"{name} is called differently", argument.span, _example(name))
        if name not in ("cast", "widen") and len(types) > _GENERICS.get(name, 1):
            return self.wrong(f"{name} takes fewer types in < >", name_span, _example(name))
        if name == "delta":
            return self._delta(arguments, span)
        parts = [self.build(argument.value) for argument in arguments]
        if any(part.kind == "wrong" for part in parts):
            return Node("wrong", Type(ANY), span)
        if name in ("cast", "widen"):
            return self._conversion(name, types, parts[0], name_span, span)
        if not self._typed(types, parts):
            return Node("wrong", Type(ANY), span)
        if name == "format":
            return self._format(parts, span)
        if name == "matches":
            return self._matches(parts, span)
        if name == "at":
            fits = self.want(parts[0], BYTES, "at reads Bytes")
            fits &= self.want(parts[1], UNSIGNED, "an index is an unsigned integer")
            return Node("call" if fits else "wrong", optional_of(declared(Scalar("UInt8"))), span, parts, name)
        return self._math(name, parts, span)

    def _typed(self, types: tuple[s.TypeSyntax, ...], parts: list[Node]) -> bool:
        """Make arguments of the types that stand in < >."""
        for tree, part in zip(types, parts, strict=False):
            kind = read_type(self.table, tree, self.reports)
            before = describe(part.type)
            if kind is not None and not unify(part.type, declared(kind)):
                self.reports.error(f"{self.reports.quote(part.span)} is {before}, not {kind}", part.span, None)
                return False
        return True

    def _math(self, name: str, parts: list[Node], span: Span) -> Node:
        if name == "round":
            fits = self.want(parts[0], NUMBER, "round takes a number")
            fits &= self.want(parts[1], UNSIGNED, "digits are an unsigned integer")
            return Node("call" if fits else "wrong", declared(Scalar("Float64")), span, parts, name)
        mask, what = NUMBER, "numbers"
        if name in _FLOAT_FUNCTIONS or name == "log":
            mask, what = FLOAT, "a Float"
        elif name == "abs":
            mask, what = SIGNED, "a signed number"
        if not self.want(parts[0], mask, f"{name} takes {what}"):
            return Node("wrong", Type(ANY), span)
        if name == "log":
            fits = self.want(parts[1], NUMBER, "the base of log is a number")
            return Node("call" if fits else "wrong", parts[0].type, span, parts, name)
        for part in parts[1:]:
            if not (self.want(part, mask, f"{name} takes {what}") and self.same(parts[0], part, span)):
                return Node("wrong", Type(ANY), span)
        return Node("call", parts[0].type, span, parts, name)

    def _conversion(self, name: str, types: tuple[s.TypeSyntax, ...], part: Node, name_span: Span, span: Span) -> Node:
        """``cast<From, To>(x)``, ``widen<To>(x)``."""
        if len(types) > 2 or (name == "widen" and len(types) != 1):
            return self.wrong(f"{name} takes other types in < >", name_span, _example(name))
        if not self.want(part, NUMBER, f"{name} takes a number"):
            return Node("wrong", Type(ANY), span)
        read = [read_type(self.table, kind, self.reports) for kind in types]
        if any(kind is None and not isinstance(tree, s.InferredType) for kind, tree in zip(read, types, strict=True)):
            return Node("wrong", Type(ANY), span)
        for kind, tree in zip(read, types, strict=True):
            if kind is not None and not unify(declared(kind), Type(NUMBER)):
                return self.wrong(f"{name} converts numbers, not {kind}", tree.span, _example(name))
        if name == "widen":
            return self._widen(part, read[0], types[0].span, span)
        source = declared(read[0]) if read and read[0] is not None else Type(NUMBER)
        target = declared(read[1]) if len(read) > 1 and read[1] is not None else Type(NUMBER)
        before = describe(part.type)
        if not unify(part.type, source):
            message = f"{self.reports.quote(part.span)} is {before}, not {describe(source)}"
            return self.wrong(message, part.span, f"write cast<{before}, {describe(target)}>(...)")
        return Node("call", target, span, [part], name)

    def _widen(self, part: Node, target: ValueType | None, place: Span, span: Span) -> Node:
        if not isinstance(target, Scalar):
            return self.wrong("widen needs the type", place, _example("widen"))
        narrower = 0
        for bits in (8, 16, 32, 64):
            kind = Scalar(f"{target.family}{bits}")
            if bits <= target.bits and not (target.family == "Float" and bits < 32):
                narrower |= declared(kind).mask
        before = describe(part.type)
        if not unify(part.type, Type(narrower)):
            message = f"{before} is not narrower than {target}"
            return self.wrong(message, part.span, f"write cast<{before}, {target}>(...) for other conversions")
        return Node("call", declared(target), span, [part], "widen")

    def _format(self, parts: list[Node], span: Span) -> Node:
        if not parts:
            return self.wrong("format takes a text", span, _example("format"))
        if not self.want(parts[0], STRING, "format fills a String"):
            return Node("wrong", Type(ANY), span)
        for part in parts[1:]:
            if part.type.optional:
                self.missing_default(part)
                return Node("wrong", Type(STRING), span)
        text = parts[0].value
        if parts[0].kind != "constant" or not isinstance(text, str):
            return self.wrong("the text of format is a literal", parts[0].span, _example("format"))
        holes, values = len(HOLE.findall(text)), len(parts) - 1
        if holes != values:
            message = f"{holes} place{'s' * (holes != 1)} for {values} value{'s' * (values != 1)}"
            hint = "every value has its {{}} in the text" + ("; {} is none" if "{}" in HOLE.sub("", text) else "")
            if holes > values:
                return self.wrong(message, span, hint)
            self.reports.warn(message, span, f"{hint}; the last values are left out")
        return Node("call", Type(STRING), span, parts, "format")

    def _matches(self, parts: list[Node], span: Span) -> Node:
        fits = self.want(parts[0], STRING, "matches reads a String")
        fits &= self.want(parts[1], STRING, "a regular expression is a String")
        if not fits:
            return Node("wrong", Type(BOOL), span)
        pattern = parts[1].value
        if parts[1].kind != "constant" or not isinstance(pattern, str):
            return self.wrong("the regular expression is a literal", parts[1].span, _example("matches"))
        try:
            RegularExpression(of_any_alphabet(pattern))
        except ValueError as error:
            return self.wrong(f"this is not a regular expression: {error}", parts[1].span, None)
        return Node("call", Type(BOOL), span, parts, "matches")

    def _delta(self, arguments: tuple[s.Argument, ...], span: Span) -> Node:
        """``delta(x, or: v)`` is ``x - x.last(or: v)``."""
        target = self._target(arguments[0].value, "delta")
        value = self.build(arguments[1].value)
        if target is None or value.kind == "wrong":
            return Node("wrong", Type(ANY), span)
        stream, parts = target
        now = self.read(stream, parts, Access.NOW, arguments[0].span)
        before = self.default(self.read(stream, parts, Access.OFFSET, arguments[0].span, 1), value, span)
        if not (self.want(now, NUMBER, "delta is a difference of numbers") and self.same(now, before, span)):
            return Node("wrong", Type(ANY), span)
        return Node("binary", now.type, span, [now, before], "-")


def _example(name: str) -> str:
    """How a function is called."""
    examples = {
        "cast": "write cast<Int64, Float64>(x)",
        "widen": "write widen<Int64>(x)",
        "format": 'write "x is {{}}".format(x)',
        "matches": 'write s.matches(regex: "[a-z]+")',
        "at": "write b.at(index: 0)",
        "delta": "write delta(x, or: 0.0)",
        "round": "write round(x, 2)",
        "log": "write log(x, 10)",
        "min": "write min(a, b)",
        "max": "write max(a, b)",
    }
    return examples.get(name, f"write {name}(x)")
