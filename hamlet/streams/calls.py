"""Functions, methods and accesses: the part of `hamlet.streams.expressions` that knows them by name."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping

from hamlet.errors import near_miss
from hamlet.language.query import Span
from hamlet.streams import syntax as s
from hamlet.streams.declarations import Declared, Table, read_type
from hamlet.streams.ir import Access, Scalar, ValueType
from hamlet.streams.nodes import Node, WindowDraft
from hamlet.streams.reports import Reports
from hamlet.streams.unify import (
    ANY,
    BOOL,
    FLOAT,
    NUMBER,
    PLAIN,
    SIGNED,
    STRING,
    UNSIGNED,
    Type,
    declared,
    describe,
    optional_of,
    tuple_of,
    unify,
)
from hamlet.streams.units import LONGEST, SECONDS, seconds_of

HOLE = re.compile(r"\{\{[^{}]*\}\}")  # where a value stands in the text of format
FURTHEST_OFFSET = 2**31 - 1
_FLOAT_FUNCTIONS = ("sqrt", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "exp", "ln")
_FUNCTIONS = {
    **dict.fromkeys(_FLOAT_FUNCTIONS, 1), "abs": 1, "min": 2, "max": 2, "round": 2, "log": 2,
    "delta": 2, "cast": 1, "widen": 1, "format": 0, "matches": 2,
}  # fmt: skip
_MATH = (*_FLOAT_FUNCTIONS, "abs", "min", "max", "round", "log")
_GENERICS = {"log": 2, "format": 0, "delta": 0}  # types that may stand in < >; one elsewhere
_METHODS = (
    "offset(by:)", "offset(by:or:)", "hold()", "hold(or:)", "last(or:)", "get()", "get(or:)", "is_fresh()",
    "defaults(to:)", "aggregate(over:using:)", "aggregate(over_exactly:using:)", "aggregate(over_discrete:using:)",
    "aggregate(over_exactly_discrete:using:)", "aggregate(over_instances:using:)", "format(...)", "matches(regex:)",
)  # fmt: skip
AGGREGATES = {
    "count": "count", "sum": "sum", "Σ": "sum", "avg": "avg", "average": "avg", "min": "min", "max": "max",
    "integral": "integral", "∫": "integral", "last": "last", "var": "var", "variance": "var", "σ²": "var",
    "sd": "sd", "standard_deviation": "sd", "σ": "sd", "cov": "cov", "covariance": "cov", "median": "pctl",
    "med": "pctl", "µ": "pctl", "exists": "exists", "∃": "exists", "disjunction": "exists", "forall": "forall",
    "∀": "forall", "conjunction": "forall",
}  # fmt: skip
_SHORT = ("count", "min", "max", "sum", "avg", "integral", "var", "cov", "sd", "med")
_KNOWN = "count, sum, avg, min, max, integral, last, var, sd, cov, median, pctl1 ... pctl99, exists and forall"


class Calls:
    """Builds the nodes of calls and accesses in the clauses of one stream.

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

    # What `Expressions` gives.
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

    # --------------------------------------------------------------------------------------- functions

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
        return self._function(tree.name, tree.types, tree.arguments, tree.name_span, tree.span)

    def _function(
        self, name: str, types: tuple[s.TypeSyntax, ...], arguments: tuple[s.Argument, ...], name_span: Span, span: Span
    ) -> Node:
        if name not in _FUNCTIONS:
            meant = near_miss(name, [*_FUNCTIONS, *self.table.names])
            hint = f"did you mean {meant}?" if meant else f"functions are {', '.join(_FUNCTIONS)}"
            return self.wrong(f"there is no function '{name}'", name_span, hint)
        if name in _MATH and "math" not in self.table.modules:
            return self.wrong(f"'{name}' is in the module math", name_span, "write import math at the top")
        if name == "matches" and "regex" not in self.table.modules:
            return self.wrong("'matches' is in the module regex", name_span, "write import regex at the top")
        count = _FUNCTIONS[name]
        if len(arguments) != count and name != "format":
            what = f"{count} argument{'s' if count > 1 else ''}"
            return self.wrong(f"{name} takes {what}, not {len(arguments)}", span, _example(name))
        labels = {"delta": (None, "or"), "matches": (None, "regex")}.get(name, (None,) * len(arguments))
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
            with warnings.catch_warnings(action="ignore"):
                re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            return self.wrong(f"this is no regular expression: {error}", parts[1].span, None)
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

    # ----------------------------------------------------------------------------------------- methods

    def method(self, tree: s.Method) -> Node:
        """``x.name(...)``."""
        labels = tuple(argument.label for argument in tree.arguments)
        values = [argument.value for argument in tree.arguments]
        match tree.name, labels:
            case "defaults", ("to",):
                return self.default(self.build(tree.operand), self.build(values[0]), tree.span)
            case "offset", ("by",):
                return self.offset(tree.operand, values[0], tree.span)
            case "offset", ("by", "or"):
                return self.default(self.offset(tree.operand, values[0], tree.span), self.build(values[1]), tree.span)
            case "last", ("or",):
                before = self._access(tree, Access.OFFSET, 1)
                return self.default(before, self.build(values[0]), tree.span)
            case (("hold" | "get"), (() | ("or",))):
                node = self._access(tree, Access.HOLD if tree.name == "hold" else Access.GET)
                return self.default(node, self.build(values[0]), tree.span) if values else node
            case "is_fresh", ():
                return self._access(tree, Access.FRESH)
            case "aggregate", (over, "using") if over is not None and over.startswith("over"):
                return self._aggregate(tree, over)
            case name, (None,) if name in _SHORT and isinstance(values[0], s.Number) and values[0].unit:
                return self._window(tree, "over", values[0], AGGREGATES[name], 50 if name == "med" else 0)
        if tree.name in _FUNCTIONS and tree.name not in ("delta", "cast", "widen"):
            arguments = (s.Argument(None, tree.operand, span=tree.operand.span), *tree.arguments)
            return self._function(tree.name, tree.types, arguments, tree.name_span, tree.span)
        return self._unknown_method(tree)

    def _unknown_method(self, tree: s.Method) -> Node:
        known = [each for each in _METHODS if each.startswith(tree.name + "(")]
        if known:
            return self.wrong(
                f"'{tree.name}' is called differently", tree.name_span.to(tree.span), f"write {' or '.join(known)}"
            )
        meant = near_miss(tree.name, [each.partition("(")[0] for each in _METHODS])
        hint = f"did you mean {meant}?" if meant else f"there are {', '.join(_METHODS)}"
        return self.wrong(f"there is no method '{tree.name}'", tree.name_span, hint)

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
            hint = f"at most {FURTHEST_OFFSET} values back, all of which are kept"
            return self.wrong("this offset goes too far back", by.span, hint)
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

    # -------------------------------------------------------------------------------------- aggregates

    def _aggregate(self, tree: s.Method, over: str) -> Node:
        extent, using = (argument.value for argument in tree.arguments)
        named = self._aggregate_function(using)
        if over == "over_instances":
            return self._instances(tree, extent, named)
        if over not in ("over", "over_exactly", "over_discrete", "over_exactly_discrete"):
            return self._unknown_method(tree)
        if named is None:
            self._target(tree.operand, "aggregate")
            return Node("wrong", Type(ANY), tree.span)
        return self._window(tree, over, extent, *named)

    def _aggregate_function(self, using: s.Expression) -> tuple[str, int] | None:
        """The function and, of a percentile, its number."""
        if isinstance(using, s.Name):
            if using.name in AGGREGATES:
                return AGGREGATES[using.name], 50 if AGGREGATES[using.name] == "pctl" else 0
            digits = using.name.removeprefix("pctl")
            if using.name.startswith("pctl") and digits.isdigit() and len(digits) < 4 and int(digits) <= 100:
                return "pctl", int(digits)
            meant = near_miss(using.name, [name for name in AGGREGATES if name.isascii()])
            hint = f"did you mean {meant}?" if meant else f"there are {_KNOWN}"
            self.reports.error(f"there is no aggregate '{using.name}'", using.span, hint)
            return None
        self.reports.error("expected the name of an aggregate", using.span, f"there are {_KNOWN}")
        return None

    def _window(self, tree: s.Method, over: str, extent: s.Expression, function: str, percentile: int) -> Node:
        draft = WindowDraft(function, percentile, exactly="exactly" in over)
        target = self._target(tree.operand, "a window")
        if not isinstance(extent, s.Number) or extent.value <= 0:
            example = "over_discrete: 10" if "discrete" in over else "over: 5s"
            return self.wrong("the length of a window is a positive number", extent.span, f"write {example}")
        if "discrete" in over:
            if extent.unit or not extent.whole:
                return self.wrong("a discrete window counts values", extent.span, "write over: 5s for a duration")
            if extent.value > FURTHEST_OFFSET:
                return self.wrong("this window is too long", extent.span, f"at most {FURTHEST_OFFSET} values")
            draft.count = int(extent.value)
        else:
            draft.duration = seconds_of(extent.value, extent.unit)
            if draft.duration is None:
                hint = "write over_discrete for a number of values" if not extent.unit else None
                units = f"units are {', '.join(SECONDS)}"
                return self.wrong(
                    f"expected a duration such as 5s, not {self.reports.quote(extent.span)}", extent.span, hint or units
                )
            if not 10**-9 <= draft.duration <= LONGEST:
                return self.wrong("this window is too long or too short", extent.span, "from 1ns to 292 years")
        if target is None:
            return Node("wrong", Type(ANY), tree.span)
        stream, arguments = target
        kind = self._aggregate_type(stream, function, draft.exactly, tree)
        if kind is None:
            return Node("wrong", Type(ANY), tree.span)
        return Node("window", kind, tree.span, arguments, stream=stream, window=draft)

    def _instances(self, tree: s.Method, selection: s.Expression, named: tuple[str, int] | None) -> Node:
        """``s.aggregate(over_instances: all, using: f)``."""
        if not isinstance(selection, s.Name) or selection.name.lower() not in ("all", "fresh"):
            hint = "write over_instances: all, or over_instances: fresh"
            return self.wrong("expected the instances that are meant", selection.span, hint)
        operand = tree.operand
        name = operand.name if isinstance(operand, s.Name | s.Call) else ""
        stream = self.table.names.get(name)
        if stream is None or not stream.parameters or name in self.parameters:
            if name and stream is None:
                return self.wrong(f"there is no stream '{name}'", operand.span, self.table.near(name))
            hint = "write over: 5s or over_discrete: 10 for values of one stream"
            return self.wrong(f"{self.reports.quote(operand.span)} has no instances", operand.span, hint)
        if isinstance(operand, s.Call):
            return self.wrong("an aggregate over instances is over all of them", operand.span, f"write {name}")
        if named is None:
            return Node("wrong", Type(ANY), tree.span)
        function, percentile = named
        if function in ("integral", "last"):
            hint = "instances have no order in time; use another aggregate"
            return self.wrong(f"there is no {function} over instances", tree.arguments[1].span, hint)
        kind = self._aggregate_type(stream, function, False, tree)
        if kind is None:
            return Node("wrong", Type(ANY), tree.span)
        draft = WindowDraft(function, percentile, selection=selection.name.lower())
        return Node("instances", kind, tree.span, stream=stream, window=draft)

    def _aggregate_type(self, stream: Declared, function: str, exactly: bool, tree: s.Method) -> Type | None:
        """The type of an aggregate of a stream's values; None after a mistake."""
        target, plain = stream.type, function in ("count", "sum", "integral", "exists", "forall")
        result = target
        wanted, what = Type(PLAIN), ""
        if function == "count":
            result = Type(UNSIGNED)
        elif function == "integral":
            wanted, result, what = Type(NUMBER), Type(FLOAT), "numbers"
        elif function in ("sum", "avg", "min", "max", "pctl"):
            wanted, what = Type(NUMBER), "numbers"
        elif function in ("exists", "forall"):
            wanted, what = Type(BOOL), "Bools"
        elif function in ("var", "sd"):
            wanted, what = Type(FLOAT), "Floats"
        elif function == "cov":
            result = Type(FLOAT)
            wanted, what = tuple_of([result, result]), "pairs of Floats"
        before = describe(target)
        if not unify(target, wanted):
            name = self.reports.quote(tree.arguments[-1].span)[1:-1].rpartition(":")[2].strip()
            hint = "convert the values in an output of its own: cast<Int64, Float64>(x)" if "Float" in what else None
            message = f"{name} aggregates {what}, and {stream.name} is {before}"
            self.reports.error(message, tree.span, hint)
            return None
        return result if plain and not exactly else optional_of(result)


def _example(name: str) -> str:
    """How a function is called."""
    examples = {
        "cast": "write cast<Int64, Float64>(x)",
        "widen": "write widen<Int64>(x)",
        "format": 'write "x is {{}}".format(x)',
        "matches": 'write s.matches(regex: "[a-z]+")',
        "delta": "write delta(x, or: 0.0)",
        "round": "write round(x, 2)",
        "log": "write log(x, 10)",
        "min": "write min(a, b)",
        "max": "write max(a, b)",
    }
    return examples.get(name, f"write {name}(x)")
