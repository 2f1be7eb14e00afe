"""Compares the evaluator of specifications with the oracle: ``python -m tests.compare_streams --seeds 0:5000``.

Prints the first case that differs, text and events, and ends with exit code 1.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hamlet.oracle.streams import Event, Group, StreamMistakeError, evaluate
from hamlet.streams import Specification
from tests.stream_specifications import case

Run = Callable[[Specification, Sequence[Event]], list[Mapping[str, Any]]]
MISTAKE = "a mistake"


def expected(specification: Specification, events: Sequence[Event]) -> list[Group] | str:
    """What the oracle says: all rows, values included, or `MISTAKE` where a computation has no result."""
    try:
        return evaluate(specification.program, events, values=True)
    except StreamMistakeError:
        return MISTAKE


def difference(groups: Sequence[Group], rows: Sequence[Mapping[str, Any]]) -> str | None:
    """How rows differ from the oracle's, in words; None where they are the same.

    Rows of one group may come in any order; floats are compared to nine digits, times are integers of ns.
    """
    place = 0
    for group in groups:
        given = list(rows[place : place + len(group.rows)])
        place += len(group.rows)
        if len(given) != len(group.rows):
            return f"rows are missing from step {group.step} on: expected {group.rows}, found {given}"
        for row in group.rows:
            match = next((each for each in given if _same(row, each)), None)
            if match is None:
                return f"step {group.step}: expected {row}, found {given}"
            given.remove(match)
    return f"rows too many: {list(rows[place : place + 3])}" if place < len(rows) else None


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, Mapping):
        return isinstance(other, Mapping) and one.keys() == other.keys() and all(_same(one[k], other[k]) for k in one)
    if isinstance(one, float) and isinstance(other, float):
        return one == other or math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    if isinstance(one, tuple) and isinstance(other, tuple | list):
        return len(one) == len(other) and all(_same(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, str) and isinstance(other, str):
        return one == other or _same_text(one, other)
    return type(one) is type(other) and bool(one == other)


def _same_text(one: str, other: str) -> bool:
    """Whether messages differ in the last digits of numbers only."""
    first, second = one.replace("<", " ").replace(">", " ").split(), other.replace("<", " ").replace(">", " ").split()
    if len(first) != len(second):
        return False
    for left, right in zip(first, second, strict=True):
        try:
            if left != right and not _same(float(left), float(right)):
                return False
        except ValueError:
            return False
    return True


def shown(text: str, events: Sequence[Event]) -> str:
    """A case as it can be pasted."""
    return f"{text}\nevents = [\n" + "".join(f"    {event!r},\n" for event in events) + "]"


def compare(seeds: Sequence[int], run: Run, wild: bool = False) -> str | None:
    """The first case whose rows differ, in words; None where there is none."""
    for seed in seeds:
        text, events = case(seed, wild)
        specification = Specification.parse(text)
        wanted = expected(specification, events)
        try:
            rows: list[Mapping[str, Any]] | None = run(specification, events)
        except ArithmeticError:
            rows = None
        if isinstance(wanted, str) or rows is None:
            problem = (
                None if isinstance(wanted, str) and rows is None else f"a mistake is expected: {wanted == MISTAKE}"
            )
        else:
            problem = difference(wanted, rows)
        if problem is not None:
            return f"seed {seed}: {problem}\n\n{shown(text, events)}"
    return None


def main(run: Run) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0:1000", help="first:last, the last not included")
    parser.add_argument("--wild", action="store_true", help="values at the edges of their types, times far from zero")
    given = parser.parse_args()
    first, last = (int(part) for part in given.seeds.split(":"))
    problem = compare(range(first, last), run, given.wild)
    sys.stdout.write((problem or f"{last - first} specifications give the oracle's rows") + "\n")
    return 1 if problem else 0


if __name__ == "__main__":
    from tests.streams.stream_runs import run_files, run_pushed, run_whole

    sys.exit(main(run_whole) or main(run_pushed) or main(run_files))
