"""The rules that hold the tree together, read from the sources: who imports whom, who prints, what stays out.

``bench -> datasets -> hamlet -> optimizer`` is the only direction; ARCHITECTURE.md says why.
"""

from __future__ import annotations

import ast
import functools
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

# What each package may import of the others; the tests may import everything.
MAY_IMPORT = {
    "optimizer": {"optimizer"},
    "hamlet": {"hamlet", "optimizer"},
    "datasets": {"datasets", "hamlet", "optimizer"},
    "bench": {"bench", "datasets", "hamlet", "optimizer"},
}
OWN = {*MAY_IMPORT, "tests"}
PANDAS_METHODS = {"to_pandas", "toPandas", "from_pandas", "applyInPandas", "mapInPandas", "pandas_udf", "pandas_api"}
PANDAS_FOR_USERS = {
    ("hamlet/output/frames.py", "to_pandas"),
    ("tests/output/test_frames.py", "to_pandas"),
    ("tests/notation/test_matrix.py", "to_pandas"),
}
CYTHON_IMPORT = re.compile(r"^\s*(?:from\s+([\w.]+)\s+c?import\b|c?import\s+([\w.]+(?:\s*,\s*[\w.]+)*))", re.MULTILINE)


def python_files(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def cython_files() -> list[Path]:
    folders = ("hamlet", "optimizer", "bench/baselines")
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.p[yx][xd]"))]


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def nodes_of(path: Path, words: Iterable[str]) -> Iterator[Any]:
    """The nodes of a file; none of one without any of these words, which need not be parsed."""
    text = path.read_text(encoding="utf-8")
    if any(word in text for word in words):
        yield from ast.walk(ast.parse(text, filename=str(path)))


def only_typed(node: ast.AST) -> bool:
    """Whether this is a block that only type checkers read."""
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def statements(node: ast.AST, typed: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    """Every statement below, and whether only type checkers read it; expressions, most of a tree, hold no import."""
    typed = typed or only_typed(node)
    for field in ("body", "handlers", "cases", "orelse", "finalbody"):
        for each in getattr(node, field, ()):
            yield each, typed
            yield from statements(each, typed)


@functools.cache
def imports_of(path: Path) -> tuple[tuple[int, str, bool], ...]:
    """Line and absolute dotted name of every import, and whether it is for type checkers; those in functions too."""
    package = path.relative_to(ROOT).parent.parts
    found: list[tuple[int, str, bool]] = []
    for node, typed in statements(tree_of(path)):
        if isinstance(node, ast.Import):
            found += ((node.lineno, alias.name, typed) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parent = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*parent, *([node.module] if node.module else [])])
            # `from hamlet import spark` names the module hamlet.spark as much as `import hamlet.spark` does.
            found += ((node.lineno, f"{module}.{alias.name}", typed) for alias in node.names)
    return tuple(found)


def python_imports(path: Path, *, typed: bool = True) -> Iterator[tuple[int, str]]:
    """Line and absolute dotted name of every import; of TYPE_CHECKING blocks if `typed`."""
    return ((line, name) for line, name, checked in imports_of(path) if typed or not checked)


def cython_imports(path: Path) -> Iterator[tuple[int, str]]:
    """Line and absolute dotted name of every import of a .pyx or .pxd, which `ast` cannot read."""
    text = path.read_text(encoding="utf-8")
    for match in CYTHON_IMPORT.finditer(text):
        line = text.count("\n", 0, match.end()) + 1
        for name in re.split(r"\s*,\s*", match[1] or match[2]):
            yield line, name


@functools.cache
def all_imports() -> tuple[tuple[Path, int, str], ...]:
    python = [
        (path, found)
        for path in python_files("hamlet", "optimizer", "datasets", "bench", "tests")
        for found in python_imports(path)
    ]
    cython = [(path, found) for path in cython_files() for found in cython_imports(path)]
    return tuple((path.relative_to(ROOT), *found) for path, found in [*python, *cython])


def listed(offences: list[str]) -> str:
    return "\n  ".join(["", *offences])


def test_there_is_something_to_read() -> None:
    for package in MAY_IMPORT:
        assert python_files(package), f"no Python files in {package}/"
    assert cython_files()


def test_imports_run_one_way() -> None:
    """bench -> datasets -> hamlet -> optimizer, and nobody imports the tests."""
    offences = [
        f"{path}:{line} imports {name}"
        for path, line, name in all_imports()
        if path.parts[0] in MAY_IMPORT and (top := name.split(".")[0]) in OWN and top not in MAY_IMPORT[path.parts[0]]
    ]
    assert not offences, listed(offences)


def room_of(name: str) -> str:
    """The folder of hamlet/ that a module lies in; its own name for the few files beside them."""
    parts = name.split(".")
    return "_core" if parts[1].startswith("_") else parts[1]


def test_rooms_import_each_other_one_way() -> None:
    """Folders of hamlet/ never import in a circle, so that each can be read after those that it builds on."""
    modules = {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in python_files("hamlet")}
    rooms = {room_of(name) for name in modules if name.count(".") > 1} - {"__init__"}
    uses: dict[str, set[str]] = {room: set() for room in rooms}
    for path in python_files("hamlet"):
        parts = path.relative_to(ROOT).parts
        for _, name in python_imports(path, typed=False) if len(parts) > 2 else ():
            if name.startswith("hamlet.") and room_of(name) in rooms:
                uses[parts[1]].add(room_of(name))
    for room, used in uses.items():
        used.discard(room)
    while free := {room for room, used in uses.items() if not used}:
        uses = {room: used - free for room, used in uses.items() if room not in free}
    assert not uses, f"folders that import each other in a circle: {uses}"


def test_only_the_spark_modules_import_pyspark() -> None:
    """Spark is quarantined; the tests and the programmes that we are compared with have sessions of their own."""
    offences = [
        f"{path}:{line} imports {name}"
        for path, line, name in all_imports()
        if name.split(".")[0] in {"pyspark", "py4j"}
        and path.parts[0] != "tests"
        and path.parts[:2] not in {("hamlet", "spark"), ("bench", "peers")}
    ]
    assert not offences, listed(offences)


def test_the_compiled_code_imports_no_python_of_ours() -> None:
    """The kernel knows integers only: of this project it may import other compiled modules and nothing else."""
    compiled = {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in cython_files()}
    offences = [
        f"{path}:{line} imports {name}"
        for path, line, name in all_imports()
        if path.suffix in {".pyx", ".pxd"} and name.split(".")[0] in OWN and name not in compiled
    ]
    assert not offences, listed(offences)


def test_the_oracle_shares_the_syntax_tree_and_nothing_else() -> None:
    """A shared mistake would pass every comparison: the oracle reads the AST and shares no meaning with the engine."""
    allowed = ("hamlet.language.query", "hamlet.errors", "hamlet.language.schema", "hamlet.oracle")
    allowed += (
        "hamlet.patterns.clause.tree",
        "hamlet.policies.syntax.formula",
        "hamlet.policies.syntax.regex",
        "hamlet.streams.program.ir",
        "hamlet.streams.syntax.tree",
    )
    offences = [
        f"{path}:{line} imports {name}"
        for path, line, name in all_imports()
        if path.parts[:2] == ("hamlet", "oracle") and name.split(".")[0] in OWN and not name.startswith(allowed)
    ]
    assert not offences, listed(offences)


def test_only_the_command_line_prints() -> None:
    """No print, and no standard stream, in hamlet and optimizer outside hamlet/cli."""
    offences = []
    for path in python_files("hamlet", "optimizer"):
        if path.relative_to(ROOT).parts[:2] == ("hamlet", "cli"):
            continue
        for node in nodes_of(path, ["print", "stdout", "stderr"]):
            prints = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
            streams = (
                isinstance(node, ast.Attribute)
                and node.attr in {"stdout", "stderr"}
                and isinstance(node.value, ast.Name)
                and node.value.id == "sys"
            )
            if prints or streams:
                offences.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert not offences, listed(offences)


def test_readers_of_text_get_no_object_of_python() -> None:
    """Arrow's threads may outlive what is wrong with a text, and the interpreter."""
    offences = []
    readers = {"read_csv", "open_csv", "read_json", "open_json"}
    for path in python_files("hamlet"):
        for node in nodes_of(path, readers):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            if node.func.attr in readers:
                first = ast.unparse(node.args[0])
                if first not in {"self.name", "stream"} and not first.startswith("as_stream("):
                    offences.append(f"{path.relative_to(ROOT)}:{node.lineno} reads {first}")
    assert not offences, listed(offences)


def test_no_pandas_anywhere() -> None:
    """pandas may be installed, because PySpark asks for it; no pandas object exists in this project's code.

    Methods named `to_pandas` make a DataFrame of results, for the user to keep, by way of pyarrow.
    """
    offences = [f"{path}:{line} imports {name}" for path, line, name in all_imports() if name.split(".")[0] == "pandas"]
    for path in python_files("hamlet", "optimizer", "datasets", "bench", "tests"):
        for node in nodes_of(path, PANDAS_METHODS):
            used = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
            if used in PANDAS_METHODS and (path.relative_to(ROOT).as_posix(), used) not in PANDAS_FOR_USERS:
                offences.append(f"{path.relative_to(ROOT)}:{node.lineno} uses {used}")
    assert not offences, listed(offences)


def test_what_is_installed() -> None:
    """hamlet and optimizer are installed under these very names, every package of theirs, and nothing else is."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    packages = {".".join(path.relative_to(ROOT).parent.parts) for path in python_files("hamlet", "optimizer")}
    assert project["tool"]["setuptools"]["packages"] == sorted(packages)


WITHOUT_SPARK = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("pyspark", "py4j"):
            raise ModuleNotFoundError("blocked by the test: " + name, name=name)

sys.meta_path.insert(0, Blocked())
import {module}
unwanted = {{"pyspark", "py4j", "pandas"}} & set(sys.modules)
assert not unwanted, unwanted
"""


@pytest.mark.parametrize("module", ["hamlet", "hamlet.cli", "optimizer"])
def test_imports_without_pyspark_and_without_java(module: str) -> None:
    """A machine with neither can still run everything in process."""
    environment = {name: value for name, value in os.environ.items() if name not in {"JAVA_HOME", "SPARK_HOME"}}
    environment |= {"PATH": "", "PYTHONPATH": os.pathsep.join([str(ROOT), environment.get("PYTHONPATH", "")])}
    process = subprocess.run(
        [sys.executable, "-c", WITHOUT_SPARK.format(module=module)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr


def test_docstrings_can_be_read_alone() -> None:
    """None opens with "The same" or with "As `that`": they would say nothing to who has not read the others."""
    opening = re.compile(r'^\s*"""(?:The same\b|As `)', re.MULTILINE)
    sources = [*python_files("hamlet", "optimizer"), *cython_files()]
    offences = [
        f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, match.start()) + 1}"
        for path in sources
        for text in [path.read_text(encoding="utf-8")]
        for match in opening.finditer(text)
    ]
    assert not offences, listed(offences)


def test_optimizer_is_whole_without_hamlet() -> None:
    """The optimizer is tested and used alone: importing all of it never loads the engine."""
    modules = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in python_files("optimizer")]
    names = ", ".join(name.removesuffix(".__init__") for name in modules)
    code = f"import sys, {names}; assert not [m for m in sys.modules if m.split('.')[0] == 'hamlet']"
    process = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr


def test_no_test_reads_what_an_engine_keeps_to_itself() -> None:
    """`hamlet.engine.inside` gives tests what they need of it."""
    private = re.compile(r"\bengine\._[a-z]")
    offences = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in python_files("tests", "bench", "fuzz")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if private.search(line)
    ]
    assert not offences, listed(offences)
