"""docs/errors.md, the gallery of errors, says what is said (`tests.documents.gallery`)."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.documents.gallery import ERRORS, IN_WORKLOADS, PAGE, SECTIONS, page
from tests.documents.runner import lines_of


def test_the_page_is_current(tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="a message about Java comes after pyspark is found")
    made = page(tmp_path)
    if "HAMLET_WRITE_ERRORS" in os.environ:
        PAGE.write_text(re.sub(r"(?<=, )\d+\.\d\d s$", "0.02 s", made, flags=re.MULTILINE), encoding="utf-8")
    assert lines_of(made) == lines_of(PAGE.read_text(encoding="utf-8"))


def test_forty_mistakes_and_more_each_with_an_answer() -> None:
    text = PAGE.read_text(encoding="utf-8")
    entries = re.split(r"^### ", text, flags=re.MULTILINE)[1:]
    assert len(entries) >= 80
    assert sum(map(len, IN_WORKLOADS.values())) + sum(map(len, SECTIONS.values())) == len(entries)
    for entry in entries:
        said = re.findall(r"```text\n(.*?)```", entry, re.DOTALL)[-1]
        assert said.strip(), entry
        for word in ("Traceback", "this is a bug", "object at 0x", "NoneType"):
            assert word not in said, entry


def test_what_the_page_must_have() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for title in (
        "all events in 1970",
        "column taken for the type",
        "A late event",
        "No Java",
        "full of typos",
    ):
        assert title in text


def test_every_golden_file_that_is_named_is_there() -> None:
    for names in IN_WORKLOADS.values():
        for name in names:
            assert (ERRORS / f"{name}.txt").is_file()
