"""Terms, comparisons and aggregates of policies, computed one value at a time for the checker, and their types."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from hamlet.checker.sets import Sets, typed
from hamlet.policies.syntax import formula as f

Key = tuple[str, int]  # a predicate: its name, and how many arguments it has
BUILT_IN = {("tp", 1), ("ts", 1), ("tpts", 2)}


class NoValue(Exception):
    """A term that has no value here: of a variable with many, or what is no number or date."""


def term_value(term: Any, cell: Sets) -> Any:
    """The value of a term."""
    match term:
        case f.Constant(value):
            return value
        case f.Variable(name):
            try:
                return cell[name].single
            except (KeyError, ValueError):
                raise NoValue from None
        case f.Negative(inner):
            return -term_value(inner, cell)
        case f.Call(function, inner):
            return _call(function, term_value(inner, cell))
        case f.Arithmetic(operator, left, right):
            return _arithmetic(operator, term_value(left, cell), term_value(right, cell))
    raise NoValue


def _arithmetic(operator: str, one: Any, two: Any) -> Any:
    if operator in "+-*":
        return one + two if operator == "+" else one - two if operator == "-" else one * two
    if isinstance(one, float):
        if two:
            return one / two
        return math.nan if one == 0 or one != one else math.inf * math.copysign(1, one) * math.copysign(1, two)
    if two == 0:
        return 0
    sign = 1 if (one < 0) == (two < 0) else -1
    quotient = sign * (abs(one) // abs(two))
    return quotient if operator == "/" else one - quotient * two


def _call(function: str, value: Any) -> Any:
    try:
        match function:
            case "i2f":
                return float(value)
            case "f2i":
                return int(value)
            case "i2s":
                return str(value)
            case "s2i":
                return int(value) if re.fullmatch(r"[+-]?[0-9]+", value, re.ASCII) else 0
            case "s2f":
                return _float(value)
            case "f2s":
                text = f"{value:.12g}"
                return text if re.search(r"[.en]", text) else text + "."
        date = datetime.datetime.fromtimestamp(value, datetime.UTC)
    except (ValueError, OverflowError, OSError):
        if function == "i2f":
            return math.copysign(math.inf, 1 if value > 0 else -1)
        raise NoValue from None
    if function == "FORMAT_DATE":
        return date.strftime("%Y-%m-%d")
    return {"DAY_OF_MONTH": date.day, "MONTH": date.month, "YEAR": date.year}[function]


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def compare(formula: Any, cell: Sets) -> bool | None:
    """Whether a comparison, SUBSTRING or MATCHES holds for all values of the cell; None where they differ."""
    sides = [formula.term] if isinstance(formula, f.Matches) else [formula.left, formula.right]
    try:
        values = [term_value(each, cell) for each in sides]
    except NoValue:
        return _apart(formula, cell)
    match formula:
        case f.Matches(_, pattern):
            return re.compile(_expression(pattern), re.MULTILINE).search(values[0]) is not None
        case f.Substring():
            return values[0] in values[1]
    one, two = values
    if formula.operator == "=":
        return typed(one) == typed(two)
    return bool({"<": one < two, ">": one > two, "<=": one <= two, ">=": one >= two}[formula.operator])


def _apart(formula: Any, cell: Sets) -> bool | None:
    """An equation of a variable with many values, none of which is the other side's."""
    if isinstance(formula, f.Comparison) and formula.operator == "=":
        for one, two in ((formula.left, formula.right), (formula.right, formula.left)):
            if isinstance(one, f.Variable):
                try:
                    value = typed(term_value(two, cell))
                except NoValue:
                    continue
                if not cell[one.name].has(value):
                    return False
    return None


def _expression(pattern: str) -> str:
    r"""A regular expression of OCaml's ``Str``, where groups and alternatives are ``\(``, ``\)`` and ``\|``."""
    found = []
    for escaped, group, plain in re.findall(r"\\(.)|(\[\^?\]?[^]]*\])|(.)", pattern, re.DOTALL):
        if escaped:
            special = escaped in "()|b" or escaped.isdigit()
            found.append(escaped if escaped in "()|" else "\\" + escaped if special else re.escape(escaped))
        elif group:
            body = group[2:-1] if group.startswith("[^") else group[1:-1]
            start = "[^" if group.startswith("[^") else "["
            found.append(start + re.sub(r"([\\\[&~|])", r"\\\1", body) + "]")
        else:
            found.append("\\" + plain if plain in "(){}|" else plain if plain in ".*+?^$" else re.escape(plain))
    return "".join(found)


