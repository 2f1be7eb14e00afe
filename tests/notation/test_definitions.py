"""Options have one definition: the command line and the objects of options of all notations have its default."""

from __future__ import annotations

import importlib
from dataclasses import MISSING, fields

import pytest

from hamlet.cli.heard import RULES
from hamlet.runtime.definitions import DEFINITIONS

OBJECTS = (
    "hamlet.engine.options:Options",
    "hamlet.policies.options:FileOptions",
    "hamlet.policies.options:OnlineOptions",
    "hamlet.streams.options:Options",
    "hamlet.patterns.options:Options",
    "hamlet.patterns.options:StatementOptions",
)
JOBS = (
    "hamlet.spark.options:Batch",
    "hamlet.spark.options:Stream",
    "hamlet.spark.options:PolicyBatch",
    "hamlet.spark.options:PolicyStream",
    "hamlet.spark.specifications:SpecificationBatch",
    "hamlet.spark.specifications:SpecificationStream",
    "hamlet.spark.patterns:PatternStream",
)
# Defaults of their own: a specification's time is `time` or `ts`, and DuckDB has all cores.
OWN = {
    ("hamlet.streams.options:Options", "time_column"),
    ("hamlet.spark.specifications:SpecificationBatch", "time_column"),
    ("hamlet.patterns.options:StatementOptions", "threads"),
}
COMMANDS = ("run", "monitor", "submit", "check", "explain", "sql")


def disagreeing(places: tuple[str, ...]) -> list[str]:
    found = []
    for place in places:
        module, _, name = place.partition(":")
        for each in fields(getattr(importlib.import_module(module), name)):
            known = DEFINITIONS.get(each.name)
            if known is None or (place, each.name) in OWN or each.default is MISSING:
                continue
            if each.default != known.default:
                found.append(f"{place}.{each.name} is {each.default!r}, and its definition says {known.default!r}")
    return found


def test_objects_have_the_defaults_of_the_definitions() -> None:
    assert not disagreeing(OBJECTS)


def test_jobs_have_the_defaults_of_the_definitions() -> None:
    pytest.importorskip("pyspark")
    assert not disagreeing(JOBS)


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_have_the_words_and_defaults_of_the_definitions(command: str) -> None:
    for each in importlib.import_module(f"hamlet.cli.{command}").command.params:
        known = DEFINITIONS.get(str(each.name))
        if known is None or (command, each.name) in {("sql", "input_format"), ("explain", "numbers")}:
            continue
        assert known.written in each.opts
        assert each.help.startswith(known.help)
        assert str(each.default) == str(known.default) or known.default is None


def test_rules_speak_of_options_that_there_are() -> None:
    there = {
        str(each.name) for name in COMMANDS for each in importlib.import_module(f"hamlet.cli.{name}").command.params
    }
    assert {name for rule in RULES for name in rule.options} <= there
