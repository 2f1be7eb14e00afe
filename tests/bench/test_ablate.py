"""``python -m bench ablate``: every path that a case uses is left out once, and rows stay the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from bench.__main__ import main
from bench.ablate import CASES, ablate, lines, table, variants
from hamlet.planner.paths import ALWAYS, FEATURES, OPERATORS


def test_variants_leave_out_one_path_each() -> None:
    found = variants()
    assert set(found) == {"", *OPERATORS, *FEATURES} - set(ALWAYS)
    assert found["simd"]["operators"] == [name for name in OPERATORS if name != "simd"]
    assert list(variants(["index"])) == ["", "index"]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", CASES)
def test_each_case(name: str, request: pytest.FixtureRequest) -> None:
    if name.split(",")[0] in ("stock", "smart home", "taxi"):
        request.getfixturevalue(name.split(",")[0].replace(" ", "") + "_file")  # skips where it is not there
    found = ablate(CASES[name], scale=0.005, rounds=1)
    assert found["without"]
    assert not set(found["without"]) & set(found["not used"])
    assert all(ratio["low"] <= ratio["ratio"] <= ratio["high"] for ratio in found["without"].values())
    assert len(list(lines(found))) == 1 + len(found["without"])
    assert len(list(table([found]))) == 2 + len(found["without"])


def test_the_command(tmp_path: Path) -> None:
    output = tmp_path / "found.json"
    arguments = [
        "ablate",
        "many groups",
        "--scale",
        "0.01",
        "--rounds",
        "2",
        "--path",
        "complete_window",
        "--output",
        str(output),
    ]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    assert "without complete_window" in result.output
    assert '"ratio"' in output.read_text(encoding="utf-8")
