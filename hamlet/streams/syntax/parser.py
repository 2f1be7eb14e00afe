"""Specification text to syntax tree, by recursive descent, with every syntax error of the file at once.

::

    specification = { statement }
    statement = import name | include string | type name "{" name ":" type {"," name ":" type} "}"
              | constant name [":" type] ":=" literal
              | input name ":" type {"," name ":" type}
              | output name ["(" parameters ")"] [":" type] body
              | output name mirrors name when expression
              | trigger ["(" parameters ")"] body
              | trigger [pace] expression [string]
    body      = [pace] ":=" expression | clause {clause}                      at least one of the clauses is an eval
    clause    = spawn [pace] {when expression | with expression}
              | eval  [pace] {when expression | with expression}
              | close [pace] [when expression]

`parse_expression` holds the grammar of expressions, types and pacing. Tags, ``#[...]``, are read over. After a mistake
reading goes on at the next statement.
Source: RTLola frontend, version 0.7.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from hamlet.errors import Span
from hamlet.frontend.cursor import TooManyProblemsError, UnreadableError
from hamlet.frontend.lexer import Kind, tokenize
from hamlet.frontend.reports import Reports
from hamlet.streams.syntax import tree as s
from hamlet.streams.syntax.cursor import CLAUSES, STATEMENTS, Cursor
from hamlet.streams.syntax.parse_expression import parse_expression, parse_pace, parse_type
from hamlet.streams.syntax.tokens import TOKENS

Includer = Callable[[str, Span], "tuple[str, str] | None"]


def read(text: str, reports: Reports, include: Includer) -> tuple[s.Statement, ...]:
    """Read what can be read: the statements without a syntax error, in the order of the text.

    Parameters
    ----------
    text : str
        The specification.
    reports : Reports
        Made of the same text; receives every syntax error.
    include : callable
        Gives text and name of the file that ``include "path"`` names; None where it has complained itself.

    Returns
    -------
    tuple of Statement
        Those of an included file stand behind their `Include`.
    """
    statements: list[s.Statement] = []
    with contextlib.suppress(TooManyProblemsError):
        _read_text(text, 0, reports, include, statements)
    return tuple(statements)


def _read_text(text: str, shift: int, reports: Reports, include: Includer, found: list[s.Statement]) -> None:
    cursor = Cursor(tokenize(TOKENS, reports, text, shift=shift), reports)
    while not cursor.at_kind(Kind.END):
        begin, cursor.depth = cursor.index, 0
        try:
            for statement in _statement(cursor):
                found.append(statement)
                if isinstance(statement, s.Include):
                    inside = include(statement.path, statement.span)
                    if inside is not None:
                        _read_text(inside[0], reports.include(*inside), reports, include, found)
        except UnreadableError:
            while not cursor.at_statement():
                cursor.advance()
        cursor.index = max(cursor.index, begin + 1)  # whatever the text, reading ends


def _statement(cursor: Cursor) -> list[s.Statement]:
    start = cursor.peek()
    _skip_tags(cursor)
    word = cursor.peek()
    if cursor.take_word("import"):
        return [s.Import(cursor.take_name("the name of a module").value, span=cursor.since(start.span))]
    if cursor.take_word("include"):
        if not cursor.at_kind(Kind.STRING):
            raise cursor.expected(['a file name in "double quotes"'])
        return [s.Include(cursor.advance().value, span=cursor.since(start.span))]
    if cursor.take_word("type"):
        return [_type_declaration(cursor, word.span)]
    if cursor.take_word("constant"):
        return [_constant(cursor, word.span)]
    if cursor.take_word("input"):
        return _inputs(cursor)
    if cursor.take_word("output"):
        return [_output(cursor, word.span)]
    if cursor.take_word("trigger"):
        return [_trigger(cursor, word.span)]
    if cursor.at_kind(Kind.END):
        return []
    near = cursor.near(STATEMENTS)
    hint = f"did you mean {near}?" if near else "a statement starts with input, output, trigger, constant or import"
    raise cursor.expected(["'input'", "'output'", "'trigger'"], hint)


def _skip_tags(cursor: Cursor) -> None:
    """``#[key="value", ...]`` and ``#![...]`` mean nothing here."""
    while cursor.at("#"):
        cursor.advance()
        cursor.take("!")
        if not cursor.take("["):
            raise cursor.expected(["'['"], 'a tag is written #[name="value"]')
        while not cursor.at("]"):
            if cursor.at_kind(Kind.END) or not (
                cursor.at_kind(Kind.WORD, Kind.STRING, Kind.NUMBER) or cursor.at("=", ",")
            ):
                raise cursor.expected(["']'"], 'a tag is written #[name="value"]')
            cursor.advance()
        cursor.advance()


