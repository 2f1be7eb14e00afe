"""MATCHP and MATCHF planned: their letters as operators, and whether the expression is finite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hamlet.policies.analysis.regex_automaton import Automaton, automaton_of, unbound
from hamlet.policies.analysis.rewriting import shown, variables_of
from hamlet.policies.operators.matching import Letter, MatchFuture, MatchPast
from hamlet.policies.operators.nodes import EmptyRelation
from hamlet.policies.plan.planned_operands import Built, UnsafeError
from hamlet.policies.plan.planned_times import refuse_loop
from hamlet.policies.syntax import formula as mfotl
from hamlet.policies.syntax.regex import formulas

if TYPE_CHECKING:
    from hamlet.policies.plan.planning import Planner


@dataclass(frozen=True, slots=True)
class _Asked:
    """A letter: the operator that tells where it holds, or where it does not; `leans` on what another has bound."""

    formula: mfotl.Formula
    built: Built
    holds: bool
    leans: bool = False


def build_match(planner: Planner, formula: mfotl.TemporalMatch) -> Built:
    """The operator of MATCHP or MATCHF.

    Raises
    ------
    UnsafeError
        If it has no finite relation, or looks ahead at the name of a LETPAST.
    """
    every, past = variables_of(formula), formula.operator == "MATCHP"
    asked = [_asked(planner, each, formula, every) for each in dict.fromkeys(formulas(formula.regex))]
    built = list(dict.fromkeys(each.built for each in asked))
    numbers = {each.formula: (built.index(each.built), each.holds) for each in asked}
    automaton = automaton_of(formula.regex, numbers, backwards=not past)
    _check(formula, automaton, built, every, {built.index(each.built) for each in asked if each.leans})
    if not past:
        for each in built:
            refuse_loop(each, formula)
    interval = planner.ticks(formula.interval)
    types = tuple(
        next(each.node.types[each.names.index(name)] for each in built if name in each.names) for name in every
    )
    if interval[1] is not None and interval[0] > interval[1]:
        return Built(planner.node(EmptyRelation, types, ()), every)
    children = tuple(dict.fromkeys(each.node for each in built))
    letters = tuple(
        Letter(children.index(each.node), tuple(every.index(name) for name in each.names)) for each in built
    )
    kind = MatchPast if past else MatchFuture
    return Built(planner.node(kind, children, letters, automaton, interval, types), every)


def _asked(planner: Planner, letter: mfotl.Formula, match: mfotl.TemporalMatch, every: Sequence[str]) -> _Asked:
    """The operator of a letter or of its negation."""
    try:
        return _Asked(letter, planner.build(letter), True)
    except UnsafeError:
        if isinstance(letter, mfotl.Not) and (found := planner.attempt(letter.body)) is not None:
            return _Asked(letter, found, False)
        # Where it is asked some letter has bound all variables: before it, or of MATCHF behind it.
        binders = [
            each for each in formulas(match.regex) if set(variables_of(each)) == set(every) and planner.attempt(each)
        ]
        if binders:
            past = match.operator == "MATCHP"
            reach = mfotl.Interval() if past else mfotl.Interval(mfotl.Bound(0), match.interval.high)
            some = binders[0]
            for each in binders[1:]:
                some = mfotl.Or(some, each, span=letter.span)
            met = mfotl.Temporal("ONCE" if past else "EVENTUALLY", reach, some, span=letter.span)
            beside = planner.attempt(mfotl.And(met, letter, span=letter.span))
            if beside is not None:
                return _Asked(letter, beside, True, leans=True)
        raise


def _check(
    match: mfotl.TemporalMatch, automaton: Automaton, built: Sequence[Built], every: Sequence[str], leaning: set[int]
) -> None:
    found = unbound(automaton, [each.names for each in built], every, leaning)
    if found is None:
        return
    name, where = shown(found[0]), "first" if match.operator == "MATCHP" else "last"
    raise UnsafeError(
        f"the variable '{name}' is not bound: what comes {where} in {match.operator} must bind all variables of the "
        "expression",
        match.span,
        f"begin it with what binds '{name}': MATCHP p({name})? ..."
        if where == "first"
        else f"end it with what binds '{name}': MATCHF ... p({name})?",
    )
