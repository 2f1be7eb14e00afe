"""Every message that a wrong workload gets, compared letter by letter.

Each file in tests/language/errors holds a workload, a line of dashes, and what `hamlet check` has to say about it. A
first line ``-- columns: speed DOUBLE, ...`` checks against an input with these columns, a whole-second column ``time``
and a column ``type``. After a change of wording run ``HAMLET_WRITE_ERRORS=1 pytest tests/language/test_errors.py`` and
read the difference.
"""

from __future__ import annotations

import os
import pickle
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hamlet
from hamlet.errors import Diagnostic, HamletError, OptionError, WorkloadError, in_order, near_miss, one_of
from hamlet.language.analysis import analyse_text
from hamlet.language.query import AttributeType, Span
from hamlet.language.schema import Clock, Schema
from hamlet.language.typecheck import check

FOLDER = Path(__file__).parent / "errors"
CASES = sorted(FOLDER.glob("*.txt"))
SEPARATOR = "\n----\n"
REWRITE = "HAMLET_WRITE_ERRORS" in os.environ


def schema_of(text: str) -> Schema | None:
    first = text.split("\n", 1)[0]
    if not first.startswith("-- columns: "):
        return None
    pairs = [column.split() for column in first.removeprefix("-- columns: ").split(",")]
    columns: dict[str, AttributeType | None] = {name: AttributeType[kind] for name, kind in pairs}
    return Schema(columns, Clock("time", "s", pa.int64()))


def messages(text: str, source: str) -> str:
    """All that is said about a workload, as the command line prints it."""
    try:
        analysis = analyse_text(text, source)
    except WorkloadError as error:
        return str(error)
    found = list(analysis.warnings)
    schema = schema_of(text)
    if schema is not None:
        found += check(analysis, schema)
    return "\n".join(each.format() for each in in_order(found))


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_golden_message(path: Path) -> None:
    text, expected = path.read_text("utf-8").split(SEPARATOR)
    said = messages(text, f"{path.stem}.sase")
    if REWRITE:
        path.write_text(f"{text}{SEPARATOR}{said}\n", "utf-8")
        return
    assert said == expected.rstrip("\n")
    assert said, "a golden file without a message tests nothing"


def test_there_are_enough_golden_messages() -> None:
    assert len(CASES) >= 100


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_messages_speak_the_users_language(path: Path) -> None:
    said = path.read_text("utf-8").split(SEPARATOR)[1]
    for word in ("Kind.", "Token(", "None", "Traceback", "Span(", "object at"):
        assert word not in said
    for line in said.splitlines():
        if line.startswith("hint: "):
            assert not line.endswith("."), "hints have no full stop"


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_single_mistakes_get_few_messages(path: Path) -> None:
    """One mistake is not reported five times."""
    said = path.read_text("utf-8").split(SEPARATOR)[1]
    found = re.findall(r"^\w+\.sase:\d+:\d+: ", said, re.MULTILINE)
    assert path.stem.startswith("many") or 1 <= len(found) <= 6


def test_the_message_of_the_readme() -> None:
    text = "q1: RETURN COUNT(*)\n    PATTERN SEQ(Request R, Travel T+ WITHIN 10 min"
    message, hint = "expected ')' or ',' after 'Travel T+'", "close SEQ( before WITHIN"
    diagnostic = Diagnostic(message, Span(57, 63), hint, text=text)
    assert (diagnostic.line, diagnostic.column) == (2, 38)
    assert diagnostic.format() == (
        "<workload>:2:38: expected ')' or ',' after 'Travel T+'\n"
        "        PATTERN SEQ(Request R, Travel T+ WITHIN 10 min\n"
        "                                         ^^^^^^\n"
        "hint: close SEQ( before WITHIN"
    )


def test_carets_stand_under_wide_letters_and_tabs() -> None:
    text = "\t'東京' x"
    lines = Diagnostic("wrong", Span(6, 7), text=text).format().splitlines()
    assert lines[1] == "     '東京' x"
    assert lines[2] == "    " + " " * 8 + "^"


def test_long_lines_are_cut_around_the_place() -> None:
    text = "a" * 400 + " here " + "b" * 400
    lines = Diagnostic("wrong", Span(401, 405), text=text).format().splitlines()
    assert len(lines[1]) < 170
    assert lines[1][lines[2].index("^") :].startswith("here")
    assert lines[2].count("^") == 4


def test_a_span_over_several_lines_is_marked_to_the_end_of_the_first() -> None:
    text = "one two\nthree"
    assert Diagnostic("wrong", Span(4, 13), text=text).format().splitlines()[2] == "        ^^^"


def test_an_error_at_the_end_of_the_text_has_a_caret_behind_it() -> None:
    assert Diagnostic("wrong", Span(3, 3), text="abc").format().splitlines()[2] == "       ^"


def test_workload_errors_come_in_the_order_of_the_text_and_once() -> None:
    late, early = Diagnostic("late", Span(5, 6), text="abcdefg"), Diagnostic("early", Span(1, 2), text="abcdefg")
    error = WorkloadError([late, early, late])
    assert [each.message for each in error.diagnostics] == ["early", "late"]
    assert isinstance(error, HamletError)


def test_workload_errors_survive_pickling() -> None:
    error = WorkloadError([Diagnostic("wrong", Span(0, 1), "a hint", text="abc", source="x.sase")])
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_near_misses() -> None:
    assert near_miss("sped", ["speed", "driver"]) == "speed"
    assert near_miss("SPEED", ["speed", "driver"]) == "speed"
    assert near_miss("zzz", ["speed", "driver"]) is None
    assert near_miss("zzz", []) is None


def test_lists_in_words() -> None:
    assert [one_of([]), one_of(["a"]), one_of(["a", "b"]), one_of(["a", "b", "c"])] == ["", "a", "a or b", "a, b or c"]


@pytest.mark.parametrize("given", ["rides.sase", None, b"RETURN"])
def test_what_is_no_workload_is_refused_everywhere(given: Any) -> None:
    message = f"the workload is a {type(given).__name__}; read it first, with hamlet.Workload.from_file"
    for use in (lambda: hamlet.run(given, []), lambda: hamlet.Engine(given), lambda: hamlet.symbolic(given, [])):
        with pytest.raises(OptionError, match=message):
            use()
    if not isinstance(given, str):
        with pytest.raises(OptionError, match="the text of a workload is a str, not a "):
            hamlet.Workload.parse(given)


def test_every_error_of_a_user_is_public() -> None:
    named = {name for name in dir(hamlet.errors) if name.endswith("Error")}
    assert named <= set(hamlet.__all__)