def _type_declaration(cursor: Cursor, start: Span) -> s.TypeDeclaration:
    name = cursor.take_name("the name of a type").value
    if not cursor.take("{"):
        raise cursor.expected(["'{'"], "write type Point { x: Float64, y: Float64 }")
    fields: list[tuple[str, s.TypeSyntax]] = []
    while True:
        field = cursor.take_name("the name of a part").value
        if not cursor.take(":"):
            raise cursor.expected(["':'"], "write type Point { x: Float64, y: Float64 }")
        fields.append((field, parse_type(cursor)))
        if not cursor.take(","):
            break
    if not cursor.take("}"):
        raise cursor.expected(["'}'", "','"])
    return s.TypeDeclaration(name, tuple(fields), span=cursor.since(start))


def _constant(cursor: Cursor, start: Span) -> s.ConstantDeclaration:
    name = cursor.take_name("the name of the constant")
    kind = parse_type(cursor) if cursor.take(":") else None
    if not cursor.take(":="):
        raise cursor.expected(["':='"], f"write constant {name.value}: Float64 := 1.0")
    value = parse_expression(cursor)
    if not _is_literal(value):
        raise cursor.fail(
            "a constant is a literal", value.span, f"compute it in an output: output {name.value} @true := ..."
        )
    return s.ConstantDeclaration(name.value, kind, value, name_span=name.span, span=cursor.since(start))


def _is_literal(value: s.Expression) -> bool:
    if isinstance(value, s.MakeTuple):
        return bool(value.parts) and all(_is_literal(part) for part in value.parts)
    return isinstance(value, s.Number | s.Text | s.Boolean)


def _inputs(cursor: Cursor) -> list[s.Statement]:
    """``input a: T, b: U``: each is a statement of its own."""
    found: list[s.Statement] = []
    while True:
        name = cursor.take_name("the name of an input")
        if cursor.at("("):
            raise cursor.fail("an input has no parameters", cursor.peek().span, "outputs can have them")
        if not cursor.take(":"):
            raise cursor.expected(["':'"], f"write input {name.value}: Int64; an input's type cannot be left out")
        kind = parse_type(cursor)
        found.append(s.Input(name.value, kind, name_span=name.span, span=cursor.since(name.span)))
        if not cursor.take(","):
            return found


def _output(cursor: Cursor, start: Span) -> s.Statement:
    name = cursor.take_name("the name of the output")
    if cursor.at_word("mirrors") and cursor.at_kind(Kind.WORD, offset=1):
        cursor.advance()
        target = cursor.take_name("the name of an output")
        if not cursor.take_word("when"):
            raise cursor.expected(["'when'"], f"write output {name.value} mirrors {target.value} when condition")
        condition = parse_expression(cursor)
        return s.Mirror(
            name.value,
            target.value,
            condition,
            name_span=name.span,
            target_span=target.span,
            span=cursor.since(start),
        )
    return _body(cursor, name.value, name.span, start)


def _trigger(cursor: Cursor, start: Span) -> s.Output:
    begin = cursor.index
    if cursor.at_word(*CLAUSES) or (cursor.at("(") and _clauses_follow_brackets(cursor)):
        return _body(cursor, None, start, start)
    pace = parse_pace(cursor)
    if cursor.at(":="):
        cursor.index = begin
        return _body(cursor, None, start, start)
    condition = parse_expression(cursor)
    message: s.Expression | None = None
    if cursor.at_kind(Kind.STRING):
        token = cursor.advance()
        message = s.Text(token.value, span=token.span)
    if cursor.at("."):
        raise cursor.fail(
            "the message of this form is a literal",
            cursor.peek().span,
            'write trigger eval when condition with "...{{}}...".format(x)',
        )
    if message is not None and cursor.at("("):
        raise cursor.expected(
            ["a statement"], 'values come into a message so: trigger eval when condition with "...{{}}...".format(x)'
        )
    if not cursor.at_statement():
        near = cursor.near([*STATEMENTS, *CLAUSES])
        raise cursor.expected(
            ["a message in double quotes", "a statement"],
            f"did you mean {near}?" if near else "write trigger condition, or trigger eval when condition with message",
        )
    span = cursor.since(start)
    clause = s.EvalClause(pace, condition, message, span=span)
    return s.Output(None, (), None, None, (clause,), None, name_span=start, span=span)


