"""Windows and aggregates over instances: a part of `hamlet.streams.check.expressions`."""

from __future__ import annotations

from hamlet.errors import Span, near_miss
from hamlet.frontend.units import LONGEST, SECONDS, seconds_of
from hamlet.streams.check.accesses import MOST_COUNTED, Accesses
from hamlet.streams.check.declarations import Declared
from hamlet.streams.check.unify import (
    ANY,
    BOOL,
    FLOAT,
    NUMBER,
    PLAIN,
    UNSIGNED,
    Type,
    describe,
    optional_of,
    tuple_of,
    unify,
)
from hamlet.streams.check.unresolved import Node, WindowDraft
from hamlet.streams.syntax import tree as s

OVER = ("over", "over_exactly", "over_discrete", "over_exactly_discrete", "over_instances")
AGGREGATES = {
    "count": "count", "sum": "sum", "Σ": "sum", "avg": "avg", "average": "avg", "min": "min", "max": "max",
    "integral": "integral", "∫": "integral", "last": "last", "var": "var", "variance": "var", "σ²": "var",
    "sd": "sd", "standard_deviation": "sd", "σ": "sd", "cov": "cov", "covariance": "cov", "median": "pctl",
    "med": "pctl", "µ": "pctl", "exists": "exists", "∃": "exists", "disjunction": "exists", "forall": "forall",
    "∀": "forall", "conjunction": "forall",
}  # fmt: skip
_KNOWN = "count, sum, avg, min, max, integral, last, var, sd, cov, median, pctl1 ... pctl99, exists and forall"


def aggregate_named(name: str) -> tuple[str, int] | None:
    """The function of an aggregate's name and, of a percentile, its number; None where there is no such aggregate."""
    if name in AGGREGATES:
        return AGGREGATES[name], 50 if AGGREGATES[name] == "pctl" else 0
    digits = name.removeprefix("pctl")
    if name.startswith("pctl") and digits.isdigit() and len(digits) < 4 and int(digits) <= 100:
        return "pctl", int(digits)
    return None


class Aggregates(Accesses):
    """Builds the nodes of aggregates."""

    def aggregate(self, tree: s.Method, over: str) -> Node:
        """``s.aggregate(over: extent, using: function)``, with one of the labels of `OVER`."""
        extent, using = (argument.value for argument in tree.arguments)
        named = self._aggregate_function(using)
        if over == "over_instances":
            return self.instances(tree, extent, named)
        if named is None:
            self._target(tree.operand, "aggregate")
            return Node("wrong", Type(ANY), tree.span)
        return self.window(tree, over, extent, *named)

    def _aggregate_function(self, using: s.Expression) -> tuple[str, int] | None:
        """The function and, of a percentile, its number."""
        if isinstance(using, s.Name):
            named = aggregate_named(using.name)
            if named is not None:
                return named
            meant = near_miss(using.name, [name for name in AGGREGATES if name.isascii()])
            hint = f"did you mean {meant}?" if meant else f"there are {_KNOWN}"
            self.reports.error(f"there is no aggregate '{using.name}'", using.span, hint)
            return None
        self.reports.error("expected the name of an aggregate", using.span, f"there are {_KNOWN}")
        return None

    def window(self, tree: s.Method, over: str, extent: s.Expression, function: str, percentile: int) -> Node:
        """A window over time, or over a number of values."""
        draft = WindowDraft(function, percentile, exactly="exactly" in over)
        target = self._target(tree.operand, "a window")
        if not isinstance(extent, s.Number) or extent.value <= 0:
            example = "over_discrete: 10" if "discrete" in over else "over: 5s"
            return self.wrong("the length of a window is a positive number", extent.span, f"write {example}")
        if "discrete" in over:
            if extent.unit or not extent.whole:
                return self.wrong("a discrete window counts values", extent.span, "write over: 5s for a duration")
            if extent.value > MOST_COUNTED:
                return self.wrong("this window is too long", extent.span, f"at most {MOST_COUNTED} values")
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

    def instances(self, tree: s.Method, selection: s.Expression, named: tuple[str, int] | None) -> Node:
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
            return self.wrong(f"there is no {function} over instances", _using(tree), hint)
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
            name = self.reports.quote(_using(tree))[1:-1].rpartition(":")[2].strip()
            hint = "convert the values in an output of its own: cast<Int64, Float64>(x)" if "Float" in what else None
            message = f"{name} aggregates {what}, and {stream.name} is {before}"
            self.reports.error(message, tree.span, hint)
            return None
        return result if plain and not exactly else optional_of(result)


def _using(tree: s.Method) -> Span:
    """Where the function of a window is named: behind ``using``, or by a window in short itself."""
    return tree.arguments[-1].span if tree.name == "aggregate" else tree.name_span
