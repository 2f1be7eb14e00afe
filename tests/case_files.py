"""Reads the golden cases, ``tests/cases/*.case``.

A case is one small file: why the numbers are what they are, then sections::

    -- options      (may be left out) `order_column NAME`, `time_unit s|ms|us|ns`, `feature NAME`
    -- events       `A A@5 B`: type, or type@time (else one after the event before); or a table with a head line
    -- query        the workload
    -- expect       tables of rows, each with a head line that begins with `query`; or `none`

Cells are separated by blanks ("..." keeps blanks inside). NULL, NaN, true and false are what they say; ``-`` leaves the
attribute out of the event.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "cases"
TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


@dataclass(frozen=True)
class Case:
    """One golden case.

    Attributes
    ----------
    name : str
        The file's name without its ending.
    options : dict
        Options of `hamlet.run` (`order_column`, `time_unit`) as far as they are not the defaults.
    feature : str or None
        A part of the language that an executor may say it does not run yet: ``conjunction`` or ``broadcast``.
    events : list of dict
        The stream.
    text : str
        The workload.
    expected : list of dict
        The rows.
    """

    name: str
    options: dict[str, str]
    feature: str | None
    events: list[dict[str, Any]]
    text: str
    expected: list[dict[str, Any]]


def oracle_options(options: dict[str, Any]) -> dict[str, Any]:
    """Options of `hamlet.run` as options of the oracle, which counts ticks."""
    rest = {name: value for name, value in options.items() if name != "time_unit"}
    return {**rest, "ticks_per_second": TICKS[options.get("time_unit", "s")]}


def cases() -> list[Case]:
    """All golden cases, by name."""
    return [_case(path) for path in sorted(FOLDER.glob("*.case"))]


def _case(path: Path) -> Case:
    parts = re.split(r"^-- (options|events|query|expect)[ ]*\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    options = dict(line.split(maxsplit=1) for line in sections.get("options", "").splitlines())
    feature = options.pop("feature", None)
    events = list(_events(sections["events"].splitlines()))
    return Case(path.stem, options, feature, events, sections["query"], list(_rows(sections["expect"].splitlines())))


def _events(lines: Sequence[str]) -> Iterator[dict[str, Any]]:
    if lines and lines[0].split()[:1] == ["time"]:
        head = _cells(lines[0])
        for line in lines[1:]:
            yield {name: _value(cell) for name, cell in zip(head, _cells(line), strict=True) if cell != "-"}
        return
    time = -1
    for word in " ".join(lines).split():
        type_, _, written = word.partition("@")
        time = int(written) if written else time + 1
        yield {"time": time, "type": type_}


def _rows(lines: Sequence[str]) -> Iterator[dict[str, Any]]:
    head: list[str] = []
    for line in lines:
        if line.split() == ["none"]:
            return
        cells = _cells(line)
        if cells[:1] == ["query"]:
            head = cells
        else:
            named = zip(head, cells, strict=True)
            yield {name: cell if name == "query" else _value(cell) for name, cell in named}


def _cells(line: str) -> list[str]:
    return [quoted or plain for quoted, plain in re.findall(r'"([^"]*)"|(\S+)', line)]


def _value(cell: str) -> Any:
    words = {"NULL": None, "NaN": math.nan, "true": True, "false": False}
    if cell in words:
        return words[cell]
    for number in (int, float):
        try:
            return number(cell)
        except ValueError:
            pass
    return cell
