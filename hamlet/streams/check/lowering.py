"""Nodes to the program: types are settled, windows and aggregates numbered."""

from __future__ import annotations

from fractions import Fraction

from hamlet.frontend.reports import Reports
from hamlet.streams.check.declarations import Declared, Table, has_optional
from hamlet.streams.check.pacing import Paced
from hamlet.streams.check.timing import Clauses
from hamlet.streams.check.unify import describe, settle
from hamlet.streams.check.unresolved import ClauseDraft, Node
from hamlet.streams.program import ir

_SIGNED_LIMIT = 2**63


def lower(
    table: Table,
    clauses: dict[int, Clauses],
    layers: tuple[tuple[ir.Task, ...], ...],
    reports: Reports,
    text: str,
    source: str,
) -> ir.Program:
    """The program of a specification that has no mistake so far.

    Types that are left open, optional outputs and literals that do not fit are reported; the program is whole where
    none is.
    """
    lowering = _Lowering(table, reports)
    streams = [lowering.stream(each, clauses.get(each.id)) for each in table.streams]
    inputs = sum(each.output is None for each in table.streams)
    return ir.Program(tuple(streams), inputs, tuple(lowering.windows), tuple(lowering.aggregates), layers, text, source)


class _Lowering:
    def __init__(self, table: Table, reports: Reports) -> None:
        self.table = table
        self.reports = reports
        self.windows: list[ir.Window] = []
        self.aggregates: list[ir.InstanceAggregate] = []
        self._window_ids: dict[tuple[object, ...], int] = {}
        self._aggregate_ids: dict[tuple[object, ...], int] = {}
        self._reader = 0

    # ------------------------------------------------------------------------------------------ streams

    def stream(self, declared: Declared, clauses: Clauses | None) -> ir.Stream:
        """One input, output or trigger."""
        kind = settle(declared.type)
        if kind is None or has_optional(kind):
            self._no_type(declared, kind)
            kind = ir.INT64
        parameters = []
        for name, unknown in declared.parameters.items():
            settled = settle(unknown)
            if settled is None:
                hint = f"write ({name}: Int64)"
                self.reports.error(f"the type of the parameter {name} cannot be found out", declared.span, hint)
            parameters.append((name, settled or ir.INT64))
        if clauses is None:
            return ir.Stream(declared.id, declared.name, ir.Kind.INPUT, kind, span=declared.span)
        self._reader = declared.id
        word = ir.Kind.TRIGGER if declared.trigger else ir.Kind.OUTPUT
        spawn, close = None, None
        if clauses.spawn is not None and clauses.spawn_pace is not None:
            arguments = tuple(self.expression(each, clauses.spawn_pace) for each in clauses.spawn.expressions)
            condition = self._condition(clauses.spawn, clauses.spawn_pace)
            spawn = ir.Spawn(clauses.spawn_pace, condition, arguments, span=clauses.spawn.span)
        evals = []
        for draft, pace in zip(clauses.evals, clauses.eval_paces, strict=True):
            if pace is not None:
                value = self.expression(draft.expressions[0], pace)
                evals.append(ir.Eval(pace, self._condition(draft, pace), value, span=draft.span))
        if clauses.close is not None and clauses.close_pace is not None:
            condition = self._condition(clauses.close, clauses.close_pace)
            close = ir.Close(clauses.close_pace, condition, span=clauses.close.span)
        return ir.Stream(
            declared.id, declared.name, word, kind, tuple(parameters), spawn, tuple(evals), close, span=declared.span
        )

    def _no_type(self, declared: Declared, kind: ir.ValueType | None) -> None:
        if kind is None:
            hint = f"write output {declared.name}: Int64 ..."
            self.reports.error(f"the type of {declared.name} cannot be found out", declared.span, hint)
        else:
            message = f"the values of {declared.name} have an optional part: {kind}"
            self.reports.error(message, declared.span, "say what counts where it is missing: .defaults(to: ...)")

    def _condition(self, draft: ClauseDraft, pace: Paced) -> ir.Expression | None:
        return None if draft.condition is None else self.expression(draft.condition, pace)

    # -------------------------------------------------------------------------------------- expressions

    def expression(self, node: Node, pace: Paced) -> ir.Expression:
        """One expression; `pace` is that of its clause."""
        parts = tuple(self.expression(part, pace) for part in node.parts)
        kind = settle(node.type)
        if kind is None:
            shown = self.reports.quote(node.span)
            self.reports.error(f"the type of {shown} cannot be found out: {describe(node.type)}", node.span, None)
            kind = ir.INT64
        span = node.span
        match node.kind:
            case "constant":
                return self._constant(node, kind)
            case "parameter":
                assert isinstance(node.value, int)
                return ir.Parameter(node.value, type=kind, span=span)
            case "unary":
                return ir.Unary(node.name, parts[0], type=kind, span=span)
            case "binary":
                return ir.Binary(node.name, parts[0], parts[1], type=kind, span=span)
            case "choice":
                return ir.Choice(parts[0], parts[1], parts[2], type=kind, span=span)
            case "tuple":
                return ir.MakeTuple(parts, type=kind, span=span)
            case "part":
                assert isinstance(node.value, int)
                return ir.GetPart(parts[0], node.value, type=kind, span=span)
            case "default":
                return ir.Default(parts[0], parts[1], type=kind, span=span)
            case "call":
                return ir.Call(node.name, parts, type=kind, span=span)
            case "read":
                assert node.stream is not None
                return ir.Read(node.stream.id, node.access, parts, node.amount, type=kind, span=span)
            case "window":
                return ir.ReadWindow(self._window(node, kind, pace), parts, type=kind, span=span)
            case "instances":
                return ir.ReadInstances(self._aggregate(node, kind), type=kind, span=span)
        raise AssertionError(node.kind)  # what has a mistake is not lowered

    def _constant(self, node: Node, kind: ir.ValueType) -> ir.Expression:
        value = node.value
        signed = isinstance(kind, ir.Scalar) and kind.family == "Int"
        if signed and isinstance(value, int) and value >= _SIGNED_LIMIT:
            self.reports.error(f"{value} is too large for {kind}", node.span, "Int64 ends at 9223372036854775807")
        assert value is not None
        return ir.Constant(value, type=kind, span=node.span)

    def _window(self, node: Node, kind: ir.ValueType, pace: Paced) -> int:
        """The number of a window; the same window of one stream is read more than once."""
        draft, stream = node.window, node.stream
        assert draft is not None
        assert stream is not None
        period: Fraction | None = pace.period if isinstance(pace, ir.PeriodicPacing) else None
        extent = (draft.duration, draft.count, draft.exactly, draft.function, draft.percentile, period)
        key = (self._reader, stream.id, *extent, kind)
        if key not in self._window_ids:
            self._window_ids[key] = len(self.windows)
            self.windows.append(ir.Window(len(self.windows), self._reader, stream.id, *extent, kind, span=node.span))
        return self._window_ids[key]

    def _aggregate(self, node: Node, kind: ir.ValueType) -> int:
        draft, stream = node.window, node.stream
        assert draft is not None
        assert stream is not None
        rest = (draft.selection, draft.function, draft.percentile, kind)
        key = (self._reader, stream.id, *rest)
        if key not in self._aggregate_ids:
            self._aggregate_ids[key] = len(self.aggregates)
            self.aggregates.append(
                ir.InstanceAggregate(len(self.aggregates), self._reader, stream.id, *rest, span=node.span)
            )
        return self._aggregate_ids[key]
