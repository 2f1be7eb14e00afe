"""What README.md shows is what happens: its files, commands and lines are run, its links lead somewhere."""

from __future__ import annotations

import itertools
import re
import shlex
import subprocess
import sys
from pathlib import Path

import hamlet
from datasets.__main__ import main as streams
from hamlet.cli import submit
from tests.documents.runner import ROOT, Reader, blocks

README = ROOT / "README.md"
TEXT = README.read_text(encoding="utf-8")


def test_commands_and_lines_print_what_is_shown(tmp_path: Path) -> None:
    assert Reader(README, tmp_path).read() == 6  # the workload, the command, Python lines twice, their outputs


def test_the_command_runs_in_a_process_of_its_own(tmp_path: Path) -> None:
    for block in blocks(README):
        if block.title is not None:
            (tmp_path / block.title).write_text(block.text, encoding="utf-8")
    [shown] = [block.text for block in blocks(README) if block.language == "console" and block.run]
    command, *lines = shown.splitlines()
    process = subprocess.run(
        [sys.executable, "-m", "hamlet", *command.split()[2:]],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (process.returncode, process.stderr) == (0, "")
    assert process.stdout.splitlines() == lines


def test_a_hundred_travels_have_31_digits(tmp_path: Path) -> None:
    events = {"time": range(101), "type": ["Request"] + ["Travel"] * 100, "rider": [7] * 101}
    [text] = [block.text for block in blocks(README) if block.title == "rides.sase"]
    [row] = hamlet.run(hamlet.Workload.parse(text.replace("10 s", "10 min")), events).rows()
    assert row["count"] == 2**100 - 1
    assert len(str(row["count"])) == 31


def test_targets_of_make_that_are_named_are_there() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = re.findall(r"\bmake (\w+)", TEXT)
    assert named
    for target in named:
        if target != "installs":
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_commands_of_the_demo_are_commands() -> None:
    """`make demo` takes a minute or two and a JVM: here its lines are read as the programs would read them."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    [recipe] = re.findall(r"^demo:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    made: dict[str, hamlet.Workload] = {}
    for line in recipe.replace("$(DEMO)", "demo").splitlines():
        name, *words = [word for word in shlex.split(line.strip().lstrip("@")) if word != "$(WITH_JAVA)"]
        match [name.removeprefix("$(BIN)/"), *words]:
            case ["hamlet", "submit", *rest]:
                found = submit.command.make_context("submit", rest)
                workload = hamlet.Workload.from_file(ROOT / found.params["workload"])
                made[found.params["output"]] = workload
            case ["python", "-m", "datasets", *rest]:
                streams.commands[rest[0]].make_context(rest[0], rest[1:])
            case ["python", "tools/show_results.py", folder, *options]:
                asked = [option for flag, option in itertools.pairwise(options) if flag == "--query"]
                assert set(asked) <= set(made[folder].names)
            case _:
                assert name in ("mkdir", "echo;"), line
    assert len(made) == 2


def test_links_lead_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), ROOT / "tests" / "README.md", ROOT / "fuzz" / "README.md"]
    links = [
        (page, target) for page in pages for target in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8"))
    ]
    assert len(links) >= 20
    for page, target in links:
        assert "://" in target or (page.parent / target).exists(), f"{page.name}: {target}"