def pattern(arguments: Sequence[Any], cell: Sets) -> Callable[[Sequence[Any]], bool | None]:
    """Whether a tuple is one of a predicate's: None where it is for some values of the cell only."""
    wanted: list[Any] = []
    for each in arguments:
        if isinstance(each, f.Variable):
            wanted.append(each.name if f.is_anonymous(each.name) else cell[each.name])
            continue
        try:
            wanted.append(typed(term_value(each, cell)))
        except NoValue:
            wanted.append(None)

    def fits(row: Sequence[Any]) -> bool | None:
        found: bool | None = True
        named: dict[str, Any] = {}
        for each, value in zip(wanted, map(typed, row), strict=True):
            if each is None:
                found = None
            elif isinstance(each, str):
                if each != "_" and named.setdefault(each, value) != value:
                    return False
            elif isinstance(each, tuple):
                if each != value:
                    return False
            elif not each.has(value):
                return False
            elif each.others or len(each.values) > 1:
                found = None
        return found

    return fits


def aggregate(operator: str, values: Iterable[Any], kind: str) -> Any:
    """An aggregate over the values of all satisfying valuations, and what it is of none."""
    ordered = sorted(values)
    if not ordered:
        if operator in ("MIN", "MAX"):
            return {"string": "", "float": math.inf if operator == "MIN" else -math.inf}.get(kind, 0)
        return 0.0 if operator in ("AVG", "MED") or (operator == "SUM" and kind == "float") else 0
    count = len(ordered)
    match operator:
        case "CNT":
            return count
        case "MIN":
            return ordered[0]
        case "MAX":
            return ordered[-1]
        case "MED":
            low, high = ordered[(count - 1) // 2], ordered[count // 2]
            return float((Fraction(low) + Fraction(high)) / 2)
    total = math.fsum(ordered) if kind == "float" else sum(ordered)
    return total if operator == "SUM" else total / count


# ---------------------------------------------------------------------------------------------- types


def kinds_of(formula: Any, signature: Mapping[Key, Sequence[str]], lets: Mapping[Key, Any]) -> dict[str, str]:
    """The types of variables, by the predicates, aggregations and constants that give them values."""
    found: dict[str, str] = {}
    match formula:
        case f.Predicate(name, arguments):
            key = name, len(arguments)
            own: Sequence[str] = signature.get(key, ())
            if key in lets:
                let, _ = lets[key]
                outer = {name: each for name, each in lets.items() if name != key}
                inner = kinds_of(let.definition, signature, outer)
                own = [inner.get(each, "") for each in let.parameters]
            elif key in BUILT_IN:
                own = ("int",) * len(arguments)
            for each, kind in zip(arguments, own, strict=False):
                if isinstance(each, f.Variable):
                    found[each.name] = kind
        case f.Comparison(_, left, right):
            _alike_kinds(left, right, found)
        case f.Aggregation(result, operator, variable, groups, body):
            inner = kinds_of(body, signature, lets)
            given = {"CNT": "int", "AVG": "float", "MED": "float"}
            found = {name: inner[name] for name in groups if name in inner}
            found[result] = given.get(operator, inner.get(variable, ""))
        case f.Let():
            return kinds_of(formula.body, signature, {**lets, (formula.name, len(formula.parameters)): (formula, [])})
        case _:
            below = f.children(formula)
            for child in below:
                found = {**kinds_of(child, signature, lets), **{name: kind for name, kind in found.items() if kind}}
            for child in below:
                if isinstance(child, f.Comparison):
                    _alike_kinds(child.left, child.right, found)
    return {name: kind for name, kind in found.items() if kind}


def _alike_kinds(left: Any, right: Any, known: dict[str, str]) -> None:
    """Both sides of a comparison are of one type."""
    for one, two in ((left, right), (right, left)):
        if isinstance(one, f.Variable) and not known.get(one.name):
            known[one.name] = _kind(two, known)


def _kind(term: Any, known: Mapping[str, str]) -> str:
    """The type of a term, as far as constants, functions and known variables tell."""
    match term:
        case f.Constant(value):
            return {int: "int", float: "float", str: "string"}.get(type(value), "bool")
        case f.Call(function, _):
            return {"f": "float", "s": "string", "i": "int"}.get(
                function[-1] if "2" in function else "", "int" if function != "FORMAT_DATE" else "string"
            )
        case f.Variable(name):
            return known.get(name, "")
        case f.Negative(inner):
            return _kind(inner, known)
        case f.Arithmetic(_, left, right):
            return _kind(left, known) or _kind(right, known)
    return ""
