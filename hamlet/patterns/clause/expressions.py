"""Expressions of MEASURES and DEFINE: what they read of a match, taken out of the host's text.

What is left is an expression of the host over columns of the current row and over names (`Reading.name`) that stand for
what was taken out: navigation (``FIRST(a.x, 2)``, ``PREV(LAST(a.x), 3)``, ``a.x``, ``CLASSIFIER()``) and aggregates.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal

from hamlet.errors import Span
from hamlet.frontend.reports import Reports
from hamlet.patterns.clause.parser import closing
from hamlet.patterns.clause.scan import Quoting, Token
from hamlet.patterns.clause.tree import Clause, Expression

KEPT = "__hamlet_"  # begins the names of columns that stand beside those of a table
LABEL = "__hamlet_label_"  # without quotes, which mean texts in some dialects
NUMBER = "__hamlet_match_number_"
_NAVIGATION = {"FIRST", "LAST", "PREV", "NEXT"}
_OWN = {*_NAVIGATION, "CLASSIFIER", "MATCH_NUMBER"}
_SYNONYMS = {"LAG": "PREV", "LEAD": "NEXT"}  # as Snowflake has them
_FARTHEST = 2**31 - 1

Mode = Literal["RUNNING", "FINAL"]


@dataclass(frozen=True)
class Navigation:
    """The value of an expression at one row.

    Attributes
    ----------
    variable : str or None
        Rows of which (folded) variable or subset are counted; None for all of the match.
    last : bool
        Whether rows are counted from the last one.
    inwards : int
        How many rows further in.
    step : int
        How many rows of the partition further on, negative for back.
    value : str
        The host's expression over the row, `LABEL` where it reads the row's variable.
    mode : {'RUNNING', 'FINAL'} or None
        As written.
    span : Span
    """

    variable: str | None
    last: bool
    inwards: int
    step: int
    value: str
    mode: Mode | None
    span: Span

    @property
    def reads_label(self) -> bool:
        """Whether the value depends on the variable of the row."""
        return LABEL in self.value

    @property
    def reads_number(self) -> bool:
        """Whether the value depends on the number of the match."""
        return NUMBER in self.value


@dataclass(frozen=True)
class Aggregation:
    """An aggregate over rows of the match.

    Attributes
    ----------
    function : str
        As written.
    variable : str or None
    distinct : bool
    arguments : str
        The host's expressions over a row, ``*`` for ``COUNT(*)``.
    order : str
        What stands behind ORDER BY in its parentheses.
    within : str
        What stands behind WITHIN GROUP (ORDER BY.
    condition : str
        What stands behind FILTER (WHERE.
    mode : {'RUNNING', 'FINAL'} or None
    span : Span
    """

    function: str
    variable: str | None
    distinct: bool
    arguments: str
    order: str
    within: str
    condition: str
    mode: Mode | None
    span: Span

    @property
    def reads_label(self) -> bool:
        """Whether the value depends on the variables of rows, beside which rows they are."""
        return LABEL in self._texts

    @property
    def reads_number(self) -> bool:
        """Whether the value depends on the number of the match."""
        return NUMBER in self._texts

    @property
    def _texts(self) -> str:
        return f"{self.arguments} {self.order} {self.within} {self.condition}"


Reading = Navigation | Aggregation


@dataclass(frozen=True)
class Read:
    """An expression of the clause after what it reads of the match has been taken out.

    Attributes
    ----------
    text : str
        The host's expression; the n-th reading is the column `placeholder(n)`, the number of the match `NUMBER`.
    readings : tuple of Reading
    expression : Expression
        As written.
    """

    text: str
    readings: tuple[Reading, ...]
    expression: Expression
    columns: tuple[str, ...] = field(default=())

    @property
    def reads_number(self) -> bool:
        """Whether the number of the match is read."""
        return NUMBER in self.text or any(each.reads_number for each in self.readings)


def placeholder(place: int) -> str:
    """The column that stands for a reading."""
    return f"__hamlet_read_{place}_"


def source_name(clause: Clause, tokens: Sequence[Token]) -> str | None:
    """The folded name of a clause's table: its alias, or the last part of its own name."""
    span = clause.source
    inside = [each for each in tokens if span.start <= each.span.start and each.span.end <= span.end]
    if inside and inside[-1].text == ")":  # the columns of an alias
        depth = 0
        while inside:
            depth += (inside[-1].text == ")") - (inside[-1].text == "(")
            inside.pop()
            if depth == 0:
                break
    return inside[-1].text.lower() if inside and inside[-1].is_identifier else None


class ExpressionReader:
    """Reads the expressions of one clause.

    Parameters
    ----------
    reports : Reports
        Of the whole text.
    clause : Clause
    tokens : sequence of Token
        Of the statement.
    aggregates : collection of str
        The host's aggregate functions, in lower case.
    columns : collection of str
        The columns of the source, in lower case.
    translate : callable
        From the dialect of the text to the host's.
    quoting : Quoting
    """

    def __init__(
        self,
        reports: Reports,
        clause: Clause,
        tokens: Sequence[Token],
        aggregates: Container[str],
        columns: Collection[str],
        translate: Callable[[str], str],
        quoting: Quoting,
    ) -> None:
        self._reports, self._clause, self._tokens, self._quoting = reports, clause, tokens, quoting
        self._aggregates, self._columns, self._translate = aggregates, columns, translate
        self._names = {*clause.variables, *clause.subsets}
        self._source = source_name(clause, tokens)

    def plain(self, expression: Expression) -> Read:
        """An expression of PARTITION BY, ORDER BY or WITHIN, which reads nothing of a match."""
        scope = _Scope(self, self._inside(expression.span), None)
        return Read(self._translate(scope.plain()), (), expression)

    def _is_source(self, place: int, tokens: Sequence[Token]) -> bool:
        """Whether a token is the name of the clause's table before a column."""
        token, behind = tokens[place], tokens[place + 1 : place + 3]
        name = token.text.lower()
        if name != self._source or len(behind) < 2 or behind[0].text != "." or not behind[1].is_identifier:
            return False
        alone = token.is_identifier and (place == 0 or tokens[place - 1].text != ".")
        return alone and (name not in self._columns or behind[1].text.lower() in self._columns)

    def measure(self, expression: Expression) -> Read:
        """An expression of MEASURES."""
        return self._read(expression, None)

    def condition(self, variable: str, expression: Expression) -> Read:
        """The condition of a folded variable."""
        return self._read(expression, variable)

    def _inside(self, span: Span) -> list[Token]:
        found = [each for each in self._tokens if span.start <= each.span.start and each.span.end <= span.end]
        for place, each in enumerate(found[:-1]):
            called = (
                each.kind == "word" and found[place + 1].text == "(" and (not place or found[place - 1].text != ".")
            )
            if called and each.text.upper() in _SYNONYMS:
                found[place] = replace(each, text=_SYNONYMS[each.text.upper()])
        return found

    def _read(self, expression: Expression, defined: str | None) -> Read:
        scope = _Scope(self, self._inside(expression.span), defined)
        text = scope.rewrite(0, len(scope.tokens), None)
        return Read(self._translate(text), tuple(scope.readings), expression)


@dataclass
class _Inner:
    """What stands inside one navigation or aggregate: all its columns belong to one variable."""

    variables: dict[str | None, Span] = field(default_factory=dict)
    is_aggregate: bool = False
    star: bool = False


def _bound_names(tokens: Sequence[Token]) -> list[set[str]]:
    """By token, the folded names that lambdas around it bind: ``lambda x, y: x + y``, ``x -> x + 1``."""
    found: list[set[str]] = [set() for _ in tokens]
    for place, token in enumerate(tokens):
        first = place + 1
        if token.is_word("LAMBDA") and (place == 0 or tokens[place - 1].text != "."):
            end = next((at for at in range(first, len(tokens)) if tokens[at].text == ":"), len(tokens))
        elif token.text == "->" and tokens[first : first + 1] and tokens[first].kind not in ("text", "number"):
            end = place  # before a text or a number it is JSON's operator
            opened = (at for at in range(place) if tokens[at].text == "(" and closing(tokens, at) == place - 1)
            first = max(opened, default=max(0, place - 1))
        else:
            continue
        names = {each.text.lower() for each in tokens[first:end] if each.is_identifier}
        depth, place = 0, first
        while place < len(tokens) and depth >= 0 and (depth or place <= end or tokens[place].text != ","):
            found[place] |= names
            depth += (tokens[place].text in "([{") - (tokens[place].text in ")]}")
            place += 1
    return found


class _Scope:
    """One expression: tokens, and the readings taken out of them so far."""

    def __init__(self, reader: ExpressionReader, tokens: list[Token], defined: str | None) -> None:
        self.reader, self.tokens, self.defined = reader, tokens, defined
        self.readings: list[Reading] = []
        self._bound = _bound_names(tokens)
        self._error, self._text = reader._reports.error, reader._reports.text

    # Texts.

    def _source(self, first: int, last: int) -> str:
        if first >= last:
            return ""
        return self.reader._reports.text[self.tokens[first].span.start : self.tokens[last - 1].span.end]

    def rewrite(self, first: int, last: int, inner: _Inner | None) -> str:
        """The text of some tokens with readings taken out, or, inside one, with the names of its variable left out."""
        text = self._text
        pieces: list[str] = []
        copied = self.tokens[first].span.start if first < last else 0
        place = first
        while place < last:
            token = self.tokens[place]
            self._refuse(place, last, inner is None and self.defined is None)
            taken = self._taken(place, last, inner)
            if taken is not None:
                said, behind = taken
                pieces += text[copied : token.span.start], f" {said} "  # words beside it stay words of their own
                place = behind
                copied = self.tokens[place].span.start if place < last else self.tokens[last - 1].span.end
                # what stood between the tokens is kept
                gap = self.tokens[place - 1].span.end
                copied = min(copied, gap) if place < last else gap
                continue
            self._note_column(place, inner)
            place += 1
        if first < last:
            pieces.append(text[copied : self.tokens[last - 1].span.end])
        return "".join(pieces)

    def plain(self) -> str:
        """The text of an expression over rows of the source, the name of the source left out."""
        pieces: list[str] = []
        copied = self.tokens[0].span.start if self.tokens else 0
        for place, token in enumerate(self.tokens):
            if token.is_word("SELECT"):
                self._error("a subquery cannot stand here", token.span, "compute it in the table before")
            if self._is_call(place, len(self.tokens)) and not self._behind_dot(place):
                name = token.text
                if name.upper() in _OWN or name.lower() in self.reader._aggregates:
                    self._error(f"{name} reads a match, and there is none yet", token.span, "use it in MEASURES")
            said = None
            if self.reader._is_source(place, self.tokens):
                said, end = "", self.tokens[place + 1].span.end
            elif self._is_reserved_column(place, len(self.tokens)):
                said, end = self.reader._quoting.alone(token.text), token.span.end
            if said is not None:
                pieces += self._text[copied : token.span.start], said
                copied = end
        return "".join([*pieces, self._text[copied : self.tokens[-1].span.end]]) if self.tokens else ""

    def _refuse(self, place: int, last: int, may_give_rows: bool) -> None:
        token = self.tokens[place]
        if self._behind_dot(place):
            return
        opened = place > 0 and self.tokens[place - 1].text == "("
        said = place > 1 and opened and self.tokens[place - 2].is_word("EXISTS")
        if self._dot(place + 1, last):
            return
        if (token.is_word("SELECT") and not said) or (token.is_word("EXISTS") and self._is_call(place, last)):
            self._error("a subquery cannot stand in MEASURES or DEFINE", token.span, "join it in the table before")
        elif token.is_word("OVER") and place > 0 and self.tokens[place - 1].text == ")":
            self._error(
                "a window function cannot stand in MEASURES or DEFINE",
                token.span,
                "compute it in the table before, or use PREV, NEXT, FIRST and LAST",
            )
        elif not may_give_rows and token.is_word("UNNEST", "UNLIST") and self._is_call(place, last):
            self._error(f"{token.text} gives several values, and one is read", token.span, "use it in the table before")
        elif token.is_word("MATCH_SEQUENCE_NUMBER") and self._is_call(place, last):
            hint = f"{'' if self.defined else 'RUNNING '}COUNT(*) counts the rows of the match up to this one"
            self._error(f"{token.text} is a function of Snowflake alone", token.span, hint)
        elif opened and not said and token.is_word("FROM", "WITH", "VALUES"):
            self._error("a subquery cannot stand in MEASURES or DEFINE", token.span, "join it in the table before")

    def _taken(self, place: int, last: int, inner: _Inner | None) -> tuple[str, int] | None:
        """What stands for a reading that begins at a token, and the place behind it."""
        token = self.tokens[place]
        if not token.is_identifier or self._behind_dot(place) or token.text.lower() in self._bound[place]:
            return None
        if token.is_word("RUNNING", "FINAL") and self._is_call(place + 1, last):
            return self._with_mode(place, last, inner)
        twice = token.is_word("RUNNING", "FINAL") and place + 2 < last
        if twice and self.tokens[place + 1].is_word("RUNNING", "FINAL"):
            self._error("RUNNING or FINAL is written once", token.span, f"leave {token.text} out")
            return "", place + 1
        if token.kind == "word" and self._is_call(place, last):
            name = token.text.upper()
            if name in _OWN or name.lower() in self.reader._aggregates:
                return self._call(place, last, None, inner)
            return None
        found = self._variable(place, last, inner)
        if found is None and place + 2 < last and self.reader._is_source(place, self.tokens):
            if inner is not None:
                inner.variables.setdefault(None, token.span)
            self._check_is_seen(place + 2)
            return self._column(place + 2), place + 3
        if found is None and self._is_reserved_column(place, last):
            self._note_column(place, inner)
            return self.reader._quoting.alone(token.text), place + 1
        return found

    def _is_reserved_column(self, place: int, last: int) -> bool:
        """Whether a word is a column whose name the host keeps for itself where no expression has that word."""
        token, word = self.tokens[place], self.tokens[place].text.lower()
        if token.kind != "word" or word not in self.reader._columns or word not in self.reader._quoting.reserved:
            return False
        following = self.tokens[place + 1] if place + 1 < last else None
        return following is None or not (following.text == "(" or (word == "at" and following.is_word("TIME")))

    def _behind_dot(self, place: int) -> bool:
        return place > 0 and self.tokens[place - 1].text == "."

    def _dot(self, place: int, last: int) -> bool:
        return place < last and self.tokens[place].text == "."

    def _is_call(self, place: int, last: int) -> bool:
        return (
            place + 1 < last
            and self.tokens[place].kind == "word"
            and self.tokens[place + 1].kind == "other"
            and self.tokens[place + 1].text == "("
        )

    def _with_mode(self, place: int, last: int, inner: _Inner | None) -> tuple[str, int] | None:
        mode: Mode = "FINAL" if self.tokens[place].is_word("FINAL") else "RUNNING"
        function = self.tokens[place + 1].text.upper()
        span = self.tokens[place].span.to(self.tokens[place + 1].span)
        if function in ("PREV", "NEXT", "CLASSIFIER", "MATCH_NUMBER"):
            self._error(f"{mode} cannot stand before {function}", span, f"leave {mode} out")
        elif function not in _NAVIGATION and function.lower() not in self.reader._aggregates:
            self._error(f"{mode} stands before FIRST, LAST or an aggregate", span, f"leave {mode} out")
            return None
        elif mode == "FINAL" and self.defined is not None:
            self._error("FINAL cannot stand in DEFINE, where the match is not whole yet", span, "leave FINAL out")
        return self._call(place + 1, last, mode, inner)

    # Columns.

    def _variable(self, place: int, last: int, inner: _Inner | None) -> tuple[str, int] | None:
        """``a.x``: the column x of the last row of a, or, inside a reading, the column x."""
        token = self.tokens[place]
        if place + 2 >= last or self.tokens[place + 1].text != "." or token.text.lower() not in self.reader._names:
            return None
        column = self.tokens[place + 2]
        span = token.span.to(column.span)
        if column.text == "*":
            if inner is None or not inner.is_aggregate:
                self._error(f"{token.text}.* stands in COUNT alone", span, f"COUNT({token.text}.*)")
            else:
                inner.variables.setdefault(token.text.lower(), span)
                inner.star = True
            return "*", place + 3
        text = self._column(place + 2)
        if inner is not None:
            inner.variables.setdefault(token.text.lower(), span)
            self._check_is_seen(place + 2)
            return text, place + 3
        value = self.reader._translate(text)
        return self._add(Navigation(token.text.lower(), True, 0, 0, value, None, span)), place + 3

    def _column(self, place: int) -> str:
        """A column as it can stand without what stood before it."""
        text = self._source(place, place + 1)
        return self.reader._quoting.alone(text) if self.tokens[place].kind == "word" else text

    def _check_is_seen(self, place: int) -> None:
        token = self.tokens[place]
        if token.text.lower() in self._bound[place]:
            hint = "give the parameter another name"
            self._error(f"a parameter of the lambda hides the column {token.text}", token.span, hint)

    def _note_column(self, place: int, inner: _Inner | None) -> None:
        """Note an unqualified column inside a reading."""
        token = self.tokens[place]
        if inner is None or not token.is_identifier or token.text.lower() not in self.reader._columns:
            return
        if self._behind_dot(place) or token.text.lower() in self._bound[place]:
            return
        following = self.tokens[place + 1].text if place + 1 < len(self.tokens) else ""
        if following in ("(", "->", "=>", ":=") or (place > 0 and self.tokens[place - 1].is_word("AS")):
            return
        before = self.tokens[place - 1] if place > 0 else token
        if following == ":" or before.text == "::":
            return
        is_behind = before.text == ")" or (before.is_identifier and before is not token and not before.is_word("BY"))
        if token.is_word("ASC", "DESC") and is_behind:
            return  # the direction of an item of ORDER BY
        inner.variables.setdefault(None, token.span)

    def _add(self, reading: Reading) -> str:
        for place, known in enumerate(self.readings):
            if replace(known, span=reading.span) == reading:
                return placeholder(place)
        self.readings.append(reading)
        return placeholder(len(self.readings) - 1)

    def _one_variable(self, inner: _Inner, span: Span) -> str | None:
        if len(inner.variables) > 1:
            shown = [name if name is not None else "no variable" for name in inner.variables]
            self._error(
                f"all columns inside {self.reader._reports.quote(span)} must belong to one variable, "
                f"and these belong to {' and to '.join(shown)}",
                span,
                "put the same variable before each column, or use several functions",
            )
        return next(iter(inner.variables), None)

    # Calls.

    def _call(self, place: int, last: int, mode: Mode | None, inner: _Inner | None) -> tuple[str, int]:
        name = self.tokens[place].text.upper()
        end = min(closing(self.tokens, place + 1), last - 1)
        span = self.tokens[place].span.to(self.tokens[end].span)
        modifier = self._modifier(place, end, last) if name in _OWN else None
        if modifier is not None:
            self._error(f"{modifier} is for aggregates, not for {name}", span, f"leave {modifier} out")
            return "NULL", end + 1
        if name == "MATCH_NUMBER":
            if end > place + 2:
                self._error("MATCH_NUMBER() takes nothing", span, "MATCH_NUMBER()")
            return NUMBER, end + 1
        if name == "CLASSIFIER":
            return self._classifier(place, end, span, inner), end + 1
        if inner is not None:
            what = "an aggregate" if inner.is_aggregate else "FIRST, LAST, PREV or NEXT"
            hint = "only FIRST and LAST may stand in PREV and NEXT, alone: PREV(FIRST(a.x, 1), 2)"
            self._error(f"{self.tokens[place].text} cannot stand inside {what}", span, hint)
            return "NULL", end + 1
        if name in _NAVIGATION:
            return self._navigation(place, end, mode, span), end + 1
        return self._aggregate(place, end, last, mode, span)

    def _modifier(self, place: int, end: int, last: int) -> str | None:
        """What stands in or behind a call and is for aggregates alone."""
        words = self.tokens[place + 2 : min(end + 3, last)]
        depth = 0  # below zero behind the call
        for at, (each, following) in enumerate(pairwise(words)):
            if at == 0 and (each.is_word("DISTINCT") or (each.is_word("ALL") and following.text != "(")):
                return each.text
            depth += (each.kind == "other") * ((each.text in "([{") - (each.text in ")]}"))
            two = f"{each.text} {following.text}"
            if depth <= 0 and two.upper() in ("ORDER BY", "IGNORE NULLS", "RESPECT NULLS"):
                return two
            if depth < 0 and each.is_word("FILTER") and following.text == "(":
                return each.text
        return None

    def _classifier(self, place: int, end: int, span: Span, inner: _Inner | None) -> str:
        variable = None
        if end > place + 2:
            token = self.tokens[place + 2]
            variable = token.text.lower()
            if end != place + 3 or not token.is_identifier or variable not in self.reader._names:
                self._error("CLASSIFIER takes a variable of the pattern, or nothing", span, "CLASSIFIER()")
                variable = None
        if inner is None:
            return self._add(Navigation(variable, True, 0, 0, LABEL, None, span))
        inner.variables.setdefault(variable, span)
        return LABEL

    def _arguments(self, first: int, last: int) -> list[tuple[int, int]]:
        """The arguments of a call between its parentheses."""
        found, start, place = [], first, first
        while place < last:
            if self.tokens[place].kind == "other":
                if self.tokens[place].text in "([{":
                    place = closing(self.tokens, place)
                elif self.tokens[place].text == ",":
                    found.append((start, place))
                    start = place + 1
            place += 1
        return [*found, (start, last)] if first < last else []

    def _offset(self, first: int, last: int, default: int) -> int:
        if first == last:
            return default
        text = self._source(first, last)
        if text.isdecimal() and int(text) <= _FARTHEST:
            return min(int(text), _FARTHEST - 1)  # the kernel adds one
        span = self.tokens[first].span.to(self.tokens[last - 1].span)
        allowed = f"is at most {_FARTHEST:,}" if text.isdecimal() else "is a whole number"
        self._error(f"an offset {allowed}, not {self.reader._reports.quote(span)}", span, "PREV(price, 2)")
        return default

    def _navigation(self, place: int, end: int, mode: Mode | None, span: Span) -> str:
        name = self.tokens[place].text.upper()
        arguments = self._arguments(place + 2, end)
        if len(arguments) not in (1, 2) or any(first == last for first, last in arguments):
            self._error(f"{name} takes an expression and perhaps an offset", span, f"{name}(price, 1)")
            return "NULL"
        first, last = arguments[0]
        offset = self._offset(*arguments[1], 0) if len(arguments) > 1 else int(name in ("PREV", "NEXT"))
        step = {"PREV": -offset, "NEXT": offset}.get(name, 0)
        if step or name in ("PREV", "NEXT"):
            nested = self._nested(first, last)
            if nested is not None:
                begin, inner_mode = nested
                inner_span = self.tokens[begin].span.to(self.tokens[last - 1].span)
                found = self._logical(begin, last - 1, inner_mode or mode, inner_span)
                return self._add(replace(found, step=step, span=span)) if found is not None else "NULL"
            value, variable = self._value(first, last, span)
            return self._add(Navigation(variable, True, 0, step, self.reader._translate(value), mode, span))
        found = self._logical(place, end, mode, span)
        return self._add(found) if found is not None else "NULL"

    def _value(self, first: int, last: int, span: Span) -> tuple[str, str | None]:
        """The expression inside a navigation, and whose rows it reads."""
        inner = _Inner()
        known = len(self.reader._reports.errors)
        text = self.rewrite(first, last, inner)
        nothing = not inner.variables and not any(self._may_be_column(place, last) for place in range(first, last))
        if (nothing or text.strip() == "*") and len(self.reader._reports.errors) == known:
            shown = self.reader._reports.quote(span)
            self._error(f"{shown} reads no column of a row", span, "FIRST(a.price), PREV(price), LAST(CLASSIFIER())")
        return text, self._one_variable(inner, span)

    def _may_be_column(self, place: int, last: int) -> bool:
        token, word = self.tokens[place], self.tokens[place].text.lower()
        if not token.is_identifier or word in self._bound[place] or self._is_call(place, last):
            return False
        if token.kind == "name" or word not in self.reader._quoting.keywords:
            return True
        # a keyword may be a column, or a type: DATE '2024-03-05', CAST(1 AS INTEGER), 1::INTEGER
        before = self.tokens[place - 1]
        is_type = before.is_word("AS") or before.text in ("::", ":") or self.tokens[place + 1].kind == "text"
        return word not in self.reader._quoting.no_columns and not is_type

    def _nested(self, first: int, last: int) -> tuple[int, Mode | None] | None:
        """Where FIRST or LAST begins that is the whole of some tokens, and what stands before it."""
        mode: Mode | None = None
        if self.tokens[first].is_word("RUNNING", "FINAL") and self._is_call(first + 1, last):
            mode = "FINAL" if self.tokens[first].is_word("FINAL") else "RUNNING"
            if mode == "FINAL" and self.defined is not None:
                self._error("FINAL cannot stand in DEFINE, where the match is not whole yet", self.tokens[first].span)
            first += 1
        whole = self._is_call(first, last) and closing(self.tokens, first + 1) == last - 1
        return (first, mode) if whole and self.tokens[first].is_word("FIRST", "LAST") else None

    def _logical(self, place: int, end: int, mode: Mode | None, span: Span) -> Navigation | None:
        arguments = self._arguments(place + 2, end)
        if len(arguments) not in (1, 2) or any(first == last for first, last in arguments):
            self._error("FIRST and LAST take an expression and perhaps an offset", span, "LAST(a.price, 1)")
            return None
        value, variable = self._value(*arguments[0], span)
        offset = self._offset(*arguments[1], 0) if len(arguments) > 1 else 0
        is_last = self.tokens[place].is_word("LAST")
        return Navigation(variable, is_last, offset, 0, self.reader._translate(value), mode, span)

    def _aggregate(self, place: int, end: int, last: int, mode: Mode | None, span: Span) -> tuple[str, int]:
        inner = _Inner(is_aggregate=True)
        first = place + 2
        distinct = first < end and self.tokens[first].is_word("DISTINCT", "ALL")
        all_rows = distinct and self.tokens[first].is_word("ALL")
        first += distinct
        order_at = self._find(first, end, "ORDER")
        values = self.rewrite(first, order_at if order_at is not None else end, inner)
        order = "" if order_at is None else self.rewrite(order_at + 2, end, inner)
        behind = end + 1
        within, behind = self._tail(behind, last, ("WITHIN", "GROUP"), 2, inner)
        condition, behind = self._tail(behind, last, ("FILTER",), 1, inner)
        variable = self._one_variable(inner, span)
        function = self.tokens[place].text
        if function.upper() == "COUNT" and not values.strip():
            values = "*"  # as Trino and DuckDB read COUNT(); Spark SQL has none
        if inner.star and (values.strip() != "*" or function.upper() != "COUNT"):
            self._error("a variable's rows (a.*) are counted alone", span, "COUNT(a.*)")
        found = Aggregation(
            function,
            variable,
            distinct and not all_rows,
            values,
            order,
            within,
            condition,
            mode,
            span,
        )
        return self._add(found), behind

    def _find(self, first: int, last: int, word: str) -> int | None:
        place = first
        while place < last:
            if self.tokens[place].is_word(word) and place + 1 < last and self.tokens[place + 1].is_word("BY"):
                return place
            if self.tokens[place].kind == "other" and self.tokens[place].text in "([{":
                place = closing(self.tokens, place)
            place += 1
        return None

    def _tail(self, place: int, last: int, words: tuple[str, ...], skipped: int, inner: _Inner) -> tuple[str, int]:
        """What ``FILTER (WHERE ...)`` or ``WITHIN GROUP (ORDER BY ...)`` says behind an aggregate, and what follows."""
        count = len(words)
        if place + count >= last or not all(self.tokens[place + i].is_word(word) for i, word in enumerate(words)):
            return "", place
        if self.tokens[place + count].text != "(":
            return "", place
        end = min(closing(self.tokens, place + count), last - 1)
        return self.rewrite(place + count + 1 + skipped, end, inner), end + 1
