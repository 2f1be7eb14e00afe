"""The parser of formulas, in MonPoly's notation.

Grammar, from the loosest binding to the tightest::

    formula     = ("LET"|"LETPAST") name "(" [x {"," x}] ")" "=" formula "IN" formula
                | formula ("SINCE"|"UNTIL"|"TRIGGER"|"RELEASE") [interval] formula           right
                | ("PREV"|"NEXT"|"ONCE"|"EVENTUALLY"|"HISTORICALLY"|"ALWAYS") [interval] formula
                | ("EXISTS"|"FORALL") x {"," x} "." formula
                | formula "EQUIV" formula                                                    left
                | formula "IMPLIES" formula                                                  right
                | formula "OR" formula                                                       left
                | formula "AND" formula                                                      left
                | "NOT" formula
                | ("MATCHP"|"MATCHF") [interval] regex
                | r "<-" ("CNT"|"SUM"|"AVG"|"MIN"|"MAX"|"MED") x [";" g {"," g}] formula     as far as possible
                | "(" formula ")" | "TRUE" | "FALSE" | name "(" [term {"," term}] ")"
                | term ("="|"<"|">"|"<="|">=") term | term "SUBSTRING" term | term "MATCHES" regexp
    regex       = item {item | "+" item}                       concatenation and + bind alike and group to the right
    item        = ("." | formula | formula "?" | "(" regex ")") {"*"}
    term        = term ("+"|"-") term | term ("*"|"/") term | primary "MOD" term | "-" term
                | function "(" term ")" | "(" term ")" | x | integer | float | string
    interval    = ("["|"(") bound "," (bound ("]"|")") | "*" ("]"|")"))
    bound       = integer ["s"|"m"|"h"|"d"]

The scope of a quantifier or of a unary temporal operator reaches as far to the right as the levels above allow:
``ONCE p(x) AND q(x)`` is ``ONCE (p(x) AND q(x))``, and ``ONCE p(x) SINCE q(x)`` is ``(ONCE p(x)) SINCE q(x)``.
A formula in a regex is an atom, stands in parentheses, or begins with NOT, a quantifier, a unary temporal operator,
MATCHP or MATCHF; any binary operator ends the regex.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from hamlet.errors import Diagnostic, Span, near_miss
from hamlet.frontend.cursor import TooManyProblemsError
from hamlet.frontend.lexer import Kind, Token, tokenize
from hamlet.frontend.reports import Reports, shorten
from hamlet.policies.syntax import formula as mfotl
from hamlet.policies.syntax.diagnostics import MAX_DEPTH, PolicyError, deep_recursion
from hamlet.policies.syntax.parse_regex import RegexParser
from hamlet.policies.syntax.parse_terms import ReadingError, Warned, widened
from hamlet.policies.syntax.tokens import FORMULA

# Levels of binding: an operator goes on where its level is at least the one asked for.
_LOOSEST, _SINCE, _UNARY, _QUANTIFIER, _EQUIV, _IMPLIES, _OR, _AND, _NOT = range(9)
_INFIX: dict[str, tuple[int, bool]] = {  # level, whether it groups to the right
    **dict.fromkeys(("SINCE", "UNTIL", "TRIGGER", "RELEASE"), (_SINCE, True)),
    "EQUIV": (_EQUIV, False),
    "IMPLIES": (_IMPLIES, True),
    "OR": (_OR, False),
    "AND": (_AND, False),
}
_TIMED: dict[str, type[mfotl.Timed]] = {
    "SINCE": mfotl.Since,
    "UNTIL": mfotl.Until,
    "TRIGGER": mfotl.Trigger,
    "RELEASE": mfotl.Release,
}
_LONG = 64  # parts from which a chain of an associative operator is read as a balanced tree


def parse_formula(text: str, source: str = "<policy>") -> tuple[mfotl.Formula, tuple[Diagnostic, ...]]:
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
    reports = Reports(text, source)
    tokens = tokenize(FORMULA, reports)
    formula = None
    with deep_recursion(), contextlib.suppress(TooManyProblemsError):
        parser = _Parser(tokens, reports)
        formula = parser.whole()
        if formula is not None and _depth(formula) > MAX_DEPTH:
            message = f"the formula is nested more than {MAX_DEPTH} levels deep"
            reports.error(message, Span(0, 1), "name parts of it with LET")
    if formula is None or reports.errors:
        raise PolicyError(reports.errors)
    for span, (said, hint) in dict(parser.warnings).items():
        reports.warn(said, span, hint)
    return formula, tuple(reports.warnings)


class _Parser(RegexParser):
    """Formulas."""

    def __init__(self, tokens: Sequence[Token], reports: Reports) -> None:
        super().__init__(tokens, reports)
        self._bracketed_formulas: dict[int, tuple[mfotl.Formula, int, list[Warned]] | ReadingError] = {}  # by place

    def whole(self) -> mfotl.Formula | None:
        """The formula that is the whole text, None where it has mistakes; reading goes on at the next operator."""
        try:
            return self._whole()
        except ReadingError as error:
            mistake = error
        bad, begin = [each.span.start for each in self.reports.errors], -1
        while True:
            if not any(begin < start <= mistake.span.start for start in bad):  # a token's own message says it
                self.report(mistake.message, mistake.span, mistake.hint)
            if self.depth > MAX_DEPTH:
                return None
            begin = mistake.span.start
            while (again := self._next_mistake(begin)) is None:
                if self.at_kind(Kind.END):
                    return None
                begin = self.peek().span.start
            mistake = again

    def _next_mistake(self, begin: int) -> ReadingError | None:
        """The mistake in what stands behind the next operator that does not stand before a place in the text."""
        while not self.at_kind(Kind.END) and (self.peek().span.start < begin or not self._joins()):
            self.index += 1
        if self.at_kind(Kind.END):
            return None
        self.index += 1
        self.depth = 0
        try:
            self._formula(_LOOSEST)
        except ReadingError as error:
            return error
        return None

    def _joins(self) -> bool:
        return self.at_word(*_INFIX, "IN")

    def _whole(self) -> mfotl.Formula:
        if self.at_kind(Kind.END):
            raise self.fail("there is no formula in the text", self.peek().span)
        formula = self._formula(_LOOSEST)
        token = self.peek()
        if token.kind is not Kind.END:
            if self.at(")"):
                raise self.fail("this ')' closes nothing", token.span)
            raise self._unexpected("an operator or the end of the formula", _operator_hint(token))
        return formula

    def _formula(self, level: int) -> mfotl.Formula:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.fail(f"the formula is nested more than {MAX_DEPTH} levels deep", self.peek().span)
        left = self._prefix()
        while (found := self._infix()) is not None:
            binding, right_grouped = _INFIX[found]
            if binding < level:
                break
            if not right_grouped:
                left = self._chain(found, left)
                continue
            self.index += 1
            interval = self._interval() if binding == _SINCE else mfotl.Interval()
            left = _joined(found, interval, left, self._formula(binding))
        self.depth -= 1
        return left

    def _chain(self, operator: str, left: mfotl.Formula) -> mfotl.Formula:
        """``left AND b AND c ...``; AND, OR and EQUIV are associative, so a long chain is read as a balanced tree."""
        parts = [left]
        while self._infix() == operator:
            self.index += 1
            parts.append(self._formula(_INFIX[operator][0] + 1))
        if len(parts) > _LONG:
            while len(parts) > 1:
                pairs = [parts[place : place + 2] for place in range(0, len(parts), 2)]
                parts = [_joined(operator, mfotl.Interval(), *pair) if len(pair) == 2 else pair[0] for pair in pairs]
        made = parts[0]
        for part in parts[1:]:
            made = _joined(operator, mfotl.Interval(), made, part)
        return made

    def _infix(self) -> str | None:
        """The binary operator that comes next; a name S or U behind a whole formula is SINCE or UNTIL."""
        token = self.peek()
        if token.kind is Kind.NAME and token.value in "SU":
            return {"S": "SINCE", "U": "UNTIL"}.get(token.value)
        return token.value if token.kind is Kind.KEYWORD and token.value in _INFIX else None

    def _prefix(self) -> mfotl.Formula:
        token = self.peek()
        if token.kind is Kind.KEYWORD:
            if token.value in ("MATCHP", "MATCHF"):
                return self._match()
            if token.value in mfotl.UNARY:
                self.advance()
                interval = self._interval()
                body = self._formula(_UNARY)
                return mfotl.Temporal(token.value, interval, body, span=token.span.to(body.span))
            if token.value in ("EXISTS", "FORALL"):
                return self._quantifier()
            if token.value == "NOT":
                self.advance()
                body = self._formula(_NOT)
                return mfotl.Not(body, span=token.span.to(body.span))
            if token.value in ("LET", "LETPAST"):
                return self._let()
            if token.value in ("TRUE", "FALSE") and not self.at(*mfotl.COMPARISONS, offset=1):
                self.advance()
                return mfotl.Truth(token.value == "TRUE", span=token.span)
        if token.kind is Kind.NAME and self.at("<-", offset=1) and self.at_word(*mfotl.AGGREGATIONS, offset=2):
            return self._aggregation()
        if token.kind is Kind.NAME and self.at("(", offset=1) and token.value not in mfotl.FUNCTIONS:
            return self._predicate()
        if self.at("("):
            return self._parenthesis()
        return self._comparison()

    def _quantifier(self) -> mfotl.Formula:
        token = self.advance()
        names = self._names(f"a variable after {token.raw}")
        self._expect(".", f"after the variables of {token.raw}", f"{token.raw} x, y. ...")
        body = self._formula(_QUANTIFIER)
        kind = mfotl.Exists if token.value == "EXISTS" else mfotl.Forall
        return kind(names, body, span=token.span.to(body.span))

    def _names(self, expected: str) -> tuple[str, ...]:
        names = [self._name(expected).value]
        while self.at(","):
            self.advance()
            names.append(self._name("a variable after ','").value)
        return tuple(names)

    def _let(self) -> mfotl.Formula:
        start = self.advance()
        word = start.value
        name = self._name(f"a name after {word}")
        self._expect("(", f"after '{name.value}'", f"{word} {name.value}(x) = ... IN ...")
        parameters = () if self.at(")") else self._names("a variable")
        close = self._expect(")", f"after the parameters of '{name.value}'", "its parameters are variables")
        self._expect("=", f"before the meaning of '{name.value}'")
        definition = self._formula(_LOOSEST)
        if not self.at_word("IN"):
            raise self._unexpected(f"IN after the meaning of '{name.value}'", f"{word} {name.value}(...) = ... IN ...")
        self.advance()
        body = self._formula(_LOOSEST)
        head = name.span.to(close.span)
        kind = mfotl.LetPast if word == "LETPAST" else mfotl.Let
        return kind(name.value, parameters, definition, body, span=start.span.to(body.span), head_span=head)

    def _aggregation(self) -> mfotl.Formula:
        result = self.advance()
        self.advance()
        operator = self.advance()
        variable = self._name(f"the variable that {operator.value} is over")
        groups: tuple[str, ...] = ()
        if self.at(";"):
            self.advance()
            if self.at_kind(Kind.NAME):  # MonPoly takes an empty list of groups
                groups = self._names("a variable to group by")
        body = self._formula(_LOOSEST)
        return mfotl.Aggregation(
            result.value,
            operator.value,
            variable.value,
            groups,
            body,
            span=result.span.to(body.span),
            result_span=result.span,
            variable_span=variable.span,
        )

    def _predicate(self) -> mfotl.Formula:
        name = self.advance()
        self.advance()
        arguments: list[mfotl.Term] = []
        while not self.at(")"):
            arguments.append(self._term())
            if not self.at(","):
                break
            self.advance()
        close = self._expect(")", f"or ',' in the arguments of '{shorten(name.value)}'")
        return mfotl.Predicate(name.value, tuple(arguments), span=name.span.to(close.span), name_span=name.span)

    def _parenthesis(self) -> mfotl.Formula:
        """``(formula)``, or a comparison whose left side begins with a parenthesis; each place is read once."""
        start, warned = self.index, len(self.warnings)
        known = self._bracketed_formulas.get(start)
        if known is None:
            try:
                formula = self._read_parenthesis()
                known = formula, self.index, self.warnings[warned:]
            except ReadingError as error:
                known = error
            self._bracketed_formulas[start] = known
        elif not isinstance(known, ReadingError):
            self.warnings += known[2]
        if isinstance(known, ReadingError):
            raise known
        self.index = known[1]
        return known[0]

    def _read_parenthesis(self) -> mfotl.Formula:
        start, depth_before, warned = self.index, self.depth, len(self.warnings)
        try:
            left = self._term()
            if self.at(*mfotl.COMPARISONS) or self.at_word("SUBSTRING", "MATCHES"):
                return self._compared(left)
        except ReadingError:
            pass
        self.index, self.depth = start, depth_before
        del self.warnings[warned:]
        opened = self.advance()
        formula = self._formula(_LOOSEST)
        if not self.at(")"):
            raise self._unexpected("')' or an operator", _operator_hint(self.peek()))
        return widened(formula, opened.span.to(self.advance().span))

    def _comparison(self) -> mfotl.Formula:
        token = self.peek()
        starts = (Kind.NAME, Kind.INTEGER, Kind.FLOAT, Kind.STRING, Kind.BAD, Kind.DURATION)
        if token.kind not in starts and not self.at("-") and not self.at_word("TRUE", "FALSE"):
            raise self._unexpected("a formula")
        left = self._term()
        return self._compared(left)

    def _compared(self, left: mfotl.Term) -> mfotl.Formula:
        if self.at("<-") and self._tokens[self.index].raw == "<-":  # x <-5 is x < -5
            arrow = self.advance()
            right = self._negated(Span(arrow.span.start + 1, arrow.span.end))
            return mfotl.Comparison("<", left, right, span=left.span.to(right.span))
        if self.at(*mfotl.COMPARISONS):
            operator = self.advance().value
            right = self._term()
            return mfotl.Comparison(operator, left, right, span=left.span.to(right.span))
        if self.at_word("SUBSTRING"):
            self.advance()
            right = self._term()
            return mfotl.Substring(left, right, span=left.span.to(right.span))
        if self.at_word("MATCHES"):
            self.advance()
            token = self.peek()
            if token.kind is not Kind.REGEXP:
                raise self._unexpected('a regular expression after MATCHES, such as r"^a.*"')
            self.advance()
            return mfotl.Matches(left, token.value, span=left.span.to(token.span))
        raise self._unexpected("a comparison", _predicate_hint(left))


def _depth(formula: mfotl.Formula) -> int:
    """How deep the formula is nested, without recursion."""
    deepest, todo = 0, [(formula, 1)]
    while todo:
        node, level = todo.pop()
        deepest = max(deepest, level)
        todo.extend((child, level + 1) for child in mfotl.children(node))
    return deepest


def _joined(operator: str, interval: mfotl.Interval, left: mfotl.Formula, right: mfotl.Formula) -> mfotl.Formula:
    span = left.span.to(right.span)
    match operator:
        case "SINCE" | "UNTIL" | "TRIGGER" | "RELEASE":
            kind: type[mfotl.Timed] = _TIMED[operator]
            return kind(interval, left, right, span=span)
        case "EQUIV":
            return mfotl.Equiv(left, right, span=span)
        case "IMPLIES":
            return mfotl.Implies(left, right, span=span)
        case "OR":
            return mfotl.Or(left, right, span=span)
    return mfotl.And(left, right, span=span)


def _operator_hint(token: Token) -> str | None:
    words = {"and": "AND", "or": "OR", "not": "NOT", "since": "SINCE", "until": "UNTIL", "implies": "IMPLIES"}
    if token.kind is Kind.NAME and token.value.lower() in words:
        return f"keywords are written in capitals: {words[token.value.lower()]}"
    if token.kind is Kind.SYMBOL and token.value in (*mfotl.COMPARISONS, "<-"):
        return None
    meant = near_miss(token.value, words.values(), 0.75) if token.kind is Kind.NAME else None
    if meant is not None:
        return f"did you mean {meant}?"
    return "join formulas with AND, OR, IMPLIES, EQUIV, SINCE, UNTIL, TRIGGER or RELEASE"


def _predicate_hint(left: mfotl.Term) -> str | None:
    if isinstance(left, mfotl.Variable):
        words = ("NOT", "EXISTS", "FORALL", "ONCE", "ALWAYS", "EVENTUALLY", "PREV", "NEXT", "LET", "HISTORICALLY")
        if left.name.upper() in words:
            return f"keywords are written in capitals: {left.name.upper()}"
        meant = near_miss(left.name, words, 0.75)
        if meant is not None:
            return f"did you mean {meant}?"
        return f"a predicate has parentheses: {left.name}()"
    return None
