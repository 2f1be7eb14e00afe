"""Colours for the three notations: the lexers are found by name, and the grammars of editors are current."""

from __future__ import annotations

import json
import os
import re
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from pygments import lex
from pygments.token import Comment, Error, Keyword, Name, Number, String

from hamlet.highlight import LANGUAGES, Language, LolaLexer, MfotlLexer, SaseLexer, textmate

ROOT = Path(__file__).resolve().parents[2]

SAMPLES = {
    SaseLexer: (
        "-- a comment\nq1: RETURN k, COUNT(*) PATTERN SEQ(A, \"page-view\" v+) where v.x <> 'it''s' WITHIN 30 min;",
        {(Comment, "-- a comment"), (Keyword, "RETURN"), (Keyword, "where"), (Name, '"page-view"'), (Number, "30 min"),
         (Name.Builtin, "COUNT")},
    ),
    MfotlLexer: (
        '# why\nALWAYS FORALL u. withdraw(u, 1000) IMPLIES EVENTUALLY[0,1d] report(u, "x")',
        {(Comment, "# why"), (Keyword, "ALWAYS"), (Keyword, "FORALL"), (Number, "1d"), (String, '"x"'),
         (Name, "report")},
    ),
    LolaLexer: (
        '// why\noutput a: Float64 @1Hz := b.aggregate(over: 5s, using: sum).defaults(to: 0.0)\ntrigger a > 1 "high"',
        {(Comment, "// why"), (Keyword, "output"), (Keyword.Type, "Float64"), (Number, "1Hz"), (Number, "5s"),
         (Keyword, "trigger"), (String, '"high"')},
    ),
}  # fmt: skip


@pytest.mark.parametrize("lexer", SAMPLES, ids=lambda lexer: lexer.name)
def test_a_sample(lexer: type) -> None:
    text, expected = SAMPLES[lexer]
    found = [(token, value) for token, value in lex(text, lexer())]
    assert expected <= set(found)
    assert "".join(value for _, value in found) == text + "\n"
    assert not any(token is Error for token, _ in found)


def test_all_workloads_are_read() -> None:
    for path in sorted((ROOT / "workloads").glob("*.sase")):
        text = path.read_text(encoding="utf-8")
        assert "".join(value for _, value in lex(text, SaseLexer(ensurenl=False, stripnl=False))) == text


def test_pygments_finds_the_lexers() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = project["entry-points"]["pygments.lexers"]
    assert set(named) == {"sase", "mfotl", "lola"}
    for alias, place in named.items():
        module, _, name = place.partition(":")
        assert alias in getattr(import_module(module), name).aliases


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.name)
def test_the_grammars_of_editors_are_current(language: Language) -> None:
    """After a change run ``HAMLET_WRITE_GRAMMARS=1 pytest tests/cli/test_highlight.py``."""
    path = ROOT / "editors" / f"{language.name}.tmLanguage.json"
    text = json.dumps(textmate(language), indent=2, ensure_ascii=False) + "\n"
    if "HAMLET_WRITE_GRAMMARS" in os.environ:
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text
    for each in json.loads(text)["patterns"]:
        re.compile(each["match"])
