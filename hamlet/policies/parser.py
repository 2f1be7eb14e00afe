"""The parser of formulas, in MonPoly's notation.

Grammar, from the loosest binding to the tightest::

    formula     = "LET" name "(" [x {"," x}] ")" "=" formula "IN" formula
                | formula ("SINCE"|"UNTIL") [interval] formula                               right
                | ("PREV"|"NEXT"|"ONCE"|"EVENTUALLY"|"HISTORICALLY"|"ALWAYS") [interval] formula
                | ("EXISTS"|"FORALL") x {"," x} "." formula
                | formula "EQUIV" formula                                                    left
                | formula "IMPLIES" formula                                                  right
                | formula "OR" formula                                                       left
                | formula "AND" formula                                                      left
                | "NOT" formula
                | r "<-" ("CNT"|"SUM"|"AVG"|"MIN"|"MAX"|"MED") x [";" g {"," g}] formula     as far as possible
                | "(" formula ")" | "TRUE" | "FALSE" | name "(" [term {"," term}] ")"
                | term ("="|"<"|">"|"<="|">=") term | term "SUBSTRING" term | term "MATCHES" regexp
    term        = term ("+"|"-") term | term ("*"|"/") term | primary "MOD" term | "-" term
                | function "(" term ")" | "(" term ")" | x | integer | float | string
    interval    = ("["|"(") bound "," (bound ("]"|")") | "*" ("]"|")"))
    bound       = integer ["s"|"m"|"h"|"d"]

The scope of a quantifier or of a unary temporal operator reaches as far to the right as the levels above allow:
``ONCE p(x) AND q(x)`` is ``ONCE (p(x) AND q(x))``, and ``ONCE p(x) SINCE q(x)`` is ``(ONCE p(x)) SINCE q(x)``.
"""

from __future__ import annotations

import dataclasses
from typing import TypeVar

from hamlet.errors import Diagnostic
from hamlet.language.query import Span
from hamlet.output.digits import integer_of
from hamlet.policies.diagnostics import MAX_DEPTH, PolicyError, deep_recursion
from hamlet.policies.formula import (
    AGGREGATIONS,
    COMPARISONS,
    FUNCTIONS,
    UNARY,
    Aggregation,
    And,
    Arithmetic,
    Bound,
    Call,
    Comparison,
    Constant,
    Equiv,
    Exists,
    Forall,
    Formula,
    Implies,
    Interval,
    Let,
    Matches,
    Negative,
    Not,
    Or,
    Predicate,
    Since,
    Substring,
    Temporal,
    Term,
    Truth,
    Until,
    Variable,
    depth,
)
from hamlet.policies.tokens import Kind, Token, tokenize

Node = TypeVar("Node", Formula, Term)

# Levels of binding: an operator goes on where its level is at least the one asked for.
_LOOSEST, _SINCE, _UNARY, _QUANTIFIER, _EQUIV, _IMPLIES, _OR, _AND, _NOT = range(9)
_INFIX: dict[str, tuple[int, bool]] = {  # level, whether it groups to the right
    "SINCE": (_SINCE, True),
    "UNTIL": (_SINCE, True),
    "EQUIV": (_EQUIV, False),
    "IMPLIES": (_IMPLIES, True),
    "OR": (_OR, False),
    "AND": (_AND, False),
}
_UNSUPPORTED = {
    "LETPAST": "LETPAST is not supported",
    "FORWARD": "regular expressions over time are not supported",
    "BACKWARD": "regular expressions over time are not supported",
    "MATCHF": "regular expressions over time are not supported",
    "MATCHP": "regular expressions over time are not supported",
}
_MOD_ADVICE = ("MOD takes everything to its right", "put parentheses around what is meant: (x MOD 2) + 1")


class _SyntaxError(Exception):
    """Unwinds to the start of the parser, or to where another reading is tried."""

    def __init__(self, message: str, span: Span, hint: str | None = None) -> None:
        super().__init__(message)
        self.message, self.span, self.hint = message, span, hint


