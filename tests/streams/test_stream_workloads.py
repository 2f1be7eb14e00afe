"""Every specification in workloads/: it is accepted, its columns exist, and it explains itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from hamlet.streams.explain import explain
from hamlet.streams.input_check import column_errors
from hamlet.streams.specification import Specification
from tests.datasets.test_workloads import streams
from tests.documents.runner import ROOT, blocks

FOLDER = Path(__file__).resolve().parents[2] / "workloads"
FILES = sorted(FOLDER.glob("*.lola"))
OWN = {"shop", "views", "reviews"}  # specifications of streams that have no dataset here


def test_there_is_a_specification_for_each_stream() -> None:
    alike = {"stock50", "stock_chains"}  # the columns of stock
    assert {file.stem for file in FILES} >= (set(streams()) - alike) | OWN


@pytest.mark.parametrize("page", ["streams.md", "streams-memory.md"])
def test_specifications_of_the_documents(page: str) -> None:
    shown = [block for block in blocks(ROOT / "docs" / page) if block.language == "lola"]
    assert shown
    for block in shown:
        Specification.parse(block.text, page)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_specifications(file: Path) -> None:
    if file.stem not in streams() and file.stem not in OWN:
        pytest.skip("not of a stream")
    specification = Specification.from_file(file)
    assert len(specification.program.triggers) >= 1
    if file.stem in streams() and file.stem != "trend_alarm":  # which reads the rows of queries
        table, _ = streams()[file.stem]
        columns = {field.name: field.type for field in table.schema}
        assert [each.format() for each in column_errors(specification.program, columns)] == []
    assert "order of a step" in explain(specification)
