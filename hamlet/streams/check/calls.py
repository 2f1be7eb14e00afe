"""Methods by name: functions, accesses and aggregates of `hamlet.streams.check.expressions`."""

from __future__ import annotations

from hamlet.errors import near_miss
from hamlet.streams.check.aggregates import OVER, Aggregates, aggregate_named
from hamlet.streams.check.functions import FUNCTIONS, Functions
from hamlet.streams.check.unresolved import Node
from hamlet.streams.program.ir import Access
from hamlet.streams.syntax import tree as s

_METHODS = (
    "offset(by:)", "offset(by:or:)", "hold()", "hold(or:)", "last(or:)", "get()", "get(or:)", "is_fresh()",
    "defaults(to:)", "aggregate(over:using:)", "aggregate(over_exactly:using:)", "aggregate(over_discrete:using:)",
    "aggregate(over_exactly_discrete:using:)", "aggregate(over_instances:using:)", "format(...)", "matches(regex:)",
    "at(index:)",
)  # fmt: skip


class Calls(Functions, Aggregates):
    """Builds the nodes of all that is called."""

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
            case "aggregate", (over, "using") if over in OVER:
                return self.aggregate(tree, over)
        short = self._short_window(tree)
        if short is not None:
            return short
        if tree.name in FUNCTIONS and tree.name not in ("delta", "cast", "widen"):
            arguments = (s.Argument(None, tree.operand, span=tree.operand.span), *tree.arguments)
            return self.function(tree.name, tree.types, arguments, tree.name_span, tree.span)
        return self._unknown_method(tree)

    def _short_window(self, tree: s.Method) -> Node | None:
        """``s.count(5s)``, ``s.avg(over_discrete: 10, or: 0.0)``: a window in short, else None."""
        named = aggregate_named(tree.name)
        if named is None or not tree.arguments or len(tree.arguments) > 2:
            return None
        (label, extent), *rest = ((each.label, each.value) for each in tree.arguments)
        if [label for label, _ in rest] not in ([], ["or"]):
            return None
        if label is None:  # min and max of two numbers are functions
            if tree.name in FUNCTIONS and not (isinstance(extent, s.Number) and extent.unit):
                return None
        elif label not in OVER:
            return None
        if label == "over_instances":
            made = self.instances(tree, extent, named)
        else:
            made = self.window(tree, label or "over", extent, *named)
        return self.default(made, self.build(rest[0][1]), tree.span) if rest else made

    def _unknown_method(self, tree: s.Method) -> Node:
        known = [each for each in _METHODS if each.startswith(tree.name + "(")]
        if not known and aggregate_named(tree.name) is not None:
            known = [f"{tree.name}(over: 5s)", f"{tree.name}(over_discrete: 10)"]
        if known:
            return self.wrong(
                f"'{tree.name}' is called differently", tree.name_span.to(tree.span), f"write {' or '.join(known)}"
            )
        meant = near_miss(tree.name, [each.partition("(")[0] for each in _METHODS])
        hint = f"did you mean {meant}?" if meant else f"there are {', '.join(_METHODS)}"
        return self.wrong(f"there is no method '{tree.name}'", tree.name_span, hint)