def parse_formula(text: str, source: str = "<policy>") -> tuple[Formula, tuple[Diagnostic, ...]]:
    """Parse the text of one formula.

    Parameters
    ----------
    text : str
        A whole ``.mfotl`` file.
    source : str
        The file's name for messages.

    Returns
    -------
    (Formula, tuple of Diagnostic)
        The tree, and warnings about what may not be meant.

    Raises
    ------
    PolicyError
        If the text is not one formula.
    """
    tokens, problems = tokenize(text, source)
    parser = _Parser(tokens)
    with deep_recursion():
        try:
            formula = parser.whole()
        except _SyntaxError as error:
            if not any(each.span.start <= error.span.start for each in problems):
                problems.append(Diagnostic(error.message, error.span, error.hint, text=text, source=source))
        else:
            if depth(formula) > MAX_DEPTH:
                message = f"the formula is nested more than {MAX_DEPTH} levels deep"
                problems.append(Diagnostic(message, Span(0, 1), "name parts of it with LET", text=text, source=source))
    if problems:
        raise PolicyError(problems)
    found = dict(parser.warnings).items()
    return formula, tuple(Diagnostic(said, span, hint, "warning", text, source) for span, (said, hint) in found)


class _Parser:
    """Tokens with a current place."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._index = 0
        self._depth = 0
        self.warnings: list[tuple[Span, tuple[str, str]]] = []

    # ------------------------------------------------------------------------------------------- looking

    def _peek(self, offset: int = 0) -> Token:
        return self._tokens[min(self._index + offset, len(self._tokens) - 1)]

    def _at(self, *symbols: str, offset: int = 0) -> bool:
        token = self._peek(offset)
        return token.kind is Kind.SYMBOL and token.value in symbols

    def _at_keyword(self, *words: str, offset: int = 0) -> bool:
        token = self._peek(offset)
        return token.kind is Kind.KEYWORD and token.value in words

    def _next(self) -> Token:
        token = self._peek()
        self._index += 1
        return token

    def _expect(self, symbol: str, where: str, hint: str | None = None) -> Token:
        if not self._at(symbol):
            raise self._unexpected(f"'{symbol}' {where}", hint)
        return self._next()

    def _unexpected(self, expected: str, hint: str | None = None) -> _SyntaxError:
        token = self._peek()
        if token.kind is Kind.END:
            return _SyntaxError(f"expected {expected}, but the text ends here", token.span, hint)
        return _SyntaxError(f"expected {expected}, found '{_shorten(token.raw)}'", token.span, hint)

    def _name(self, expected: str) -> Token:
        token = self._peek()
        if token.kind is not Kind.NAME:
            hint = f"{token.value} is a keyword; choose another name" if token.kind is Kind.KEYWORD else None
            raise self._unexpected(expected, hint)
        return self._next()

    def _last(self) -> Span:
        return self._tokens[max(0, self._index - 1)].span

    # ------------------------------------------------------------------------------------------ formulas

    def whole(self) -> Formula:
        """The formula that is the whole text."""
        if self._peek().kind is Kind.END:
            raise _SyntaxError("there is no formula in the text", self._peek().span)
        formula = self._formula(_LOOSEST)
        token = self._peek()
        if token.kind is not Kind.END:
            if self._at(")"):
                raise _SyntaxError("this ')' closes nothing", token.span)
            raise self._unexpected("an operator or the end of the formula", _operator_hint(token))
        return formula

    def _formula(self, level: int) -> Formula:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _SyntaxError(f"the formula is nested more than {MAX_DEPTH} levels deep", self._peek().span)
        left = self._prefix()
        while (found := self._infix()) is not None:
            binding, right_grouped = _INFIX[found]
            if binding < level:
                break
            self._index += 1
            interval = self._interval() if binding == _SINCE else Interval()
            right = self._formula(binding if right_grouped else binding + 1)
            left = _joined(found, interval, left, right)
        self._depth -= 1
        return left

    def _infix(self) -> str | None:
        """The binary operator that comes next; a name S or U behind a whole formula is SINCE or UNTIL."""
        token = self._peek()
        if token.kind is Kind.NAME and token.value in "SU":
            return {"S": "SINCE", "U": "UNTIL"}.get(token.value)
        return token.value if token.kind is Kind.KEYWORD and token.value in _INFIX else None

    def _prefix(self) -> Formula:
        token = self._peek()
        if token.kind is Kind.KEYWORD:
            if token.value in _UNSUPPORTED:
                raise _SyntaxError(_UNSUPPORTED[token.value], token.span)
            if token.value in UNARY:
                self._next()
                interval = self._interval()
                body = self._formula(_UNARY)
                return Temporal(token.value, interval, body, span=token.span.to(body.span))
            if token.value in ("EXISTS", "FORALL"):
                return self._quantifier()
            if token.value == "NOT":
                self._next()
                body = self._formula(_NOT)
                return Not(body, span=token.span.to(body.span))
            if token.value == "LET":
                return self._let()
            if token.value in ("TRUE", "FALSE") and not self._at(*COMPARISONS, offset=1):
                self._next()
                return Truth(token.value == "TRUE", span=token.span)
        if token.kind is Kind.NAME and self._at("<-", offset=1) and self._at_keyword(*AGGREGATIONS, offset=2):
            return self._aggregation()
        if token.kind is Kind.NAME and self._at("(", offset=1) and token.value not in FUNCTIONS:
            return self._predicate()
        if self._at("("):
            return self._parenthesis()
        return self._comparison()

    def _quantifier(self) -> Formula:
        token = self._next()
        names = self._names(f"a variable after {token.raw}")
        self._expect(".", f"after the variables of {token.raw}", f"{token.raw} x, y. ...")
        body = self._formula(_QUANTIFIER)
        kind = Exists if token.value == "EXISTS" else Forall
        return kind(names, body, span=token.span.to(body.span))

    def _names(self, expected: str) -> tuple[str, ...]:
        names = [self._name(expected).value]
        while self._at(","):
            self._next()
            names.append(self._name("a variable after ','").value)
        return tuple(names)

    def _let(self) -> Formula:
        start = self._next()
        name = self._name("a name after LET")
        self._expect("(", f"after '{name.value}'", f"LET {name.value}(x) = ... IN ...")
        parameters = () if self._at(")") else self._names("a variable")
        close = self._expect(")", f"after the parameters of '{name.value}'", "its parameters are variables")
        self._expect("=", f"before the meaning of '{name.value}'")
        definition = self._formula(_LOOSEST)
        if not self._at_keyword("IN"):
            raise self._unexpected(f"IN after the meaning of '{name.value}'", f"LET {name.value}(...) = ... IN ...")
        self._next()
        body = self._formula(_LOOSEST)
        head = name.span.to(close.span)
        return Let(name.value, parameters, definition, body, span=start.span.to(body.span), head_span=head)

    def _aggregation(self) -> Formula:
        result = self._next()
        self._next()
        operator = self._next()
        variable = self._name(f"the variable that {operator.value} is over")
        groups: tuple[str, ...] = ()
        if self._at(";"):
            self._next()
            if self._peek().kind is Kind.NAME:  # MonPoly takes an empty list of groups
                groups = self._names("a variable to group by")
        body = self._formula(_LOOSEST)
        return Aggregation(
            result.value,
            operator.value,
            variable.value,
            groups,
            body,
            span=result.span.to(body.span),
            result_span=result.span,
            variable_span=variable.span,
        )

    def _predicate(self) -> Formula:
        name = self._next()
        self._next()
        arguments: list[Term] = []
        while not self._at(")"):
            arguments.append(self._term())
            if not self._at(","):
                break
            self._next()
        close = self._expect(")", f"or ',' in the arguments of '{_shorten(name.value)}'")
        return Predicate(name.value, tuple(arguments), span=name.span.to(close.span), name_span=name.span)

    def _parenthesis(self) -> Formula:
        """``(formula)``, or a comparison whose left side begins with a parenthesis."""
        start, depth_before, warned = self._index, self._depth, len(self.warnings)
        try:
            left = self._term()
            if self._at(*COMPARISONS) or self._at_keyword("SUBSTRING", "MATCHES"):
                return self._compared(left)
        except _SyntaxError:
            pass
        self._index, self._depth = start, depth_before
        del self.warnings[warned:]
        opened = self._next()
        formula = self._formula(_LOOSEST)
        if not self._at(")"):
            raise self._unexpected("')' or an operator", _operator_hint(self._peek()))
        return _widened(formula, opened.span.to(self._next().span))

    def _comparison(self) -> Formula:
        token = self._peek()
        starts = (Kind.NAME, Kind.INTEGER, Kind.FLOAT, Kind.STRING, Kind.BAD, Kind.DURATION)
        if token.kind not in starts and not self._at("-") and not self._at_keyword("TRUE", "FALSE"):
            raise self._unexpected("a formula")
        left = self._term()
        return self._compared(left)

    def _compared(self, left: Term) -> Formula:
        if self._at("<-") and self._tokens[self._index].raw == "<-":  # x <-5 is x < -5
            arrow = self._next()
            right = self._negated(Span(arrow.span.start + 1, arrow.span.end))
            return Comparison("<", left, right, span=left.span.to(right.span))
        if self._at(*COMPARISONS):
            operator = self._next().value
            right = self._term()
            return Comparison(operator, left, right, span=left.span.to(right.span))
        if self._at_keyword("SUBSTRING"):
            self._next()
            right = self._term()
            return Substring(left, right, span=left.span.to(right.span))
        if self._at_keyword("MATCHES"):
            self._next()
            token = self._peek()
            if token.kind is not Kind.REGEXP:
                raise self._unexpected('a regular expression after MATCHES, such as r"^a.*"')
            self._next()
            return Matches(left, token.value, span=left.span.to(token.span))
        raise self._unexpected("a comparison", _predicate_hint(left))

    # --------------------------------------------------------------------------------------------- terms

    def _term(self) -> Term:
        left = self._product()
        while self._at("+", "-"):
            operator = self._next().value
            right = self._product()
            left = Arithmetic(operator, left, right, span=left.span.to(right.span))
        return left

    def _product(self) -> Term:
        left = self._factor()
        while self._at("*", "/"):
            operator = self._next().value
            right = self._factor()
            left = Arithmetic(operator, left, right, span=left.span.to(right.span))
        return left

    def _factor(self) -> Term:
        """A primary; MOD behind it takes everything to its right."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise _SyntaxError(f"the formula is nested more than {MAX_DEPTH} levels deep", self._peek().span)
        if self._at("-"):
            term = self._negated(self._next().span)
        else:
            term = self._primary()
            if self._at_keyword("MOD"):
                self._next()
                bracketed = self._at("(")
                right = self._term()
                if isinstance(right, Arithmetic) and not (bracketed and self._tokens[self._index - 1].raw == ")"):
                    self.warnings.append((right.span, _MOD_ADVICE))
                term = Arithmetic("MOD", term, right, span=term.span.to(right.span))
        self._depth -= 1
        return term

    def _negated(self, sign: Span) -> Term:
        """What follows a minus sign; right before digits the sign belongs to the number."""
        token = self._peek()
        if token.kind in (Kind.INTEGER, Kind.FLOAT) and token.span.start == sign.end:
            self._next()
            number: Term = Constant(-_number(token), span=sign.to(token.span))
            if not self._at_keyword("MOD"):
                return number
            self._index -= 1
            inner = self._factor()
            if isinstance(inner, Arithmetic):  # -5 MOD 3 has the number -5 on its left
                return Arithmetic("MOD", number, inner.right, span=sign.to(inner.span))
        inner = self._factor()
        return Negative(inner, span=sign.to(inner.span))

    def _primary(self) -> Term:
        token = self._next()
        if token.kind in (Kind.INTEGER, Kind.FLOAT):
            return Constant(_number(token), span=token.span)
        if token.kind is Kind.STRING:
            return Constant(token.value, span=token.span)
        if token.kind is Kind.KEYWORD and token.value in ("TRUE", "FALSE"):
            return Constant(token.value == "TRUE", span=token.span)
        if token.kind is Kind.NAME and token.value in FUNCTIONS and self._at("("):
            self._next()
            argument = self._term()
            close = self._expect(")", f"after the argument of {token.value}")
            return Call(token.value, argument, span=token.span.to(close.span))
        if token.kind is Kind.NAME:
            return Variable(token.value, span=token.span)
        if token.kind is Kind.SYMBOL and token.value == "(":
            inner = self._term()
            close = self._expect(")", "after the term")
            return _widened(inner, token.span.to(close.span))
        self._index -= 1
        if token.kind is Kind.DURATION:
            raise self._unexpected("a value", "a length of time stands in intervals only; names begin with a letter")
        raise self._unexpected('a value: a variable, a number, or a "string"')

    # ----------------------------------------------------------------------------------------- intervals

    def _interval(self) -> Interval:
        """``[a,b]``, or nothing, which is ``[0,*)``."""
        bounded = self._peek(1).kind in (Kind.INTEGER, Kind.DURATION) and self._at(",", offset=2)
        if not (self._at("[") or (self._at("(") and bounded)):
            return Interval()
        opened = self._next()
        low, _ = self._bound("the lower bound of the interval")
        self._expect(",", "between the bounds of the interval")
        high: Bound | None = None
        if self._at("*"):
            self._next()
        else:
            high, _ = self._bound("the upper bound of the interval, or *")
        if not self._at("]", ")"):
            raise self._unexpected("']' or ')' at the end of the interval")
        closed = self._next()
        whole = opened.span.to(closed.span)
        low = Bound(low.value, low.unit, opened.value == "(")
        if high is not None:
            high = Bound(high.value, high.unit, closed.value == ")")
        return Interval(low, high, span=whole)

    def _bound(self, expected: str) -> tuple[Bound, Span]:
        token = self._peek()
        if token.kind is Kind.INTEGER:
            self._next()
            return Bound(integer_of(token.value)), token.span
        if token.kind is Kind.DURATION:
            if token.value[-1] not in "smhd":
                hint = "s, m, h and d are seconds, minutes, hours and days"
                raise _SyntaxError(f"'{token.value[-1]}' is not a unit of time", token.span, hint)
            self._next()
            return Bound(integer_of(token.value[:-1]), token.value[-1]), token.span  # type: ignore[arg-type]
        if self._at("-"):
            raise _SyntaxError("the bound of an interval is negative", token.span, "times are counted from 0 up")
        raise self._unexpected(expected, "bounds are whole numbers, with or without a unit: [0,10] or [0,7d]")


