"""Syntax trees with some nodes changed."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from enum import Enum
from fractions import Fraction
from typing import Any

from hamlet.language.query import Span


def mapped(node: Any, change: Any) -> Any:
    """A tree, or a tuple of trees, with every node changed, from the leaves on."""
    if isinstance(node, tuple):
        return tuple(mapped(each, change) for each in node)
    if not is_dataclass(node) or isinstance(node, (type, Span, Enum, Fraction)):
        return node
    parts = {each.name: mapped(getattr(node, each.name), change) for each in fields(node)}
    return change(replace(node, **parts))
