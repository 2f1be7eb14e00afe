"""The API page: what it lists is there, with the parameters and the defaults that calls really have."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
LISTED = re.findall(r"^::: (\S+)", (ROOT / "docs" / "api.md").read_text(encoding="utf-8"), re.MULTILINE)


@pytest.fixture(scope="module")
def shown() -> Any:
    """The package as the page's tool reads it, from the sources."""
    griffe = pytest.importorskip("griffe", reason="it comes with the extra docs")
    return griffe.GriffeLoader(search_paths=[str(ROOT)]).load("hamlet", try_relative_path=False)


def real(name: str) -> Any:
    """What a dotted name stands for."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError as error:
            if error.name is not None and not name.startswith(error.name):
                pytest.skip(f"{error.name} is not installed")
            continue
        for part in parts[length:]:
            found = getattr(found, part)
        return found
    raise AssertionError(name)


def callables(name: str, document: Any) -> Iterator[tuple[str, Any]]:
    """A function, or a class and its public methods, as the page's tool sees them."""
    while document.is_alias:
        document = document.final_target
    if document.is_function or document.is_class:
        yield document.path, document
    if document.is_class or document.is_module:
        for key, member in document.members.items():
            if not key.startswith("_") and not member.is_alias and member.is_function:
                yield f"{document.path}.{key}", member


@pytest.mark.parametrize("name", LISTED)
def test_every_default_shown_is_that_of_the_call(name: str, shown: Any) -> None:
    checked = 0
    for path, document in callables(name, shown[name.removeprefix("hamlet.")]):
        thing = real(path)
        try:
            signature = inspect.signature(thing)
        except (TypeError, ValueError):
            continue
        written = {each.name: each for each in document.parameters}
        for parameter in signature.parameters.values():
            if parameter.default is inspect.Parameter.empty or parameter.name not in written:
                continue
            try:
                default = ast.literal_eval(str(written[parameter.name].default))
            except (ValueError, SyntaxError):
                continue  # a name, such as that of a function
            assert default == parameter.default, f"{path}({parameter.name})"
            checked += 1
    assert checked or name not in ("hamlet.parallel.run.run", "hamlet.engine.options.Options", "hamlet.spark.run")


@pytest.mark.parametrize("name", LISTED)
def test_parameters_that_are_described_are_those_of_the_call(name: str, shown: Any) -> None:
    for path, document in callables(name, shown[name.removeprefix("hamlet.")]):
        signature = _signature(real(path))
        if signature is None or document.docstring is None:
            continue
        accepted = set(signature.parameters)
        options = next((each for each in signature.parameters.values() if each.kind is each.VAR_KEYWORD), None)
        for names in re.findall(r"^(\*{0,2}[a-z_][a-z_, *]*) : ", _section(document.docstring.value), re.MULTILINE):
            for each in names.split(","):
                described = each.strip().lstrip("*")
                assert described in accepted or options is not None, f"{path}: {described}"


def _signature(thing: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(thing)
    except (TypeError, ValueError):
        return None


def _section(docstring: str) -> str:
    """The lines of the section Parameters."""
    found = re.search(r"^Parameters\n-+\n(.*?)(?=^\w[\w ]*\n-{3,}|\Z)", docstring, re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


def test_count_type_and_input_format_have_the_defaults_that_the_page_says() -> None:
    """Two that the page had wrong."""
    run = real("hamlet.parallel.run.run")
    assert inspect.signature(run).parameters["input_format"].default is None
    assert real("hamlet.engine.options.Options")().count_type == "auto"