def _joined(operator: str, interval: Interval, left: Formula, right: Formula) -> Formula:
    span = left.span.to(right.span)
    match operator:
        case "SINCE":
            return Since(interval, left, right, span=span)
        case "UNTIL":
            return Until(interval, left, right, span=span)
        case "EQUIV":
            return Equiv(left, right, span=span)
        case "IMPLIES":
            return Implies(left, right, span=span)
        case "OR":
            return Or(left, right, span=span)
    return And(left, right, span=span)


def _widened(node: Node, span: Span) -> Node:
    """The same with its parentheses."""
    return dataclasses.replace(node, span=span)  # type: ignore[type-var]  # every node is a dataclass


def _number(token: Token) -> int | float:
    return integer_of(token.value) if token.kind is Kind.INTEGER else float(token.value)


def _shorten(text: str, longest: int = 30) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= longest else flat[: longest - 3] + "..."


def _operator_hint(token: Token) -> str | None:
    words = {"and": "AND", "or": "OR", "not": "NOT", "since": "SINCE", "until": "UNTIL", "implies": "IMPLIES"}
    if token.kind is Kind.NAME and token.value.lower() in words:
        return f"keywords are written in capitals: {words[token.value.lower()]}"
    if token.kind is Kind.SYMBOL and token.value in (*COMPARISONS, "<-"):
        return None
    return "join formulas with AND, OR, IMPLIES, EQUIV, SINCE or UNTIL"


def _predicate_hint(left: Term) -> str | None:
    if isinstance(left, Variable):
        if left.name.lower() in ("not", "exists", "forall", "once", "always", "eventually", "prev", "next", "let"):
            return f"keywords are written in capitals: {left.name.upper()}"
        return f"a predicate has parentheses: {left.name}()"
    return None
