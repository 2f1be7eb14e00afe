"""Conditions that read labels as programs of the kernel, where their types and operations are known there."""

from __future__ import annotations

from typing import Any

from hamlet.patterns.clause.tree import Clause
from hamlet.patterns.match.conditions import Condition
from hamlet.patterns.match.ordered import Ordered


def native_program(clause: Clause, condition: Condition, ordered: Ordered, tables: Any) -> Any:
    """The program of a condition, None where the host has to answer."""
    return None
