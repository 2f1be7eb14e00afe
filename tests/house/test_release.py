"""What a release is made of agrees with itself: versions, Pythons, files."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import hamlet

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_the_version_stands_in_one_place() -> None:
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert PROJECT["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "hamlet.version.__version__"}
    assert re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", hamlet.__version__)
    found = [
        path.relative_to(ROOT).as_posix()
        for folder in ("hamlet", "optimizer", "docs", ".github")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".md", ".yml")
        and re.search(rf"""version.*["' ]{re.escape(hamlet.__version__)}\b""", path.read_text(encoding="utf-8"))
    ]
    assert found == ["hamlet/version.py"]


def test_the_pythons_that_are_named_are_built_and_tested() -> None:
    named = sorted(
        match[1]
        for line in PROJECT["project"]["classifiers"]
        if (match := re.search(r"Python :: (3\.\d+)$", line)) is not None
    )
    built = sorted(re.sub(r"cp3(\d+)-\*", r"3.\1", each) for each in PROJECT["tool"]["cibuildwheel"]["build"])
    workflow = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    [matrix] = re.findall(r"python: \[(.*)\]", workflow)
    assert named == built == sorted(re.findall(r'"(.*?)"', matrix))


def test_what_the_citation_names() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert "doi: 10.1145/3448016.3452785" in citation
    for name in ("Poppe", "Lei", "Ma", "Rozet", "Rundensteiner"):
        assert f"family-names: {name}\n" in citation
    assert f"license: {PROJECT['project']['license']}\n" in citation


def test_make_installs_every_extra_but_that_of_the_fuzzers() -> None:
    """Lint, tests and documents need all of the others."""
    [extras] = re.findall(r'--editable "\.\[(.*)\]"', (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert set(extras.split(",")) == set(PROJECT["project"]["optional-dependencies"]) - {"fuzz"}


def test_the_installed_command_is_this_one() -> None:
    try:
        entries = metadata.distribution("hamlet-cep").entry_points
    except metadata.PackageNotFoundError:
        pytest.skip("hamlet-cep is not installed")
    assert {entry.value for entry in entries if entry.group == "console_scripts"} == {"hamlet.cli:main"}


def test_the_source_distribution_has_all_that_tests_and_documents_need() -> None:
    manifest = (ROOT / "MANIFEST.in").read_text(encoding="utf-8")
    for needed in ("README.md", "CITATION.cff", "mkdocs.yml", "Makefile"):
        assert re.search(rf"^include .*\b{re.escape(needed)}", manifest, re.MULTILINE), needed
    packages, others = ("hamlet", "optimizer", "datasets", "bench"), ("workloads", "docs", "examples", "fuzz", "tools")
    for folder in (*packages, "tests", *others):
        assert f"recursive-include {folder} " in manifest, folder


@pytest.mark.skipif("WHEEL" not in os.environ, reason="make wheel builds one, and asks for this")
def test_a_wheel_is_all_that_another_machine_needs(tmp_path: Path) -> None:
    """A fresh environment without a compiler; what the wheel depends on is that of this environment."""
    [wheel] = (ROOT / os.environ["WHEEL"]).glob("*manylinux*.whl")
    fresh = tmp_path / "fresh"
    subprocess.run([sys.executable, "-m", "venv", str(fresh)], check=True)
    python = fresh / "bin" / "python"
    nothing = {"PATH": str(fresh / "bin"), "HOME": str(tmp_path)}
    install = [python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", wheel]
    subprocess.run(install, check=True, env=nothing, cwd=tmp_path)
    [packages] = (fresh / "lib").glob("python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    said = subprocess.run(
        [python, "-c", "import hamlet; print(hamlet.__file__)"],
        check=True, env=nothing, cwd=tmp_path, capture_output=True, text=True,
    ).stdout  # fmt: skip
    assert said.startswith(str(fresh))
    subprocess.run([fresh / "bin" / "hamlet", "doctor"], check=True, env=nothing, cwd=tmp_path, capture_output=True)
