"""Every allocation of the compiled modules fails once, under small workloads of each notation.

Started with `failing_allocations.c` in LD_PRELOAD (`test_failing_allocations.py` does so). Whatever fails, the
call ends with a MemoryError or an error of Hamlet's; the monitor then refuses to go on, or is as it was before.
"""

from __future__ import annotations

import argparse
import ctypes
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

import hamlet
import hamlet.matching
import hamlet.policies
import hamlet.streams
from hamlet.errors import HamletError

Events = list[dict[str, Any]]


@dataclass
class Case:
    """How a monitor is made, how it is made from a save, and what is pushed into it."""

    make: Callable[[], Any]
    restore: Callable[[bytes], Any]
    pushed: list[Events]


def events_of(count: int, kinds: str, keys: int, seed: int = 1) -> Events:
    chance = random.Random(seed)
    time = 0
    found: Events = []
    for _ in range(count):
        time += chance.choice([0, 0, 1, 1, 2, 5])
        found.append(
            {
                "time": time,
                "type": chance.choice(kinds),
                "k": chance.randrange(keys),
                "v": chance.randrange(30),
                "s": f"text {chance.randrange(keys)}",
            }
        )
    return found


def parts(events: Events, sizes: tuple[int, ...] = (1, 40, 3)) -> list[Events]:
    found, at = [], 0
    while at < len(events):
        size = sizes[len(found) % len(sizes)]
        found.append(events[at : at + size])
        at += size
    return found


QUERIES: dict[str, tuple[str, dict[str, Any]]] = {
    "sums": ("RETURN COUNT(*), SUM(B.v), AVG(B.v), MIN(A.v) PATTERN SEQ(A, B+) WHERE [k] WITHIN 20 s SLIDE 5 s", {}),
    "large": ("RETURN COUNT(*), SUM(A.v) PATTERN A+ WITHIN 200 s SLIDE 50 s", {}),
    "shared": (
        "a: RETURN COUNT(*) PATTERN SEQ(A, B+) WHERE [k] WITHIN 30 s; "
        "b: RETURN COUNT(*) PATTERN SEQ(C, B+) WHERE [k] WITHIN 30 s; "
        "c: RETURN COUNT(*) PATTERN SEQ(A, B+, C) WHERE [k] WITHIN 30 s;",
        {},
    ),
    "adjacent": ("RETURN COUNT(*), MAX(B.v) PATTERN SEQ(A, B+) WHERE B.v > PREV(B).v WITHIN 40 s SLIDE 10 s", {}),
    "negated": ("RETURN COUNT(*) PATTERN SEQ(A, NOT C, B+) WHERE [k] WITHIN 30 s SLIDE 10 s", {}),
    "matching": (
        "RETURN COUNT(DISTINCT B.v), COUNT(*) PATTERN SEQ(A, B+) SEMANTICS skip-till-next-match WHERE [s] WITHIN 30 s",
        {},
    ),
    "float": ("RETURN COUNT(*), SUM(B.v) PATTERN SEQ(A, B+) WITHIN 30 s SLIDE 5 s", {"numbers": "float"}),
}

POLICIES = {
    "since": "ONCE[0,20] p(k,v) AND NOT (q(k) SINCE[0,10] r(k,v))",
    "until": "ALWAYS FORALL k, v. p(k,v) IMPLIES EVENTUALLY[0,10] q(k)",
    "joined": "p(k,v) AND ONCE[0,30] r(k,w) AND ONCE[0,10] q(k)",
    "sums": "n <- CNT v; k ONCE[0,15] p(k,v)",
}
SIGNATURE = "p(k: int, v: int) q(k: int) r(k: int, v: int)"

SPECIFICATIONS = {
    "windows": """
input v: Int64
input s: String
output total @1Hz := v.aggregate(over: 10s, using: sum)
output per(key) spawn with s eval when key == s with v + 1
output high eval when v > 20 with v
trigger @1Hz high.hold(or: 0) > 25 "high"
""",
    "texts": """
input v: Int64
input s: String
output of(key) spawn with s eval when key == s with s
output most(key) spawn with s eval @1Hz with v.aggregate(over: 8s, using: pctl75).defaults(to: 0)
output seen := s.offset(by: -3).defaults(to: "none")
trigger v > 25 "high"
""",
    "columns": "input v: Int64\noutput d := v - v.offset(by: -3).defaults(to: 0)\ntrigger d > 20\n",
}


CLAUSES = {
    "row by row": "PARTITION BY k ORDER BY time MEASURES SUM(b.v) AS s, COUNT(*) AS n, LAST(s) AS last PATTERN (a b+) "
    "WITHIN 30 DEFINE a AS v < 20, b AS v > PREV(v)",
    "in batches": "PARTITION BY k ORDER BY time MEASURES MAX(b.v) AS most PATTERN (PERMUTE(a, b) c?) WITHIN 20 "
    "DEFINE a AS s <> 'text 3', b AS v > 10, c AS v > FIRST(v)",
}