def _clauses_follow_brackets(cursor: Cursor) -> bool:
    """Whether the brackets at the cursor are parameters: a clause follows them."""
    offset, depth = 0, 0
    while not cursor.at_kind(Kind.END, offset=offset):
        depth += cursor.at("(", offset=offset) - cursor.at(")", offset=offset)
        offset += 1
        if depth == 0:
            return cursor.at_word(*CLAUSES, offset=offset) or cursor.at(":", ":=", offset=offset)
    return False


def _body(cursor: Cursor, name: str | None, name_span: Span, start: Span) -> s.Output:
    """What follows the name of an output."""
    parameters = _parameters(cursor)
    kind = parse_type(cursor) if cursor.take(":") else None
    spawn: s.SpawnClause | None = None
    close: s.CloseClause | None = None
    evals: list[s.EvalClause] = []
    if cursor.at("@", ":="):
        begin = cursor.peek().span
        pace = parse_pace(cursor)
        if not cursor.take(":="):
            raise cursor.expected(["':='"], "write output name @1Hz := expression")
        expression = parse_expression(cursor)
        evals.append(s.EvalClause(pace, None, expression, span=cursor.since(begin)))
    else:
        while cursor.at_word(*CLAUSES):
            word = cursor.advance()
            before = {"spawn": spawn, "close": close}.get(word.value)
            if before is not None:
                cursor.report(f"a second {word.value}", word.span, f"an output has one {word.value} clause")
            if word.value == "spawn":
                spawn = s.SpawnClause(*_clause(cursor, word.value), span=cursor.since(word.span))
            elif word.value == "eval":
                evals.append(s.EvalClause(*_clause(cursor, word.value), span=cursor.since(word.span)))
            else:
                close = s.CloseClause(*_clause(cursor, word.value)[:2], span=cursor.since(word.span))
    if not evals:
        near = cursor.near(CLAUSES)
        hint = f"did you mean {near}?" if near else "write := expression, or eval with expression"
        raise cursor.expected(["':='", "'eval'"], hint)
    _end_of_output(cursor)
    return s.Output(name, parameters, kind, spawn, tuple(evals), close, name_span=name_span, span=cursor.since(start))


def _end_of_output(cursor: Cursor) -> None:
    if cursor.at_statement():
        return
    if cursor.at_word(*CLAUSES):
        word = cursor.peek().value
        hint = f"write eval with expression instead of := where there is {'an' if word == 'eval' else 'a'} {word}"
        raise cursor.fail(f"'{word}' cannot follow ':='", cursor.peek().span, hint)
    near = cursor.near([*STATEMENTS, *CLAUSES])
    hint = "join the parts of an expression with operators"
    raise cursor.expected(["a statement"], f"did you mean {near}?" if near else hint)


def _parameters(cursor: Cursor) -> tuple[s.ParameterDeclaration, ...]:
    found: list[s.ParameterDeclaration] = []
    if not cursor.take("("):
        return ()
    while not cursor.at(")") or found:
        name = cursor.take_name("the name of a parameter")
        kind = parse_type(cursor) if cursor.take(":") else None
        found.append(s.ParameterDeclaration(name.value, kind, span=cursor.since(name.span)))
        if not cursor.take(","):
            break
    if not cursor.take(")"):
        raise cursor.expected(["')'", "','"], "parameters are written (name: Type, other: Type)")
    return tuple(found)


def _clause(cursor: Cursor, word: str) -> tuple[s.Pace | None, s.Expression | None, s.Expression | None]:
    """Pace, condition and expression of a clause; its keyword has been read."""
    start = cursor.peek(-1).span
    pace = parse_pace(cursor)
    found: dict[str, s.Expression] = {}
    while cursor.at_word("when", "with", "if", "unless", "filter"):
        part = cursor.advance()
        if part.value not in ("when", "with"):
            hint = "write when" if part.value != "unless" else "write when !(...)"
            raise cursor.fail(f"'{part.value}' was the keyword of older versions", part.span, hint)
        if part.value in found:
            raise cursor.fail(f"a second '{part.value}'", part.span, f"{word} has one '{part.value}'")
        if word == "close" and part.value == "with":
            raise cursor.fail("'close' has no 'with'", part.span, "write close when condition")
        found[part.value] = parse_expression(cursor)
    if pace is None and not found:
        what = ["'@'", "'when'"] + ["'with'"] * (word != "close")
        near = cursor.near(["when", "with"])
        raise cursor.expected(what, f"did you mean {near}?" if near else None) if word else cursor.fail("", start)
    return pace, found.get("when"), found.get("with")
