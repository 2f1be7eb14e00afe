"""Signatures: the predicates that formulas may use, from the text of a ``.sig`` file.

Grammar::

    signature = {name "(" [argument {"," argument}] ")"}
    argument  = [[attribute] ":"] ("int" | "float" | "string" | "bool")
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast, get_args

from hamlet.errors import NOWHERE, Span, near_miss, one_of
from hamlet.frontend.cursor import Cursor, TooManyProblemsError, UnreadableError
from hamlet.frontend.files import text_of_file
from hamlet.frontend.lexer import Kind, Token, tokenize
from hamlet.frontend.reports import Reports
from hamlet.policies.syntax.diagnostics import PolicyError
from hamlet.policies.syntax.formula import Type
from hamlet.policies.syntax.tokens import SIGNATURE

TYPES: tuple[str, ...] = get_args(Type)


@dataclass(frozen=True, slots=True)
class PredicateSchema:
    """One predicate.

    Attributes
    ----------
    name : str
    types : tuple of {'int', 'float', 'string', 'bool'}
        Of its arguments.
    attributes : tuple of str or None
        The arguments' names, which are the columns of tables; None where the signature gives no name.
    """

    name: str
    types: tuple[Type, ...]
    attributes: tuple[str | None, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    @property
    def arity(self) -> int:
        """How many arguments it takes."""
        return len(self.types)

    def __str__(self) -> str:
        parts = (
            each if name is None else f"{name}: {each}" for name, each in zip(self.attributes, self.types, strict=True)
        )
        return f"{self.name}({', '.join(parts)})"


# What every stream has: the number of the time-point, its time-stamp, and both.
BUILT_IN = {
    ("tp", 1): PredicateSchema("tp", ("int",), ("i",)),
    ("ts", 1): PredicateSchema("ts", ("int",), ("t",)),
    ("tpts", 2): PredicateSchema("tpts", ("int", "int"), ("i", "t")),
}


class Signature:
    """The predicates of a stream; two of one name and different arity are two predicates.

    Parameters
    ----------
    predicates : iterable of PredicateSchema

    Examples
    --------
    >>> signature = Signature.parse("withdraw(user: string, amount: int)")
    >>> signature["withdraw", 2].types
    ('string', 'int')
    """

    def __init__(self, predicates: tuple[PredicateSchema, ...], text: str = "") -> None:
        self.text = text
        self._predicates = {(each.name, each.arity): each for each in predicates}

    @classmethod
    def parse(cls, text: str, source: str = "<signature>") -> Signature:
        """The signature that a text describes.

        Raises
        ------
        PolicyError
            With every mistake of the text.
        """
        reports = Reports(text, source)
        predicates: tuple[PredicateSchema, ...] = ()
        with contextlib.suppress(TooManyProblemsError):
            predicates = tuple(_Reader(tokenize(SIGNATURE, reports), reports).predicates())
        if reports.errors:
            raise PolicyError(reports.errors)
        return cls(predicates, text)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Signature:
        """The signature that a file describes.

        Raises
        ------
        OptionError
            If the file cannot be read.
        PolicyError
            As `parse`.
        """
        return cls.parse(text_of_file(path, "signature"), os.fspath(path))

    def __getitem__(self, key: tuple[str, int]) -> PredicateSchema:
        return self._predicates[key]

    def get(self, name: str, arity: int) -> PredicateSchema | None:
        """The predicate of this name and arity, None where there is none."""
        return self._predicates.get((name, arity))

    def __contains__(self, key: object) -> bool:
        return key in self._predicates

    def __iter__(self) -> Iterator[PredicateSchema]:
        return iter(self._predicates.values())

    def __len__(self) -> int:
        return len(self._predicates)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Signature) and self._predicates == other._predicates

    def __hash__(self) -> int:
        return hash(frozenset(self._predicates.values()))

    def named(self, name: str) -> list[PredicateSchema]:
        """The predicates of this name, of whatever arity."""
        return [each for each in self if each.name == name]

    def __str__(self) -> str:
        return "\n".join(str(each) for each in self)

    def __repr__(self) -> str:
        return f"Signature.parse({str(self)!r})"


class _Reader(Cursor):
    """Tokens of a signature with a current place."""

    def sentence(self, what: str, token: Token, _after: Span | None) -> str:
        """The message that something else should stand where a token is."""
        return f"expected {what}, " + ("the text ends here" if token.kind is Kind.END else f"found '{token.raw[:30]}'")

    def predicates(self) -> Iterator[PredicateSchema]:
        """The declarations that can be read; behind a mistake it goes on at the next line."""
        seen: set[tuple[str, int]] = set()
        while self.peek().kind is not Kind.END:
            start = self.peek()
            try:
                found = self._predicate()
            except UnreadableError:
                self._skip(start)
                continue
            if (found.name, found.arity) in seen:
                self.report(f"{found.name} with {found.arity} arguments is declared twice", found.span)
                continue
            seen.add((found.name, found.arity))
            yield found
            if self.at(";"):
                self.index += 1

    def _skip(self, start: Token) -> None:
        """Go to the first token of a later line."""
        if self.peek() is start:
            self.index += 1
        while self.peek().kind is not Kind.END:
            if "\n" in self.reports.text[self._tokens[self.index - 1].span.end : self.peek().span.start]:
                return
            self.index += 1

    def _predicate(self) -> PredicateSchema:
        name = self.peek()
        if name.kind is not Kind.NAME:
            raise self.expected(["the name of a predicate"], "name(type, ...) or name(attribute: type, ...)")
        self.index += 1
        if self.at("{") or self.peek().kind is Kind.NAME:
            raise self.expected([f"'(' after '{name.value}'"], "records are not supported; declare name(type, ...)")
        if not self.at("("):
            raise self.expected([f"'(' after '{name.value}'"], f"{name.value}(int, string)")
        self.index += 1
        types: list[Type] = []
        names: list[str | None] = []
        while not self.at(")"):
            attribute, type = self._argument()
            if attribute is not None and attribute.value in names:
                self.report(f"'{attribute.value}' names two arguments of {name.value}", attribute.span)
            names.append(None if attribute is None else attribute.value)
            types.append(type)
            if self.at(","):
                self.index += 1
            elif not self.at(")"):
                raise self.expected([f"',' or ')' in the arguments of '{name.value}'"])
        close = self.peek()
        self.index += 1
        return PredicateSchema(name.value, tuple(types), tuple(names), name.span.to(close.span))

    def _argument(self) -> tuple[Token | None, Type]:
        attribute = None
        if self.at(":"):  # an attribute without a name
            self.index += 1
        elif self.peek().kind in (Kind.NAME, Kind.STRING) and self._tokens[self.index + 1].raw == ":":
            attribute = self.peek()
            self.index += 2
        token = self.peek()
        if token.kind is not Kind.NAME:
            raise self.expected([f"a type: {one_of(TYPES)}"])
        if token.value not in TYPES:
            near = near_miss(token.value, TYPES)
            hint = f"did you mean {near}?" if near else f"types are {one_of(TYPES, 'and')}"
            self.report(f"'{token.value}' is not a type", token.span, hint)
        self.index += 1
        return attribute, cast(Type, token.value)
