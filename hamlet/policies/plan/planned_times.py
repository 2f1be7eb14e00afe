"""Operators of time planned: those with one operand, SINCE, UNTIL, TRIGGER, RELEASE, and the meaning of a LETPAST."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hamlet.policies.analysis.rewriting import Edge, Meaning, Throughout, negation, shown, variables_of
from hamlet.policies.operators.always import Always, EarlyHistorically, FirstEdge, Historically, LastEdge
from hamlet.policies.operators.nodes import EmptyRelation, Join
from hamlet.policies.operators.recursion import EarlySince, Recursion, known_of
from hamlet.policies.operators.temporal import Next, Previous
from hamlet.policies.operators.temporal import Since as SinceNode
from hamlet.policies.operators.temporal import Until as UntilNode
from hamlet.policies.plan.planned_operands import Built, UnsafeError, pushed
from hamlet.policies.syntax import formula as mfotl

if TYPE_CHECKING:
    from hamlet.policies.plan.planning import Planner


def build_temporal(planner: Planner, formula: mfotl.Temporal) -> Built:
    """The operator of PREV, NEXT, ONCE, EVENTUALLY, HISTORICALLY or ALWAYS."""
    operator, interval, body = formula.operator, planner.ticks(formula.interval), formula.body
    if operator in ("HISTORICALLY", "ALWAYS"):
        return _throughout(planner, formula)
    built = planner.build(body)
    if interval[1] is not None and interval[0] > interval[1]:
        return Built(planner.node(EmptyRelation, built.node.types, ()), built.names)
    if operator == "PREV":
        return Built(planner.node(Previous, built.node, interval), built.names)
    if operator != "ONCE":
        refuse_loop(built, formula)
    if operator == "NEXT":
        return Built(planner.node(Next, built.node, interval), built.names)
    kind = _since(built, interval) if operator == "ONCE" else UntilNode
    return Built(planner.node(kind, built.node, interval, None, False, ()), built.names)


def _since(right: Built, interval: tuple[int, int | None]) -> type[SinceNode]:
    """SINCE and ONCE; those within a LETPAST decide as early as they can."""
    return EarlySince if right.node.loops and interval[0] > 0 else SinceNode


def _throughout(planner: Planner, formula: mfotl.Temporal) -> Built:
    past = formula.operator == "HISTORICALLY"
    interval = planner.ticks(formula.interval)
    somewhere = mfotl.Temporal("ONCE" if past else "EVENTUALLY", formula.interval, mfotl.Truth(True), span=formula.span)
    if interval[1] is not None and interval[0] > interval[1]:
        return _always_or_unsafe(planner, formula)
    if isinstance(formula, Edge):
        built = planner.build(formula.body)
        return Built(planner.node(LastEdge if past else FirstEdge, built.node, interval), built.names)
    if isinstance(formula, Throughout) or interval[0] == 0:
        body = planner.attempt(formula.body)
        if body is not None:
            if not past:
                refuse_loop(body, formula)
            early = EarlyHistorically if interval[0] > 0 and body.node.loops else Historically
            node = planner.node(early if past else Always, body.node, interval)
            if interval[0] > 0:
                node = planner.node(Join, node, planner.build(somewhere).node, (), ())
            return Built(node, body.names)
    if not variables_of(formula) and not isinstance(formula, Throughout):
        return planner.build(mfotl.Not(negation(formula), span=formula.span))
    return _always_or_unsafe(planner, formula)


def _always_or_unsafe(planner: Planner, formula: mfotl.Temporal) -> Built:
    if not variables_of(formula):
        return planner.build(mfotl.Truth(True))
    name = shown(variables_of(formula)[0])
    raise UnsafeError(
        f"the variable '{name}' is not bound: {formula.operator} holds for infinitely many values",
        formula.span,
        f"put what binds '{name}' beside it: p({name}) AND {formula.operator} ...",
    )


def build_since_until(
    planner: Planner,
    formula: mfotl.Since | mfotl.Until,
    interval: mfotl.Interval,
    left: mfotl.Formula,
    right: mfotl.Formula,
) -> Built:
    """The operator of SINCE or UNTIL."""
    second = planner.build(right)
    missing = [name for name in variables_of(left) if name not in second.names]
    if missing:
        word = "SINCE" if isinstance(formula, mfotl.Since) else "UNTIL"
        raise UnsafeError(
            f"the variable '{shown(missing[0])}' on the left of {word} is not bound on its right",
            left.span,
            f"the variables on the left of {word} must be among those on its right",
        )
    ticks = planner.ticks(interval)
    if ticks[1] is not None and ticks[0] > ticks[1]:
        return Built(planner.node(EmptyRelation, second.node.types, ()), second.names)
    kind = _since(second, ticks) if isinstance(formula, mfotl.Since) else UntilNode
    if kind is UntilNode:
        refuse_loop(second, formula)
    if left == mfotl.Truth(True):
        return Built(planner.node(kind, second.node, ticks, None, False, ()), second.names)
    negated = False
    if isinstance(left, mfotl.Not) and (found := planner.attempt(left.body)) is not None:
        first, negated = found, True
    else:
        try:
            first = planner.build(left)
        except UnsafeError:
            opposite = planner.attempt(pushed(left))
            if opposite is None:
                raise
            first, negated = opposite, True
    if kind is UntilNode:
        refuse_loop(first, formula)
    key = second.places(first.names)
    return Built(planner.node(kind, second.node, ticks, first.node, negated, key), second.names)


def build_dual(planner: Planner, formula: mfotl.Trigger | mfotl.Release) -> Built:
    """The operator of TRIGGER or RELEASE, which is rewritten; one whose interval lacks 0 needs what binds beside it."""
    past, left, right, span = isinstance(formula, mfotl.Trigger), formula.left, formula.right, formula.span
    kind, word = (mfotl.Since, "HISTORICALLY") if past else (mfotl.Until, "ALWAYS")
    low, high = planner.ticks(formula.interval)
    names, missing = variables_of(right), [each for each in variables_of(left) if each not in variables_of(right)]
    name = "TRIGGER" if past else "RELEASE"
    if missing:
        raise UnsafeError(
            f"the variable '{shown(missing[0])}' on the left of {name} is not bound on its right",
            left.span,
            f"the variables on the left of {name} must be among those on its right",
        )
    if high is not None and low > high and not names:
        return planner.truth()
    if low == 0 and (high is None or low <= high):
        every = mfotl.Temporal(word, formula.interval, right, span=span)
        return planner.build(
            mfotl.Or(every, kind(formula.interval, right, mfotl.And(right, left, span=span), span=span), span=span)
        )
    if not names:
        return planner.build(mfotl.Not(kind(formula.interval, negation(left), negation(right), span=span), span=span))
    raise UnsafeError(
        f"the variable '{shown(names[0])}' is not bound: where nothing lies in its interval, {name} holds for "
        "infinitely many values",
        span,
        f"put what binds '{shown(names[0])}' beside it: p({shown(names[0])}) AND (...)",
    )


def build_recursion(planner: Planner, meaning: Meaning) -> Built:
    """What a LETPAST gives a name to."""
    if meaning not in planner.recursions:
        assert meaning.loop is not None
        name = planner.loops[meaning.loop] = known_of(meaning.loop.types)
        built = planner.keep(planner.build(meaning.formula), meaning.parameters)
        reached, todo = set(), [built.node]
        while todo:
            node = todo.pop()
            if id(node) not in reached and id(name) in node.loops:
                reached.add(id(node))
                todo += node.children
        inside = [node for node in planner.nodes if id(node) in reached]
        planner.recursions[meaning] = built
        if inside:
            planner.recursions[meaning] = Built(planner.node(Recursion, name, tuple(inside)), built.names)
    return planner.recursions[meaning]


def refuse_loop(built: Built, formula: mfotl.Formula) -> None:
    """No operator looks ahead at the name of a LETPAST that is not known there; rewriting may come to that."""
    if built.node.loops:
        message = "the name of a LETPAST would be needed at time-points to come"
        raise UnsafeError(message, formula.span, "put what binds the variables into the formula itself")
