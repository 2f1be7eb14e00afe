"""A WHERE clause taken apart: equivalences, local predicates per variable, adjacent predicates per pair of variables.

NOT is pushed inward and AND is split at the top. Both are sound in three-valued logic, where NOT (a < b) and a >= b
are unknown together. A predicate on a pair is rewritten to one form, whichever side it was written from: a plain
reference speaks of the earlier event, NEXT of the later one. Source: docs/language.md; HAMLET (SIGMOD'21) Def. 2.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field, replace

from hamlet.errors import near_miss
from hamlet.frontend.reports import Reports
from hamlet.language.conditions import conjuncts, depth, is_condition, parts, references, rewritten, walk
from hamlet.language.meaning import Pair
from hamlet.language.pattern_checks import Variables
from hamlet.language.printing import name_text, to_text
from hamlet.language.query import (
    And,
    Between,
    Binary,
    Comparison,
    Condition,
    Equivalence,
    Expression,
    Literal,
    Membership,
    NullTest,
    Or,
    Reference,
    Shift,
    Span,
    Unary,
)

MOST_VALUES = 60  # of one condition at once; the expression machine has a few more places
MOST_COMPARED = 64  # attributes of a variable, and conditions on a pair, that the kernel can hold


@dataclass
class Predicates:
    """What a WHERE clause says.

    Attributes
    ----------
    equivalences : list of Equivalence
        As written.
    local : dict of str to list of Condition
        For each variable of the pattern the conditions on its events; those without a reference are on every variable.
    adjacent : dict of (str, str) to list of Condition
        For variables (X, Y), X bound to the earlier of two neighbours, the conditions on them.
    """

    equivalences: list[Equivalence] = field(default_factory=list)
    local: dict[str, list[Condition]] = field(default_factory=dict)
    adjacent: dict[Pair, list[Condition]] = field(default_factory=dict)


def take_apart(
    condition: Condition | None, variables: Variables, neighbours: Set[Pair] | None, reports: Reports
) -> Predicates:
    """Sort the conjuncts of a WHERE clause; report those that are of no kind.

    Parameters
    ----------
    condition : Condition or None
        The clause as written.
    variables : Variables
        Of the query's pattern.
    neighbours : set of (str, str), or None
        The pairs of variables that can be neighbours, where they are known; the others get a warning.
    reports : Reports
        Takes the messages.
    """
    found = Predicates(local={variable: [] for variable in variables.types})
    if condition is None:
        return found
    sound = _check_equivalences(condition, True, reports)
    for conjunct in conjuncts(condition):
        if isinstance(conjunct, Equivalence):
            found.equivalences.append(conjunct)
        elif sound:
            _sort(conjunct, found, variables, neighbours, reports)
    _check_sizes(found, condition.span, reports)
    return found


def _check_sizes(found: Predicates, span: Span, reports: Reports) -> None:
    """Report what the engine has no room for."""
    hint = "split the condition over several queries"
    for condition in (each for conditions in (*found.local.values(), *found.adjacent.values()) for each in conditions):
        if depth(condition) > MOST_VALUES:
            message = f"this condition holds more than {MOST_VALUES} values at once while it is computed"
            reports.error(message, condition.span, "write what nests deepest first: (a + b) + c, not c + (a + b)")
    read: dict[str, set[str]] = {}
    for (earlier, later), conditions in found.adjacent.items():
        mine: set[str] = set()
        for reference in (each for condition in conditions for each in references(condition)):
            following = reference.shift is Shift.NEXT
            (mine if following else read.setdefault(earlier, set())).add(reference.attribute)
        for variable, attributes in ((earlier, read.get(earlier, set())), (later, mine)):
            if len(attributes) > MOST_COMPARED:
                message = f"more than {MOST_COMPARED} attributes of {variable} are compared with a neighbour's"
                reports.error(message, span, hint)
        if len(conditions) > MOST_COMPARED:
            message = f"more than {MOST_COMPARED} conditions on {earlier} and the {later} after it"
            reports.error(message, span, hint)


def _sort(
    conjunct: Condition, found: Predicates, variables: Variables, neighbours: Set[Pair] | None, reports: Reports
) -> None:
    named = list(dict.fromkeys(references(conjunct)))
    known = [_is_known(reference, variables, reports) for reference in named]
    if not (all(known) and _check_bare_words(conjunct, variables, reports)):
        return
    if any(reference.shift is not Shift.NONE for reference in named):
        pair = _pair(conjunct, named, variables, reports)
        if pair is not None:
            _check_neighbours(conjunct, pair, variables, neighbours, reports)
            found.adjacent.setdefault(pair, []).append(_from_earlier(conjunct, pair))
        return
    mentioned = list(dict.fromkeys(reference.variable for reference in named))
    if len(mentioned) > 1:
        _refuse_plain_pair(conjunct, mentioned, variables, neighbours, reports)
        return
    for variable in mentioned or variables.types:
        found.local[variable].append(conjunct)


# --------------------------------------------------------------------------------------- what is of no kind


def _check_equivalences(condition: Condition, top: bool, reports: Reports) -> bool:
    """Report equivalences under OR or NOT."""
    if isinstance(condition, Equivalence) and not top:
        message = "an equivalence holds for the whole trend; it cannot stand under OR or NOT"
        hint = f"join it to the other conditions with AND: WHERE {to_text(condition)} AND (...)"
        reports.error(message, condition.span, hint)
        return False
    top = top and isinstance(condition, And)
    inner = [_check_equivalences(part, top, reports) for part in parts(condition) if is_condition(part)]
    return all(inner)


def _is_known(reference: Reference, variables: Variables, reports: Reports) -> bool:
    if reference.variable in variables.types:
        return True
    event = "{}" if reference.shift is Shift.NONE else f"{reference.shift.value}({{}})"
    usage = f"{event}.{name_text(reference.attribute, free=True)}"
    report_unknown(reference.variable, reference.span, usage, variables, reports)
    return False


def report_unknown(variable: str, span: Span, usage: str, variables: Variables, reports: Reports) -> None:
    """Say that a variable is not in the pattern, and which one was probably meant.

    Parameters
    ----------
    variable : str
        The unknown name.
    span : Span
        What is marked.
    usage : str
        What to write, with ``{}`` in place of the variable.
    variables : Variables
        Of the pattern.
    reports : Reports
        Takes the message.
    """
    of_type = [name for name, event_type in variables.types.items() if event_type == variable]
    meant = of_type[0] if of_type else near_miss(variable, variables.types)
    if meant is None:
        hint = f"the variables are {', '.join(variables.types)}"
    elif of_type:
        hint = f"events of type {variable} have the variable {meant} here: write {usage.format(name_text(meant))}"
    else:
        hint = f"did you mean {usage.format(name_text(meant))}?"
    reports.error(f"the pattern has no variable '{variable}'", span, hint)


def _check_bare_words(condition: Condition, variables: Variables, reports: Reports) -> bool:
    """Report comparisons of bare words with something that mentions no event."""
    if isinstance(condition, (And, Or)):
        sound = [_check_bare_words(operand, variables, reports) for operand in condition.operands]
        return all(sound)
    bare = [part for part in walk(condition) if isinstance(part, Literal) and part.bare]
    if not bare or any(references(condition)):
        return True
    word = str(bare[0].value)
    variable = variables.positive[0] if variables.positive else "T"
    text = to_text(_with_reference(condition, word, variable))
    message = f"this condition speaks of no event: '{word}' without a variable is the text '{word}'"
    reports.error(message, condition.span, f"to compare the attribute {word}, name its variable: {text}")
    return False


def _with_reference(condition: Condition, word: str, variable: str) -> Condition:
    """The condition with its first bare word read as an attribute, for a hint."""
    done = False

    def expression(inner: Expression) -> Expression:
        nonlocal done
        match inner:
            case Literal(value=value, bare=True) if value == word and not done:
                done = True
                return Reference(variable, word)
            case Unary(operand=operand):
                return replace(inner, operand=expression(operand))
            case Binary(left=left, right=right):
                return replace(inner, left=expression(left), right=expression(right))
        return inner

    match condition:
        case Comparison(left=left, right=right):
            return replace(condition, left=expression(left), right=expression(right))
        case Membership(operand=operand) | Between(operand=operand) | NullTest(operand=operand):
            return replace(condition, operand=expression(operand))
    return condition


# ------------------------------------------------------------------------------------------- pairs of events


def _pair(
    condition: Condition, named: list[Reference], variables: Variables, reports: Reports
) -> tuple[str, str] | None:
    """The pair (earlier, later) that a condition with NEXT or PREV speaks of; None where that is reported."""
    sets: Mapping[Shift, list[str]] = {
        shift: list(dict.fromkeys(each.variable for each in named if each.shift is shift)) for shift in Shift
    }
    plain, following, preceding = sets[Shift.NONE], sets[Shift.NEXT], sets[Shift.PREV]
    both = _two_sided(plain, following, preceding)
    if both is not None:
        return both if _in_one_scope(condition, both, variables, reports) else None
    if following and preceding:
        hint = "write two conditions with AND between them, one with NEXT and one with PREV"
        reports.error("NEXT and PREV in one condition speak of more than one pair of events", condition.span, hint)
        return None
    word, shifted = ("NEXT", following) if following else ("PREV", preceding)
    if len(shifted) > 1:
        message = f"{word} of {' and of '.join(shifted)}: one condition speaks of one pair of events"
        reports.error(message, condition.span, "write a condition for each pair, with AND between them")
        return None
    if not plain:
        alone = to_text(rewritten(condition, lambda each: replace(each, shift=Shift.NONE)))
        message = f"{word} needs the other event of the pair; this condition speaks of {shifted[0]} alone"
        reports.error(message, condition.span, f"write {alone}")
        return None
    if len(plain) > 1:
        extra = next((name for name in plain if name == shifted[0]), plain[-1])
        hint = f"keep one variable besides {word}({shifted[0]})"
        if extra == shifted[0]:
            hint = f"write {word}({extra}) wherever the condition speaks of {extra}"
        reports.error(f"{' and '.join(plain)} stand here without NEXT or PREV", condition.span, hint)
        return None
    pair = (plain[0], shifted[0]) if following else (shifted[0], plain[0])
    return pair if _in_one_scope(condition, pair, variables, reports) else None


def _two_sided(plain: list[str], following: list[str], preceding: list[str]) -> Pair | None:
    """The pair of a condition that names two variables from both sides: X.a < NEXT(Y).b OR Y.c > PREV(X).d.

    Of two different variables, X then Y, a plain X is the earlier event and a plain Y the later one; of one variable
    that stands on both sides, plain could be either, so only one of NEXT and PREV is allowed there.
    """
    if len(following) > 1 or len(preceding) > 1 or not (following or preceding):
        return None
    earlier = preceding or [name for name in plain if name not in following]
    later = following or [name for name in plain if name not in preceding]
    if len(earlier) != 1 or len(later) != 1 or earlier == later:
        return None
    if (following and earlier[0] not in plain) or (preceding and later[0] not in plain):
        return None  # NEXT is said from the earlier event, PREV from the later one
    return (earlier[0], later[0]) if set(plain) <= {earlier[0], later[0]} else None


def _in_one_scope(condition: Condition, pair: Pair, variables: Variables, reports: Reports) -> bool:
    """Report a pair of which one event stands inside NOT and the other does not."""
    inside = [variable for variable in pair if variable in variables.negated]
    if len(inside) != 1:
        return True
    message = f"{inside[0]} stands inside NOT and cannot be compared with its neighbours in the trend"
    hint = "an equivalence such as [driver] also holds between a negated pattern and the trend"
    reports.error(message, condition.span, hint)
    return False


def _from_earlier(condition: Condition, pair: Pair) -> Condition:
    """The condition as the earlier event sees it: plain for the earlier, NEXT for the later."""
    earlier, later = pair
    turned = any(each.shift is Shift.PREV for each in references(condition)) and earlier == later

    def seen(reference: Reference) -> Reference:
        is_later = (reference.shift is Shift.NONE) == turned if earlier == later else reference.variable == later
        return replace(reference, shift=Shift.NEXT if is_later else Shift.NONE)

    return rewritten(condition, seen)


def _check_neighbours(
    condition: Condition, pair: Pair, variables: Variables, neighbours: Set[Pair] | None, reports: Reports
) -> None:
    if neighbours is None or pair in neighbours:
        return
    earlier, later = pair
    if not any(scope.issuperset(pair) for scope in variables.scopes):
        message = f"{earlier} and {later} stand in different NOTs and are never neighbours"
        hint = "compare events of one negated pattern only"
        reports.warn(f"{message}: this condition is never tested", condition.span, hint)
        return
    if (later, earlier) in neighbours:
        hint = f"{earlier} comes directly after {later}: compare {later} with NEXT({earlier})"
    elif neighbours:
        listed = [f"{first} then {second}" for first, second in sorted(neighbours)]
        hint = f"neighbours in this pattern are {', '.join(listed[:6])}{', ...' if len(listed) > 6 else ''}"
    else:
        hint = "no trend of this pattern has two events"
    message = f"no trend has {later} directly after {earlier}: this condition is never tested"
    reports.warn(message, condition.span, hint)


def _refuse_plain_pair(
    condition: Condition,
    mentioned: list[str],
    variables: Variables,
    neighbours: Set[Pair] | None,
    reports: Reports,
) -> None:
    """Two variables without NEXT or PREV: say what was probably meant."""
    message = f"this condition compares {' and '.join(mentioned)} without NEXT or PREV"
    hint = "compare neighbours with NEXT or PREV, two at a time"
    inside = [name for name in mentioned if name in variables.negated]
    match condition:
        case Comparison(operator="=", left=Reference(attribute=one), right=Reference(attribute=two)) if (
            one == two and inside
        ):
            key = name_text(one, free=True)
            hint = (
                f"a negated event cannot be compared with a taken one; [{key}] would ask for equal values of {key} in "
                "all events of the trend, which is more than this"
            )
        case Comparison(operator="=", left=Reference(attribute=one), right=Reference(attribute=two)) if one == two:
            hint = f"write [{name_text(one, free=True)}] for equal values in all events of a trend"
        case _ if len(mentioned) == 2:
            pairs = [(mentioned[0], mentioned[1]), (mentioned[1], mentioned[0])]
            close = [pair for pair in pairs if neighbours is None or pair in neighbours]
            if close:
                later = close[0][1]
                text = to_text(rewritten(condition, lambda each: _next_of(each, later)))
                hint = f"for {close[0][0]} directly followed by {later} write {text}"
            else:
                hint = f"{mentioned[0]} and {mentioned[1]} are never neighbours, and only neighbours can be compared"
    reports.error(message, condition.span, hint)


def _next_of(reference: Reference, variable: str) -> Reference:
    return replace(reference, shift=Shift.NEXT) if reference.variable == variable else reference
