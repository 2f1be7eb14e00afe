"""A notation as small as one can be: ``COUNT login ABOVE 3`` tells when events of a type are more than so many.

It is the six things that a notation is, and nothing else; all that tests ask of it comes from `hamlet.notation`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pyarrow as pa

from hamlet.errors import Span, near_miss
from hamlet.frontend.cursor import Cursor, UnreadableError
from hamlet.frontend.lexer import Kind, TokenTable, character, tokenize
from hamlet.frontend.reports import Reports
from hamlet.notation import Notation, Plan

TOKENS = TokenTable(
    re.compile(r"(?P<space>\s+|--[^\n]*)|(?P<word>[^\W\d]\w*)|(?P<integer>\d+)|(?P<bad>.)"),
    lambda raw: (f"unexpected {character(raw)}", "write COUNT login ABOVE 3"),
)


@dataclass(frozen=True)
class Rule:
    """``COUNT type ABOVE most``."""

    type: str
    most: int
    span: Span


@dataclass(frozen=True)
class Rules:
    """All rules of a text."""

    rules: tuple[Rule, ...]

    def __str__(self) -> str:
        return " ".join(f"COUNT {each.type} ABOVE {each.most}" for each in self.rules)

    @property
    def most(self) -> dict[str, int]:
        """The bound of each type."""
        return {each.type: each.most for each in self.rules}


class Counts(Notation):
    """Syntax, checker, planner, monitor, slicer, oracle."""

    extension, kind, metavar = ".count", "count", "RULES.count"

    def parse(self, reports: Reports) -> Rules:
        cursor, found = Cursor(tokenize(TOKENS, reports), reports), []
        while not cursor.at_kind(Kind.END):
            try:
                found.append(_rule(cursor))
            except UnreadableError:
                cursor.advance()
                while not (cursor.at_word("COUNT") or cursor.at_kind(Kind.END)):
                    cursor.advance()
        return Rules(tuple(found))

    def check(self, tree: Rules, reports: Reports) -> None:
        seen: set[str] = set()
        for rule in tree.rules:
            if rule.type in seen:
                reports.error(f"{rule.type} is counted twice", rule.span, "give each type one rule")
            elif near_miss(rule.type, seen, 0.9):
                reports.warn(f"{rule.type} is nearly called as another type is", rule.span)
            seen.add(rule.type)
        if not tree.rules:
            reports.error("there is no rule", Span(0, 1), "write COUNT login ABOVE 3")

    def plan(self, tree: Rules) -> Plan:
        steps = tuple((f"count {name}, tell above {most}", "one number") for name, most in tree.most.items())
        rows = pa.schema({"type": pa.string(), "count": pa.int64()})
        return Plan((), tuple(tree.most), rows, steps)

    def evaluator(self, tree: Rules) -> Counting:
        return Counting(tree)

    def slicer(self, tree: Rules) -> str:  # noqa: ARG002
        return "type"

    def oracle(self, tree: Rules, events: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        events = sorted(events, key=lambda each: each["time"])
        found = []
        for time, step in groupby(events, key=lambda each: each["time"]):
            for name in sorted({each["type"] for each in step} & set(tree.most)):
                count = sum(each["type"] == name and each["time"] <= time for each in events)
                if count > tree.most[name]:
                    found.append({"time": time, "type": name, "count": count})
        return found


def _rule(cursor: Cursor) -> Rule:
    start = cursor.peek().span
    if not cursor.take_word("COUNT"):
        near = cursor.near(["COUNT"])
        raise cursor.expected(["COUNT"], f"did you mean {near}?" if near else None)
    if not cursor.at_kind(Kind.WORD):
        raise cursor.expected(["a type"])
    name = cursor.advance().value
    if not cursor.take_word("ABOVE"):
        raise cursor.expected(["ABOVE"])
    if not cursor.at_kind(Kind.INTEGER):
        raise cursor.expected(["a number"])
    return Rule(name, int(cursor.advance().value), cursor.since(start))


class Counting:
    """The numbers, by type."""

    def __init__(self, tree: Rules) -> None:
        self._most = tree.most
        self._counts: Counter[str] = Counter()

    def step(self, events: pa.RecordBatch) -> list[dict[str, Any]]:
        came = Counter(events.column("type").to_pylist())
        self._counts.update({name: number for name, number in came.items() if name in self._most})
        return [
            {"type": name, "count": self._counts[name]}
            for name in sorted(set(came) & set(self._most))
            if self._counts[name] > self._most[name]
        ]

    def state(self) -> list[list[Any]]:
        return [[name, number] for name, number in self._counts.items()]

    def load(self, state: Any) -> None:
        if type(state) is not list or not all(
            type(name) is str and type(number) is int and number >= 0 for name, number in state
        ):
            raise ValueError("the counts are none")
        self._counts = Counter(dict(state))

    def held(self) -> tuple[int, int]:
        return len(self._counts), 100 * len(self._counts)


COUNTS = Counts()
