"""The compiled modules cimport each other without a circle."""

from __future__ import annotations

import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CIMPORT = re.compile(r"^\s*(?:from\s+([\w.]+)\s+cimport\b|cimport\s+([\w.]+(?:\s*,\s*[\w.]+)*))", re.MULTILINE)


def cimports(root: Path) -> dict[str, set[str]]:
    """Of each compiled module those of ours that it, or its declarations, cimport."""
    found: dict[str, set[str]] = {}
    files = {path for folder in ("hamlet", "optimizer") for path in (root / folder).rglob("*.p[yx][xd]")}
    names = {".".join(path.relative_to(root).with_suffix("").parts) for path in files}
    for path in sorted(files):
        module = ".".join(path.relative_to(root).with_suffix("").parts)
        for one, several in CIMPORT.findall(path.read_text(encoding="utf-8")):
            named = {one} if one else {each.strip() for each in several.split(",")}
            found.setdefault(module, set()).update((named & names) - {module})
    return found


def test_no_circle_of_cimports() -> None:
    graph = cimports(ROOT)
    assert len(graph) > 30
    assert any(each == "hamlet.kernel.plan" for found in graph.values() for each in found)
    TopologicalSorter(graph).prepare()  # raises where there is a circle


def test_a_circle_would_be_found(tmp_path: Path) -> None:
    (tmp_path / "hamlet").mkdir()
    (tmp_path / "hamlet" / "_a.pyx").write_text("from hamlet._b cimport f\n")
    (tmp_path / "hamlet" / "_b.pxd").write_text("cimport hamlet._a\n")
    with pytest.raises(CycleError):
        TopologicalSorter(cimports(tmp_path)).prepare()
