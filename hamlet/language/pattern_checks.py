"""What a pattern must not be, although the grammar takes it: misplaced NOT and AND, empty ranges, mixed-up variables.

Source: docs/language.md ("A query", "Trends", "Negation").
"""

from __future__ import annotations

from dataclasses import dataclass

from hamlet.frontend.reports import Reports
from hamlet.language.query import (
    Alternation,
    Atom,
    Conjunction,
    Negation,
    Pattern,
    Repetition,
    Sequence,
    atoms,
    children,
)


@dataclass(frozen=True)
class Variables:
    """The variables of a pattern.

    Attributes
    ----------
    types : dict of str to str
        Event type of each variable, in the order of the text; the first one where they contradict.
    negated : frozenset of str
        Those that stand inside NOT.
    scopes : tuple of frozenset of str
        Variables that can be neighbours: those outside NOT, then those of each negated pattern on its own.
    """

    types: dict[str, str]
    negated: frozenset[str]
    scopes: tuple[frozenset[str], ...]

    @property
    def positive(self) -> list[str]:
        """The variables outside NOT, in the order of the text."""
        return [variable for variable in self.types if variable not in self.negated]


def check_shape(pattern: Pattern, reports: Reports) -> bool:
    """Report misplaced NOT and AND and impossible repetitions.

    Returns
    -------
    bool
        Whether the pattern is sound, so that an automaton can be built from it.
    """
    before = len(reports.errors)
    if isinstance(pattern, Conjunction):
        if len(pattern.operands) > 2:
            message = f"AND joins two patterns, here are {len(pattern.operands)}"
            reports.error(message, pattern.span, "AND counts pairs of trends; write another query for a third pattern")
        for operand in pattern.operands:
            _check(operand, pattern, False, reports)
    else:
        _check(pattern, None, False, reports)
    return len(reports.errors) == before


def _check(pattern: Pattern, parent: Pattern | None, inside_not: bool, reports: Reports) -> None:
    """One node: `parent` is what it directly stands in, None at the top of the pattern."""
    match pattern:
        case Negation():
            _check_negation(pattern, parent, inside_not, reports)
            inside_not = True
        case Conjunction():
            hint = "write SEQ(A, B) OR SEQ(B, A) for both in any order; AND counts pairs of whole trends"
            reports.error("AND stands only at the top of a pattern", pattern.span, hint)
        case Repetition(low=low, high=high):
            _check_bounds(pattern, low, high, reports)
        case Sequence(parts=parts) if not inside_not and all(isinstance(part, Negation) for part in parts):
            hint = "put the NOT into a SEQ with an event that it stands before or after, as in SEQ(A, NOT B)"
            reports.error("this SEQ has nothing but NOT: no event is left to form a trend", pattern.span, hint)
        case _:
            pass
    for part in children(pattern):
        _check(part, pattern, inside_not, reports)


def _check_negation(pattern: Negation, parent: Pattern | None, inside_not: bool, reports: Reports) -> None:
    text = reports.quote(pattern.span)
    body = reports.quote(pattern.body.span)[1:-1]
    one, two = [letter for letter in "ABC" if letter != body][:2]  # types for an example
    match parent:
        case Negation():
            hint = "write the pattern without NOT to ask for its events"
            reports.error("NOT of NOT is not part of the language", pattern.span, hint)
        case _ if inside_not:
            message = f"{text} stands inside another NOT; a negated pattern has no NOT of its own"
            reports.error(message, pattern.span, "forbid the events themselves, as in SEQ(A, NOT SEQ(B, C), D)")
        case Sequence():
            pass
        case None:
            hint = f"put it into a SEQ with the events around it, as in SEQ({one}, NOT {body})"
            reports.error("a pattern cannot be a NOT alone: no event is left to form a trend", pattern.span, hint)
        case Repetition():
            hint = f"repeat a SEQ that holds it, as in (SEQ({one}, NOT {body}))+"
            reports.error("NOT cannot be repeated: there is nothing to take part several times", pattern.span, hint)
        case Alternation():
            hint = f"put it into a SEQ within that branch, as in SEQ({one}, NOT {body}) OR {two}"
            reports.error("NOT cannot be a branch of OR", pattern.span, hint)
        case _:
            hint = f"put it into one of the patterns, as in SEQ({one}, NOT {body}) AND {two}"
            reports.error("NOT cannot be an operand of AND", pattern.span, hint)


def _check_bounds(pattern: Repetition, low: int, high: int | None, reports: Reports) -> None:
    body = reports.quote(pattern.body.span)[1:-1]
    if high is None:
        return
    if high < 1:
        message = f"{reports.quote(pattern.span)} asks for no event at all; a repetition allows at least one"
        reports.error(message, pattern.span, f"write {body}? for at most one, or leave it out")
    elif low > high:
        message = f"{reports.quote(pattern.span)} asks for at least {low} and at most {high}"
        reports.error(message, pattern.span, f"write the smaller number first: {body}{{{high},{low}}}")


def variables_of(pattern: Pattern, reports: Reports) -> Variables:
    """The variables of a pattern; reports one with two types, and one both inside and outside NOT."""
    first: dict[str, Atom] = {}
    for atom in atoms(pattern):
        earlier = first.setdefault(atom.variable, atom)
        if earlier.type != atom.type:
            message = f"the variable {atom.variable} stands for {earlier.type} and for {atom.type}"
            hint = f"give one of them another variable, as in {atom.type} {atom.variable}2"
            reports.error(message, atom.span, hint)
    bodies = _negated_bodies(pattern)
    inside = {atom.variable: atom for body in bodies for atom in atoms(body)}
    outside = {atom.variable: atom for atom in _positive_atoms(pattern)}
    for variable in inside.keys() & outside.keys():
        atom = inside[variable]
        message = f"the variable {variable} stands inside and outside NOT"
        hint = f"give the negated event a variable of its own, as in NOT {atom.type} {variable.lower()}2"
        reports.error(message, atom.span, hint)
    scopes = [frozenset(outside)] + [frozenset(atom.variable for atom in atoms(body)) for body in bodies]
    types = {variable: atom.type for variable, atom in first.items()}
    return Variables(types, frozenset(inside.keys() - outside.keys()), tuple(scopes))


def _negated_bodies(pattern: Pattern) -> list[Pattern]:
    """The outermost negated patterns."""
    if isinstance(pattern, Negation):
        return [pattern.body]
    return [body for part in children(pattern) for body in _negated_bodies(part)]


def _positive_atoms(pattern: Pattern) -> list[Atom]:
    if isinstance(pattern, Atom):
        return [pattern]
    if isinstance(pattern, Negation):
        return []
    return [atom for part in children(pattern) for atom in _positive_atoms(part)]


def warn_of_reluctance(pattern: Pattern, reports: Reports) -> None:
    """Warn of ``A+?``, which elsewhere means as few as possible and here that A+ may be missing."""
    if isinstance(pattern, Repetition) and (pattern.low, pattern.high) == (0, 1):
        body = pattern.body
        if isinstance(body, Repetition) and reports.text[body.span.end - 1 : body.span.end] != ")":
            written = reports.quote(body.span)[1:-1]
            message = (
                f"{written}? makes {written} optional; it does not mean as few as possible, for all matches are counted"
            )
            reports.warn(message, pattern.span, f"write ({written})? to say so, or {written}")
    for part in children(pattern):
        warn_of_reluctance(part, reports)