def cases() -> dict[str, Case]:
    found: dict[str, Case] = {}
    pushed = parts(events_of(400, "ABC", 5))
    for name, (text, options) in QUERIES.items():
        workload = hamlet.Workload.parse(text)
        made: partial[Any] = partial(hamlet.Engine, workload, **options)
        found["query " + name] = Case(made, partial(hamlet.Engine.restore, workload), pushed)
    renamed = {"A": "p", "B": "q", "C": "r"}
    facts = [[{**each, "type": renamed[each["type"]]} for each in part] for part in parts(events_of(300, "ABC", 6))]
    for name, text in POLICIES.items():
        found["policy " + name] = _policy(text, {}, facts)
    closed = "ALWAYS FORALL k. (EXISTS v. p(k,v)) IMPLIES EVENTUALLY[1,40] q(k)"
    for verdicts, mode in (("all", "local"), ("equivalent", "local"), ("equivalent", "global")):
        found[f"verdicts {verdicts} {mode}"] = _policy(closed, {"verdicts": verdicts, "mode": mode}, facts)
    events = [each for part in pushed for each in part]
    values = parts([{"time": each["time"], "v": each["v"], "s": each["s"]} for each in events])
    for name, text in SPECIFICATIONS.items():
        specification = hamlet.streams.Specification.parse(text)
        made = partial(hamlet.streams.Monitor, specification, time_column="time")
        found["specification " + name] = Case(made, partial(hamlet.streams.Monitor.restore, specification), values)
    schema = pa.schema([("time", "int64"), ("type", "string"), ("k", "int64"), ("v", "int64"), ("s", "string")])
    for name, clause in CLAUSES.items():
        text = f"SELECT * FROM e MATCH_RECOGNIZE ({clause})"
        rows = pushed if name == "row by row" else parts(events[:160], (60,))
        made = partial(hamlet.matching.Matcher, text, schema)
        found["pattern " + name] = Case(made, partial(hamlet.matching.Matcher.restore, text), rows)
    return found


def _policy(text: str, options: dict[str, Any], facts: list[Events]) -> Case:
    policy = hamlet.policies.Policy.parse(text, signature=SIGNATURE)
    made = partial(hamlet.policies.Monitor, policy, **options)
    return Case(made, partial(hamlet.policies.Monitor.restore, policy), facts)


def broken(case: Case, library: Any, n: int, lasting: bool) -> tuple[str, list[str]]:
    """What becomes of a run in which allocation n fails: 'whole', 'error', 'again' or 'refused', and the rows."""
    library.failing_begin(n, lasting)
    try:
        monitor = case.make()
    except (MemoryError, HamletError):
        library.failing_end()
        return "error", []
    rows: list[Any] = []
    how = "whole"
    for place, part in enumerate([*case.pushed, None]):
        if place == len(case.pushed) // 2:
            try:
                monitor = case.restore(monitor.save())
            except (MemoryError, HamletError):  # the one that was saved goes on
                library.failing_end()
                how = "again"
        try:
            rows += monitor.close() if part is None else monitor.push(part)
        except (MemoryError, HamletError):
            library.failing_end()
            how = "again"
            try:  # once more: as if nothing had been, or refused
                monitor.save()
                rows += monitor.close() if part is None else monitor.push(part)
            except HamletError:
                return "refused", []
    library.failing_end()
    return how, sorted(map(repr, rows))


def check(name: str, case: Case, library: Any, stride: int, lasting: bool) -> dict[str, int]:
    """Let each allocation of a case fail in turn; what became of the runs."""
    how, expected = broken(case, library, 0, False)
    assert how == "whole"
    assert expected
    total = library.failing_end()
    counts = {"allocations": total}
    for n in range(1, total + 1, stride):
        how, rows = broken(case, library, n, lasting)
        counts[how] = counts.get(how, 0) + 1
        if how in ("whole", "again") and rows != expected:
            sys.exit(f"{name}: after allocation {n} of {total} failed, rows differ ({how})")
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", required=True)
    parser.add_argument("--stride", type=int, default=1)
    parser.add_argument("--lasting", action="store_true")
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    library = ctypes.CDLL(given.library)
    library.failing_begin.argtypes = [ctypes.c_long, ctypes.c_int]
    library.failing_end.restype = ctypes.c_long
    for name, case in cases().items():
        if given.only in name:
            counts = check(name, case, library, given.stride, given.lasting)
            sys.stdout.write(f"{name} {counts}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
