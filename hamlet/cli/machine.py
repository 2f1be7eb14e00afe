"""Errors and warnings for programs: editors, and what checks a change before it is merged."""

from __future__ import annotations

import json
from typing import Any

import click

from hamlet.errors import Diagnostic, HamletError, WorkloadError

_MOST_MISTAKES = 50  # of a workload, that are shown
_KEY = "errors"
_chosen = {_KEY: "text"}  # of the call that runs


def _choose(_context: click.Context, _option: click.Parameter, given: str) -> None:
    _chosen[_KEY] = given


ERRORS = click.Option(
    ["--errors"],
    type=click.Choice(["text", "json"]),
    default="text",
    is_eager=True,
    expose_value=False,
    callback=_choose,
    help="How errors are written: for people, or a line of JSON each (file, line, column, end, message, hint).",
)


def begin() -> None:
    """Write errors as text, unless the call that begins says otherwise."""
    _chosen[_KEY] = "text"


def wanted() -> bool:
    """Whether errors are written as JSON."""
    return _chosen[_KEY] == "json"


def diagnostic(found: Diagnostic) -> dict[str, Any]:
    """An error or a warning with its place; lines and columns count from 1, and the end is behind the last letter."""
    last = Diagnostic("", type(found.span)(found.span.end, found.span.end), text=found.text)
    return {
        "file": found.source,
        "line": found.line,
        "column": found.column,
        "end": {"line": last.line, "column": last.column},
        "severity": found.severity,
        "message": found.message,
        "hint": found.hint,
    }


def mistakes(error: HamletError) -> list[dict[str, Any]]:
    """What an error says, mistake by mistake; those that are not about a text have no place."""
    if isinstance(error, WorkloadError):
        return [diagnostic(each) for each in error.diagnostics]
    message, _, hint = str(error).partition("\nhint: ")
    return [plain(message, hint or None, error.row)]


def shown(error: HamletError) -> str:
    """The text of an error; of very many mistakes in a workload the first ones."""
    if wanted():
        return lines(mistakes(error))
    if not isinstance(error, WorkloadError):
        return f"error: {error}"
    first = error.diagnostics[:_MOST_MISTAKES]
    more = len(error.diagnostics) - len(first)
    said = [each.format() for each in first] + ([f"... and {more:,} more mistakes"] if more else [])
    return "\n".join(said)


def plain(message: str, hint: str | None = None, row: int | None = None) -> dict[str, Any]:
    """An error without a place in a text."""
    place = {"file": None, "line": None, "column": None, "end": None}
    told: dict[str, Any] = {**place, "severity": "error", "message": message, "hint": hint}
    return told if row is None else {**told, "row": row}


def lines(found: list[dict[str, Any]]) -> str:
    """A line of JSON for each."""
    return "\n".join(json.dumps(each, ensure_ascii=False) for each in found)
