"""Runs what a Markdown document shows: its files, commands, outputs and Python lines, in order, in one folder.

What a code block is, its head says:

=====================  ==============================================================================================
``title="rides.csv"``  a file of this name with this content, whatever the language
``console``            lines that begin with ``$`` are commands; what follows each is all that it prints
``pycon``              lines that begin with ``>>>`` or ``...``, with what they print (a doctest)
``python``             lines that run; what they print is the next block, if that is ``output``
``sase``               a workload without errors
anything else          is only shown
=====================  ==============================================================================================

Commands run in process where they begin with ``hamlet``, else in bash; ``python -m datasets`` finds this project.
A line ``...`` in an output stands for any number of lines. Times such as ``0.29 s`` and bytes held are not compared. A
block behind the comment ``<!-- not run: reason -->`` is only shown.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import shlex
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hamlet.cli import main
from hamlet.planner.workload import Workload

ROOT = Path(__file__).resolve().parents[2]

_BLOCK = re.compile(r"(<!-- not run: [^>]+ -->\n+)?^( *)```([^\n`]*)\n(.*?)^\2```", re.MULTILINE | re.DOTALL)
_TIMES = re.compile(r"\b\d+\.\d+ s\b(?: \((?:\w+ \d+\.\d+ s(?:, )?)+\))?")  # a run of a second says its stages, too
_SIZES = re.compile(r"\btake [\d.]+ (?:bytes|[KM]iB)")


@dataclass(frozen=True)
class Block:
    """A code block.

    Attributes
    ----------
    language : str
    title : str or None
        The name of the file that it is.
    text : str
    line : int
        Where it begins.
    run : bool
        Whether it is more than shown.
    """

    language: str
    title: str | None
    text: str
    line: int
    run: bool


def blocks(path: Path) -> Iterator[Block]:
    """The code blocks of a document."""
    document = path.read_text(encoding="utf-8")
    for match in _BLOCK.finditer(document):
        head, indent = match[3], match[2]
        title = re.search(r'title="([^"]+)"', head)
        text = re.sub(f"^{indent}", "", match[4], flags=re.MULTILINE)
        line = document.count("\n", 0, match.start(4))
        yield Block(head.split(maxsplit=1)[0] if head.strip() else "", title and title[1], text, line, match[1] is None)


class Reader:
    """Does what a reader of a document would do.

    Parameters
    ----------
    path : pathlib.Path
        The document.
    folder : pathlib.Path
        An empty folder, where its files are written and its commands run.
    """

    def __init__(self, path: Path, folder: Path) -> None:
        self.path = path
        self.folder = folder
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.printed: str | None = None  # by the last Python block

    def read(self) -> int:
        """Follow the document; the number of things that were run or checked."""
        count = 0
        with contextlib.chdir(self.folder):
            for block in blocks(self.path):
                if block.run:
                    count += self._follow(block)
        return count

    def _follow(self, block: Block) -> bool:
        where = f"{self.path.name}:{block.line}"
        printed, self.printed = self.printed, None
        if block.title is not None:
            Path(block.title).parent.mkdir(exist_ok=True)
            Path(block.title).write_text(block.text, encoding="utf-8")
        if block.language == "console":
            self._console(block, where)
        elif block.language == "pycon":
            self._session(block, where)
        elif block.language == "python" and block.title is None:
            self.printed = self._python(block, where)
        elif block.language == "output":
            assert printed is not None, f"{where}: there are no Python lines before this output"
            check(where, "the lines above", printed, block.text)
        elif block.language == "sase":
            Workload.parse(block.text, where)
        return block.language in ("console", "pycon", "python", "output", "sase")

    def _console(self, block: Block, where: str) -> None:
        for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            command, shown = part.split("\n", 1)
            while command.endswith("\\"):
                more, shown = shown.split("\n", 1)
                command = command[:-1] + more.removeprefix("> ").strip()
            check(where, command, run(command), shown)

    def _session(self, block: Block, where: str) -> None:
        options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        test = doctest.DocTestParser().get_doctest(block.text, self.names, where, str(self.path), block.line)
        test.globs = self.names  # not a copy: later lines know what earlier ones made
        out: list[str] = []
        doctest.DocTestRunner(optionflags=options).run(test, out=out.append, clear_globs=False)
        assert not out, "".join(out)

    def _python(self, block: Block, where: str) -> str:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(block.text, where, "exec"), self.names)
        return out.getvalue()


def run(command: str) -> str:
    """What a command prints, on both streams."""
    if re.match(r"hamlet [^|>;&]*$", command):
        buffer = io.BytesIO()
        both = io.TextIOWrapper(buffer, encoding="utf-8", write_through=True)
        with contextlib.redirect_stdout(both), contextlib.redirect_stderr(both):
            main(shlex.split(command)[1:])
        return buffer.getvalue().decode()
    with contextlib.suppress(FileExistsError):
        Path(".bin").mkdir()
        for name, program in (("hamlet", "python -m hamlet"), ("python", shlex.quote(sys.executable))):
            script = Path(".bin", name)
            script.write_text(f'#!/bin/sh\nexec {program} "$@"\n', encoding="utf-8")
            script.chmod(script.stat().st_mode | stat.S_IXUSR)
    environment = {**os.environ, "PATH": f"{Path('.bin').resolve()}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(
        ["bash", "-c", command],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        text=True,
    )
    return ran.stdout


def check(where: str, command: str, found: str, shown: str) -> None:
    """Assert that an output is as shown."""
    pattern = [".*" if line == "..." else re.escape(line) for line in lines_of(shown)]
    matched = re.fullmatch("\n".join(pattern), "\n".join(lines_of(found)), re.DOTALL)
    assert matched, f"{where}: {command}\nprints\n{found}\nand the document shows\n{shown}"


def lines_of(text: str) -> list[str]:
    """Lines without what differs from run to run, blanks at their ends, and empty ends."""
    return [_SIZES.sub("take # bytes", _TIMES.sub("# s", line.rstrip())) for line in text.strip("\n").splitlines()]
