"""Colours for ``.sase``, ``.mfotl`` and ``.lola`` files: Pygments lexers and TextMate grammars, from one list of words.

Pygments finds the lexers by the entry points of this package: documents that name a block ``sase``, ``mfotl`` or
``lola`` are coloured. Editors read the TextMate grammars that `textmate` makes (in the repository: ``editors/``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from pygments.lexer import RegexLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text

__all__ = ["LANGUAGES", "Language", "LolaLexer", "MfotlLexer", "SaseLexer", "textmate"]


@dataclass(frozen=True)
class Language:
    """What the words and signs of a language are.

    Attributes
    ----------
    name, extension, about : str
    keywords, functions, types, constants : tuple of str
    ignore_case : bool
        Whether keywords may be written in any case.
    comments : tuple of str
        Regular expressions.
    strings : tuple of str
        Regular expressions.
    names : tuple of str
        Regular expressions of names in quotes.
    operators : str
        A regular expression.
    number : str
        A regular expression.
    """

    name: str
    extension: str
    about: str
    keywords: tuple[str, ...]
    functions: tuple[str, ...]
    types: tuple[str, ...]
    constants: tuple[str, ...]
    ignore_case: bool
    comments: tuple[str, ...]
    strings: tuple[str, ...]
    names: tuple[str, ...]
    operators: str
    number: str

    @property
    def rules(self) -> list[tuple[str, Any, str]]:
        """Regular expressions in the order in which they are tried, with Pygments' token and TextMate's scope."""
        case = "(?i)" if self.ignore_case else ""
        found: list[tuple[str, Any, str]] = [(each, Comment, "comment") for each in self.comments]
        found += [(each, String, "string.quoted") for each in self.strings]
        found += [(each, Name, "variable.other") for each in self.names]
        found.append((self.number, Number, "constant.numeric"))
        words = (
            (self.constants, Keyword.Constant, "constant.language"),
            (self.types, Keyword.Type, "support.type"),
            (self.functions, Name.Builtin, "support.function"),
            (self.keywords, Keyword, "keyword.control"),
        )
        for each, token, scope in words:
            if each:
                options = "|".join(re.escape(word) for word in sorted(each, key=lambda word: (-len(word), word)))
                found.append((rf"{case}\b(?:{options})\b", token, scope))
        found.append((self.operators, Operator, "keyword.operator"))
        return found


SASE = Language(
    "sase",
    "sase",
    "Hamlet's queries: event trends after SASE",
    ("RETURN", "PATTERN", "WHERE", "GROUP-BY", "GROUPBY", "GROUP BY", "WITHIN", "SLIDE", "OFFSET", "SPAN", "SESSION",
     "SEMANTICS", "HAVING", "TOP", "BY", "ASC", "DESC", "EVENT", "AS", "SEQ", "NOT", "OR", "AND", "IN", "BETWEEN", "IS",
     "NULL", "NEXT", "PREV", "DISTINCT"),
    ("COUNT", "SUM", "AVG", "MIN", "MAX", "LOG2"),
    ("INT", "DOUBLE", "STRING", "BOOLEAN", "TIMESTAMP", "DURATION"),
    ("TRUE", "FALSE"),
    True,
    (r"--[^\n]*",),
    (r"'[^']*'",),
    (r'"[^"]*"',),
    r"<>|!=|<=|>=|==|[-+*/%=<>?|&≠≤≥∨∧]",
    r"\b[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?(?:\s*(?:ms|s|sec|seconds?|min|minutes?|h|hours?|d|days?|w|weeks?)\b)?",
)  # fmt: skip
MFOTL = Language(
    "mfotl",
    "mfotl",
    "MonPoly's policies: metric first-order temporal logic",
    ("NOT", "AND", "OR", "IMPLIES", "EQUIV", "EXISTS", "FORALL", "PREV", "PREVIOUS", "NEXT", "ONCE", "EVENTUALLY",
     "SOMETIMES", "ALWAYS", "PAST_ALWAYS", "HISTORICALLY", "SINCE", "UNTIL", "TRIGGER", "RELEASE", "MATCHP",
     "MATCHF", "BACKWARD", "FORWARD", "LET", "LETPAST", "IN", "MOD", "SUBSTRING", "MATCHES"),
    ("CNT", "SUM", "AVG", "MIN", "MAX", "MED", "f2i", "i2f", "i2s", "s2i", "f2s", "s2f", "DAY_OF_MONTH", "MONTH",
     "YEAR", "FORMAT_DATE"),
    (),
    ("TRUE", "FALSE"),
    False,
    (r"#[^\n]*", r"\(\*[\s\S]*?\*\)"),
    (r'r?"[^"]*"',),
    (),
    r"<-|<=|>=|<\||\|>|[=<>+*/?◁▷∧∨¬→↔∃∀●○⧫◊■□-]",
    r"\b[0-9]+(?:\.[0-9]+)?[smhd]?\b",
)  # fmt: skip
LOLA = Language(
    "lola",
    "lola",
    "RTLola's stream equations",
    ("import", "constant", "input", "output", "trigger", "spawn", "eval", "close", "when", "with", "if", "then", "else",
     "not", "and", "or", "implies"),
    ("offset", "defaults", "hold", "get", "aggregate", "over", "over_exactly", "over_discrete", "over_exactly_discrete",
     "using", "cast", "widen", "format", "delta", "matches", "last", "by", "to"),
    ("Bool", "String", "Bytes", "Float32", "Float64", "Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32",
     "UInt64"),
    ("true", "false"),
    False,
    (r"//[^\n]*", r"/\*[\s\S]*?\*/"),
    (r'"(?:[^"\\]|\\.)*"',),
    (),
    r":=|->|\*\*|&&|\|\||<<|>>|<=|>=|==|!=|[-+*/%!=<>&|^~@?¬∧∨→]",
    r"\b[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?:Hz|mHz|kHz|ns|us|ms|s|min|h|d)?\b",
)  # fmt: skip
LANGUAGES = (SASE, MFOTL, LOLA)


def _tokens(language: Language) -> dict[str, list[tuple[str, Any]]]:
    rules: list[tuple[str, Any]] = [(r"\s+", Text)]
    rules += [(expression, token) for expression, token, _ in language.rules]
    rules += [(r"[^\W\d]\w*", Name), (r"[()\[\]{},;:.]", Punctuation), (r".", Text)]
    return {"root": rules}


class SaseLexer(RegexLexer):  # type: ignore[misc]  # Pygments has no types
    """Pygments' lexer of queries."""

    name = "SASE"
    aliases: ClassVar[list[str]] = ["sase"]
    filenames: ClassVar[list[str]] = ["*.sase"]
    tokens: ClassVar[dict[str, Any]] = _tokens(SASE)


class MfotlLexer(RegexLexer):  # type: ignore[misc]  # Pygments has no types
    """Pygments' lexer of policies."""

    name = "MFOTL"
    aliases: ClassVar[list[str]] = ["mfotl"]
    filenames: ClassVar[list[str]] = ["*.mfotl"]
    tokens: ClassVar[dict[str, Any]] = _tokens(MFOTL)


class LolaLexer(RegexLexer):  # type: ignore[misc]  # Pygments has no types
    """Pygments' lexer of stream equations."""

    name = "RTLola"
    aliases: ClassVar[list[str]] = ["lola", "rtlola"]
    filenames: ClassVar[list[str]] = ["*.lola"]
    tokens: ClassVar[dict[str, Any]] = _tokens(LOLA)


def textmate(language: Language) -> dict[str, Any]:
    """The TextMate grammar of a language: the content of ``editors/NAME.tmLanguage.json``."""
    return {
        "name": language.about,
        "scopeName": f"source.{language.name}",
        "fileTypes": [language.extension],
        "patterns": [
            {"name": f"{scope}.{language.name}", "match": expression.replace("[\\s\\S]*?", ".*?")}
            for expression, _, scope in language.rules
        ],
    }
