"""Names and types of a formula: every mistake is found before any data is read.

Each variable has one type within its scope: free variables that of the formula, quantified ones that of the
quantifier's body, those of an aggregation's body their own (its groups are shared with the formula around it), and the
parameters of a LET those of its definition.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hamlet.errors import Span, near_miss, one_of
from hamlet.frontend.reports import Reports
from hamlet.policies.syntax.formula import (
    Aggregation,
    Arithmetic,
    Call,
    Comparison,
    Constant,
    Exists,
    Forall,
    Formula,
    Interval,
    Let,
    LetPast,
    Matches,
    Negative,
    Predicate,
    Substring,
    Term,
    Type,
    Variable,
    children,
    free_variables,
    is_anonymous,
)
from hamlet.policies.syntax.signature import BUILT_IN, Signature

CALLS: dict[str, tuple[Type, Type]] = {  # argument and result
    "f2i": ("float", "int"),
    "i2f": ("int", "float"),
    "i2s": ("int", "string"),
    "s2i": ("string", "int"),
    "f2s": ("float", "string"),
    "s2f": ("string", "float"),
    "DAY_OF_MONTH": ("float", "int"),
    "MONTH": ("float", "int"),
    "YEAR": ("float", "int"),
    "FORMAT_DATE": ("float", "string"),
}
_ARTICLE = {"int": "an int", "float": "a float", "string": "a string", "bool": "a bool"}
_CASTS = {("int", "float"): "i2f", ("float", "int"): "f2i", ("int", "string"): "i2s", ("string", "int"): "s2i"}


@dataclass(eq=False)
class _Unknown:
    """A type that is not known yet; those found equal point to one of them."""

    span: Span
    known: Type | None = None
    numeric: bool = False
    parent: _Unknown | None = None
    where: Span | None = field(default=None)

    def root(self) -> _Unknown:
        """What stands for it."""
        found = self
        while found.parent is not None:
            found = found.parent
        return found


_Scope = dict[str, _Unknown]
_Lets = dict[tuple[str, int], tuple[_Unknown, ...]]


def check_types(formula: Formula, signature: Signature, reports: Reports) -> dict[str, Type]:
    """Check names, arities and types; mistakes go to `reports`.

    Returns
    -------
    dict
        The types of the free variables that are known.
    """
    checker = _Checker(signature, reports)
    scope: _Scope = {name: _Unknown(formula.span) for name in free_variables(formula)}
    checker.formula(formula, scope, {})
    return {name: known for name, each in scope.items() if (known := each.root().known) is not None}


def recursion_types(formula: Formula, signature: Signature) -> dict[int, tuple[Type, ...]]:
    """The types of the parameters of each LETPAST of a formula without mistakes, by the id of its definition."""
    checker = _Checker(signature, Reports("", ""))
    checker.formula(formula, {name: _Unknown(formula.span) for name in free_variables(formula)}, {})
    return {place: tuple(each.root().known or "int" for each in types) for place, types in checker.recursions.items()}


def types_within(formula: Formula, part: Formula, signature: Signature) -> tuple[Type, ...]:
    """The types of the free variables of a part of a formula without mistakes."""
    checker = _Checker(signature, Reports("", ""))
    checker.formula(formula, {name: _Unknown(formula.span) for name in free_variables(formula)}, {})
    scope = checker.scopes[id(part)]
    return tuple(scope[name].root().known or "int" for name in free_variables(part))


class _Checker:
    def __init__(self, signature: Signature, reports: Reports) -> None:
        self._signature = signature
        self._reports = reports
        self.scopes: dict[int, _Scope] = {}  # by the id of a formula
        self.recursions: dict[int, tuple[_Unknown, ...]] = {}  # parameters of LETPAST, by the id of the definition

    # ------------------------------------------------------------------------------------------ formulas

    def formula(self, formula: Formula, scope: _Scope, lets: _Lets) -> None:
        """Check a formula whose free variables are in `scope`."""
        self.scopes[id(formula)] = scope
        match formula:
            case Predicate():
                self._predicate(formula, scope, lets)
            case Comparison(_, left, right):
                self._unify(self._term(left, scope), self._term(right, scope), left, right)
            case Substring(left, right):
                self._expect(left, "string", scope)
                self._expect(right, "string", scope)
            case Matches(term, pattern):
                self._expect(term, "string", scope)
                self._pattern(pattern, formula.span)
            case Exists(names, body) | Forall(names, body):
                inner = {**scope, **{name: _Unknown(formula.span) for name in names}}
                self.formula(body, inner, lets)
            case Aggregation():
                self._aggregation(formula, scope, lets)
            case Let():
                self._let(formula, scope, lets)
            case _:
                if hasattr(formula, "interval"):
                    self._interval(formula.interval)
                for child in children(formula):
                    self.formula(child, scope, lets)

    def _interval(self, interval: Interval) -> None:
        if interval.high is None:
            return
        low, high = interval.low, interval.high
        mixed = (low.unit is None) != (high.unit is None) and low.value
        least, most = low.ticks(1), high.ticks(1)
        # As in MonPoly, (0,1) is an interval though no whole number lies in it.
        if not mixed and (least > most or (least == most and (low.open or high.open))):
            self._reports.error("the interval is empty", interval.span, "write the smaller bound first: [0,10]")

    def _pattern(self, pattern: str, span: Span) -> None:
        from hamlet.policies.analysis.comparisons import compile_pattern

        try:
            compile_pattern(pattern)
        except ValueError as error:
            self._reports.error(f"the regular expression cannot be read: {error}", span)

    def _predicate(self, formula: Predicate, scope: _Scope, lets: _Lets) -> None:
        name, arity = formula.name, len(formula.arguments)
        types: tuple[_Unknown, ...] | None = lets.get((name, arity))
        if types is None:
            schema = self._signature.get(name, arity) or BUILT_IN.get((name, arity))
            if schema is None:
                self._unknown_predicate(formula, lets)
                for argument in formula.arguments:
                    if not (isinstance(argument, Variable) and is_anonymous(argument.name)):
                        self._term(argument, scope)
                return
            types = tuple(_Unknown(formula.span, known=each) for each in schema.types)
        anonymous: dict[str, _Unknown] = {}
        for argument, type in zip(formula.arguments, types, strict=True):
            if isinstance(argument, Variable) and is_anonymous(argument.name):
                if argument.name != "_":
                    known = anonymous.setdefault(argument.name, _Unknown(argument.span))
                    self._unify(known, type, argument, None, formula)
                continue
            self._unify(self._term(argument, scope), type, argument, None, formula)

    def _unknown_predicate(self, formula: Predicate, lets: _Lets) -> None:
        name, given = formula.name, len(formula.arguments)
        arities = sorted({each.arity for each in self._signature.named(name)} | {n for let, n in lets if let == name})
        span = formula.name_span if formula.name_span.end else formula.span
        if arities:
            takes = one_of([str(each) for each in arities])
            shown = [str(each) for each in self._signature.named(name)]
            hint = f"the signature has {one_of(shown, 'and')}" if shown else None
            plural = "" if takes == "1" else "s"
            self._reports.error(f"'{name}' takes {takes} argument{plural}, not {given}", formula.span, hint)
            return
        known = [*(each.name for each in self._signature), *(let for let, _ in lets)]
        near = near_miss(name, known)
        few = one_of(sorted(set(known))[:8], "and") if known else ""
        hint = (
            f"did you mean '{near}'?" if near else (f"the signature has {few}" if known else "the signature is empty")
        )
        self._reports.error(f"the signature has no predicate '{name}'", span, hint)

    def _aggregation(self, formula: Aggregation, scope: _Scope, lets: _Lets) -> None:
        inside = free_variables(formula.body)
        for name in (formula.variable, *formula.groups):
            if name not in inside:
                role = "aggregated" if name == formula.variable else "group"
                near = near_miss(name, inside)
                hint = f"did you mean '{near}'?" if near else "it must occur free in the formula behind it"
                self._reports.error(f"the {role} variable '{name}' is not free in the formula", formula.span, hint)
        if formula.result in formula.groups:
            message = f"'{formula.result}' is both the result and a group of the aggregation"
            self._reports.error(message, formula.result_span, "choose another name for the result")
        if len(set(formula.groups)) < len(formula.groups):
            self._reports.error("a variable stands twice among the groups", formula.span)
        inner: _Scope = {name: _Unknown(formula.span) for name in inside}
        for name in formula.groups:
            inner[name] = scope.setdefault(name, _Unknown(formula.span))
        self.formula(formula.body, inner, lets)
        variable = inner.get(formula.variable, _Unknown(formula.span))
        if formula.operator in ("SUM", "AVG", "MED"):
            self._numeric(variable, formula.variable_span, f"{formula.operator} needs numbers")
        if formula.operator == "CNT":
            result = _Unknown(formula.span, known="int")
        elif formula.operator in ("AVG", "MED"):
            result = _Unknown(formula.span, known="float")
        else:
            result = variable
        held = scope.setdefault(formula.result, _Unknown(formula.span))
        self._unify(held, result, Variable(formula.result, span=formula.result_span), None)

    def _let(self, formula: Let, scope: _Scope, lets: _Lets) -> None:
        inside = free_variables(formula.definition)
        own: _Scope = {name: _Unknown(formula.head_span) for name in (*inside, *formula.parameters)}
        types = tuple(own[name] for name in formula.parameters)
        beyond = {**lets, (formula.name, len(types)): types}
        recursive = isinstance(formula, LetPast)
        self.formula(formula.definition, own, beyond if recursive else lets)
        if recursive:
            self.recursions[id(formula.definition)] = types
        if len(set(formula.parameters)) < len(formula.parameters):
            self._reports.error(f"a parameter of '{formula.name}' stands twice", formula.head_span)
        elif set(formula.parameters) != set(inside):
            missing = [name for name in inside if name not in formula.parameters]
            extra = [name for name in formula.parameters if name not in inside]
            if missing:
                said = f"'{missing[0]}' is free in the meaning of '{formula.name}' but not a parameter"
            else:
                said = f"the parameter '{extra[0]}' is not free in the meaning of '{formula.name}'"
            word = "LETPAST" if recursive else "LET"
            hint = f"{word} {formula.name}({', '.join(inside)}) = ..., or bind the rest with EXISTS"
            self._reports.error(said, formula.head_span, hint)
        self.formula(formula.body, scope, beyond)

    # --------------------------------------------------------------------------------------------- terms

    def _term(self, term: Term, scope: _Scope) -> _Unknown:
        match term:
            case Variable(name):
                found = scope.setdefault(name, _Unknown(term.span))
                root = found.root()
                if root.where is None:
                    root.where = term.span
                return found
            case Constant(value):
                known: Type = (
                    "bool"
                    if isinstance(value, bool)
                    else "int"
                    if isinstance(value, int)
                    else "float"
                    if isinstance(value, float)
                    else "string"
                )
                return _Unknown(term.span, known=known)
            case Negative(inner):
                found = self._term(inner, scope)
                self._numeric(found, inner.span, "'-' needs a number")
                return found
            case Call(function, argument):
                wanted, result = CALLS[function]
                if function in ("DAY_OF_MONTH", "MONTH", "YEAR", "FORMAT_DATE"):
                    self._numeric(self._term(argument, scope), argument.span, f"{function} needs seconds since 1970")
                else:
                    self._expect(argument, wanted, scope)
                return _Unknown(term.span, known=result)
            case Arithmetic(operator, left, right):
                first, second = self._term(left, scope), self._term(right, scope)
                self._unify(first, second, left, right)
                self._numeric(first, left.span, f"'{operator}' needs numbers")
                if operator == "MOD":
                    self._require(first, "int", left)
                return first
        raise TypeError(f"a {type(term).__name__} is no term")

    def _expect(self, term: Term, wanted: Type, scope: _Scope) -> None:
        self._require(self._term(term, scope), wanted, term)

    def _require(self, found: _Unknown, wanted: Type, term: Term) -> None:
        self._unify(found, _Unknown(term.span, known=wanted), term, None)

    # ------------------------------------------------------------------------------------------ one type

    def _numeric(self, unknown: _Unknown, span: Span, message: str) -> None:
        root = unknown.root()
        if root.known in ("string", "bool"):
            self._reports.error(f"{message}, not {_ARTICLE[root.known]}", span)
        root.numeric = True

    def _unify(
        self, first: _Unknown, second: _Unknown, term: Term, other: Term | None, predicate: Predicate | None = None
    ) -> None:
        """Make two types one."""
        one, two = first.root(), second.root()
        if one is two:
            return
        if one.known is not None and two.known is not None:
            if one.known != two.known:
                self._clash(one, two, term, other, predicate)
            return
        known = one.known or two.known
        numeric = one.numeric or two.numeric
        if numeric and known in ("string", "bool"):
            self._reports.error(f"{self._reports.quote(term.span)} must be a number, not {_ARTICLE[known]}", term.span)
        one.parent = two
        two.known, two.numeric = known, numeric
        if two.where is None:
            two.where = one.where

    def _clash(self, one: _Unknown, two: _Unknown, term: Term, other: Term | None, predicate: Predicate | None) -> None:
        assert one.known is not None
        assert two.known is not None
        shown = self._reports.quote(term.span)
        first, second = _ARTICLE[one.known], _ARTICLE[two.known]
        cast = _CASTS.get((one.known, two.known))
        hint = None if cast is None else f"convert it: {cast}({shown[1:-1]})"
        if predicate is not None:
            self._reports.error(f"{shown} is {first}, but '{predicate.name}' has {second} here", term.span, hint)
        elif other is not None:
            said = f"{shown} is {first}, and {self._reports.quote(other.span)} is {second}"
            self._reports.error(said, Span(term.span.start, other.span.end), hint)
        else:
            self._reports.error(f"{shown} is {first}; {second} is needed here", term.span, hint)
