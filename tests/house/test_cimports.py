"""The compiled modules cimport each other without a circle, and free what is theirs with what is theirs."""

from __future__ import annotations

import re
import sysconfig
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


def folders(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """The folders that each folder cimports from."""
    found: dict[str, set[str]] = {}
    for module, others in graph.items():
        here, *there = (each.rpartition(".")[0] for each in (module, *others))
        found.setdefault(here, set()).update({*there} - {here})
    return found


def test_folders_cimport_one_way() -> None:
    TopologicalSorter(folders(cimports(ROOT))).prepare()


def test_every_compiled_module_has_a_source() -> None:
    """One that an earlier state has left behind corrupts memory when it is imported."""
    for folder in ("hamlet", "optimizer", "bench"):
        for path in (ROOT / folder).rglob("*" + sysconfig.get_config_var("EXT_SUFFIX")):
            name = path.name.partition(".")[0]
            assert path.with_name(f"{name}.pyx").exists() or name == "_shared", f"run make: {path} has no source"


def test_a_circle_would_be_found(tmp_path: Path) -> None:
    (tmp_path / "hamlet").mkdir()
    (tmp_path / "hamlet" / "_a.pyx").write_text("from hamlet._b cimport f\n")
    (tmp_path / "hamlet" / "_b.pxd").write_text("cimport hamlet._a\n")
    with pytest.raises(CycleError):
        TopologicalSorter(cimports(tmp_path)).prepare()


def freed_with_the_help_of_others(root: Path) -> list[str]:
    """Classes whose ``__dealloc__`` reads through an attribute that the collector of cycles may have cleared."""
    sources = {
        path: path.read_text(encoding="utf-8")
        for folder in ("hamlet", "optimizer", "bench")
        for path in (root / folder).rglob("*.p[yx][xd]")
    }
    structs = set(re.findall(r"^\s*c(?:type)?def struct (\w+)", "\n".join(sources.values()), re.MULTILINE))
    found = []
    for path, text in sources.items():
        for block in re.finditer(r"^((?:@.*\n)*)cdef class (\w+)(.*\n(?:(?:[ \t].*)?\n)*)", text, re.MULTILINE):
            decorators, name, body = block.groups()
            freeing = re.search(r"    def __dealloc__\(self\):\n((?:(?:        .*)?\n)*)", body)
            if freeing is None or "no_gc_clear" in decorators:
                continue
            declared = body + sources.get(path.with_suffix(".pxd"), "").partition(f"cdef class {name}")[2]
            for attribute in set(re.findall(r"self\.(\w+)\.\w", freeing[1])):
                by_value = re.search(rf"cdef (?:readonly |public )?(\w+) (?:.*, )?{attribute}\b", declared)
                if not (by_value and by_value[1] in structs) and f"self.{attribute} is not None" not in freeing[1]:
                    found.append(f"{path.relative_to(root)}: {name} reads self.{attribute}.…; see @cython.no_gc_clear")
    return found


def test_what_frees_does_not_need_what_the_collector_may_have_cleared() -> None:
    assert not freed_with_the_help_of_others(ROOT)


def test_help_of_others_would_be_found(tmp_path: Path) -> None:
    (tmp_path / "hamlet").mkdir()
    (tmp_path / "hamlet" / "_a.pyx").write_text(
        "cdef struct Own:\n    int* cell\n\n\ncdef class A:\n    cdef Own own\n    cdef A other\n\n"
        "    def __dealloc__(self):\n        free(self.own.cell)\n        print(self.other.own)\n"
    )
    assert [each.split(";")[0] for each in freed_with_the_help_of_others(tmp_path)] == [
        "hamlet/_a.pyx: A reads self.other.…"
    ]
