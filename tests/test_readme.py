"""What README.md shows is what happens: its example is read out of it and run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

README = (Path(__file__).resolve().parent.parent / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def block_after(text: str) -> str:
    """The first code block behind a text."""
    found = re.compile(r"^```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL).search(README, README.index(text))
    assert found is not None
    return found[1]


def write_example(folder: Path) -> None:
    for name in ("rides.csv", "rides.sase"):
        (folder / name).write_text(block_after(f"`{name}`:"), encoding="utf-8")


def test_the_command_prints_what_is_shown(tmp_path: Path) -> None:
    write_example(tmp_path)
    command, *shown = block_after("The answer:").splitlines()
    assert command.startswith("$ hamlet ")
    process = subprocess.run(
        [sys.executable, "-m", "hamlet", *command.split()[2:]],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (process.returncode, process.stderr) == (0, "")
    assert process.stdout.splitlines() == shown


def test_the_python_lines_run(tmp_path: Path) -> None:
    write_example(tmp_path)
    [code] = [text for language, text in BLOCKS if language == "python"]
    process = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert process.stderr == ""
    assert "'count': 7" in process.stdout


def test_a_hundred_travels_have_31_digits(tmp_path: Path) -> None:
    write_example(tmp_path)
    with (tmp_path / "rides.csv").open("w", encoding="utf-8") as events:
        events.write("time,type,rider\n0,Request,7\n")
        events.writelines(f"{place},Travel,7\n" for place in range(1, 101))
    workload = (tmp_path / "rides.sase").read_text(encoding="utf-8").replace("10 s", "10 min")
    (tmp_path / "rides.sase").write_text(workload, encoding="utf-8")
    process = subprocess.run(
        [sys.executable, "-m", "hamlet", "run", "rides.sase", "--input", "rides.csv", "--output", "-", "--quiet"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert f'"count": {2**100 - 1},' in process.stdout
    assert len(str(2**100 - 1)) == 31
