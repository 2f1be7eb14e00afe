"""MonPoly's own habits: its lines to the byte, commands and escapes in logs, states in files, the first violation."""

from __future__ import annotations

from pathlib import Path

import pytest

from hamlet.cli import main
from hamlet.policies.syntax.parser import parse_formula
from hamlet.policies.syntax.printing import print_formula

SIGNATURE = "p(:int, b: int) q(string) e()\n"
LOG = r"""> set_slicer {({(0, ())}, {(1)}, {(2)})} <
@1 p(2,4)(1,5) q("a\"b")(c:d)
@2
@3 e() > get_pos <
@9 p(1,1); @10 q("x\\y")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "s.sig").write_text(SIGNATURE)
    (tmp_path / "l.log").write_text(LOG)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def monitor(formula: str, *arguments: str, log: str = "l.log") -> int:
    Path("f.mfotl").write_text(formula)
    return main(["monitor", "f.mfotl", "-s", "s.sig", "-i", log, "-o", "-", "-q", *arguments])


@pytest.mark.parametrize(
    ("formula", "arguments", "lines"),
    [
        ("p(x,y)", [], "@1 (time point 0): (1,5) (2,4)\n@9 (time point 3): (1,1)\n"),
        (
            "p(x,y)",
            ["--every-time-point"],
            "@1 (time point 0): ((1,5),(2,4))\n@2 (time point 1): ()\n@3 (time point 2): ()\n"
            "@9 (time point 3): ((1,1))\n@10 (time point 4): ()\n",
        ),
        ("y > 4 AND p(x,y)", ["--every-time-point", "--stop-at-first"], "@1 (time point 0): ((5,1))\n"),
        ("p(x,y)", ["--stop-at-first"], "@1 (time point 0): (1,5)\n"),
        ("EVENTUALLY[0,5] e()", [], "".join(f"@{t} (time point {t - 1}): true\n" for t in (1, 2, 3))),
        (
            "EVENTUALLY[0,1] e()",
            ["--every-time-point"],
            "@1 (time point 0): false\n@2 (time point 1): true\n@3 (time point 2): true\n"
            "@9 (time point 3): false\n@10 (time point 4): false\n",
        ),
        ("EVENTUALLY[0,8] e()", ["--every-time-point", "--open-end"], "@1 (time point 0): true\n"),
        ("q(x)", [], '@1 (time point 0): ("a\\"b") ("c:d")\n@10 (time point 4): ("x\\\\y")\n'),
        (r'q(x) AND x = "a\"b"', [], '@1 (time point 0): ("a\\"b")\n'),
    ],
)
def test_lines_are_monpolys(
    folder: Path, capsys: pytest.CaptureFixture[str], formula: str, arguments: list[str], lines: str
) -> None:
    assert folder
    assert monitor(formula, "--output-format", "monpoly", *arguments) == 0
    assert capsys.readouterr().out == lines


def test_commands_of_a_log_are_passed_over_with_a_note(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["monitor", "f.mfotl", "-s", "s.sig", "-i", "l.log"]) == 2  # no such policy
    (folder / "f.mfotl").write_text("e()")
    assert main(["monitor", "f.mfotl", "-s", "s.sig", "-i", "l.log"]) == 0
    assert "2 commands of the log (> ... <) passed over" in capsys.readouterr().err
    assert main(["monitor", "f.mfotl", "-s", "s.sig", "-i", "l.log", "--checkpoint", "place", "-o", "out"]) == 0
    assert "2 commands of the log (> ... <) passed over" in capsys.readouterr().err
    (folder / "open.log").write_text("@1 e()\n> stop")
    assert monitor("e()", log="open.log") == 2
    assert "open.log:2:1: the command that begins with '>' is not closed" in capsys.readouterr().err


def test_rows_can_fail_a_run(folder: Path) -> None:
    assert folder
    assert monitor("e()", "--fail-on-rows") == 3
    assert monitor("e() AND PREV e()", "--fail-on-rows") == 0
    assert monitor("e() AND PREV e()", "--fail-on-rows", "--output-format", "monpoly", "--every-time-point") == 0


@pytest.mark.parametrize(
    "formula",
    [
        "p(x,y) AND ONCE[2,6] (EXISTS z. p(z,y))",
        "e() AND EVENTUALLY[0,4] e()",
        "LETPAST d(x,y) = p(x,y) OR PREV d(x,y) IN d(x,y)",
        "MATCHP p(x,y)? . . .*",
        "MATCHF[0,6] e()? . . .* p(x,y)?",
    ],
)
@pytest.mark.parametrize("cut", range(6))
def test_a_state_in_a_file_goes_on(folder: Path, capsys: pytest.CaptureFixture[str], formula: str, cut: int) -> None:
    points = ["@1 p(2,4)(1,5)", "@2 p(1,4)", "@3 e()", "@4 e() p(3,4)", "@9 p(1,1)"]
    (folder / "whole.log").write_text("\n".join(points))
    assert monitor(formula, log="whole.log") == 0
    wanted = capsys.readouterr().out
    (folder / "one.log").write_text("\n".join(points[:cut]))
    (folder / "two.log").write_text("\n".join(points[cut:]))
    assert monitor(formula, "--save", "state", log="one.log") == 0
    assert monitor(formula, "--load", "state", log="two.log") == 0
    assert capsys.readouterr().out == wanted


def test_a_state_is_of_its_policy_and_its_time(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert monitor("e()", "--save", "state") == 0
    assert monitor("ONCE e()", "--load", "state") == 2
    assert "they differ where" in capsys.readouterr().err
    assert monitor("e()", "--load", "state") == 2
    assert "the input begins at time 1, and what was loaded ends at 10" in capsys.readouterr().err
    (folder / "state").write_bytes(b"no state")
    assert monitor("e()", "--load", "state") == 2
    assert monitor("e()", "--load", "nowhere") == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("text", [r'q("a\"b")', r'q("a\\")', "q('a\"b')", r'q("a\n")', r"q('\"')"])
def test_escapes_in_formulas_are_printed_as_they_are_read(text: str) -> None:
    made, _ = parse_formula(text)
    assert parse_formula(print_formula(made))[0] == made
