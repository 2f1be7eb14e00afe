"""Random policies against the oracle: ``python -m tests.compare_policies --seeds 0:10000``."""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa

from hamlet.oracle.policies import Oracle
from hamlet.policies import Policy, PolicyError
from hamlet.policies.analysis.rewriting import goal
from hamlet.policies.plan.evaluation import Evaluation
from hamlet.policies.syntax.signature import Signature
from tests.random_matches import random_matching
from tests.random_policies import SIGNATURE, Point, formula, random_log, random_policy

ARROW = {"int": pa.int64(), "string": pa.string(), "float": pa.float64()}
Row = tuple[int, int, tuple[Any, ...]]


def tables_of(signature: Signature, points: list[Point]) -> tuple[np.ndarray, dict[tuple[str, int], Any]]:
    """Time-points as the evaluation takes them."""
    times = np.array([time for time, _ in points], np.int64)
    tables = {}
    for schema in signature:
        key = schema.name, schema.arity
        found = [(place, row) for place, (_, rows) in enumerate(points) for row in sorted(rows.get(key, ()))]
        if found:
            fields = [
                pa.array([row[column] for _, row in found], ARROW[kind]) for column, kind in enumerate(schema.types)
            ]
            tables[key] = (np.array([place for place, _ in found], np.int64), fields)
    return times, tables


def evaluated(policy: Policy, log: list[Point], cuts: list[int], negate: bool = False) -> list[Row]:
    """The rows, with the log cut into batches."""
    evaluation = Evaluation([policy], negate=negate)
    answers = []
    for low, high in zip([0, *cuts], [*cuts, len(log)], strict=True):
        answers += evaluation.feed(*tables_of(policy.signature, log[low:high]))
    answers += evaluation.close()
    rows: list[Row] = []
    for answer in answers:
        values = list(zip(*answer.columns, strict=True)) if answer.columns else [()] * len(answer)
        rows += list(zip(answer.times.tolist(), answer.points.tolist(), values, strict=True))
    return rows


def expected(policy: Policy, log: list[Point], negate: bool = False) -> list[Row]:
    """The oracle's rows, in order."""
    asked, names, _ = goal(policy.formula, negate)
    return sorted(Oracle(asked, log).rows(names))


def compare(seed: int, *, matching: bool = False) -> str:
    """Compare one seed, of TRIGGER, RELEASE, MATCHP, MATCHF and LETPAST or of all else: what became of it."""
    draw = random.Random(seed)
    text = random_matching(draw, formula) if matching else random_policy(draw)
    log = random_log(draw)
    try:
        policy = Policy.parse(text, SIGNATURE)
        Evaluation([policy])
    except PolicyError:
        return "refused"
    _compare_negation(policy, log)
    wanted = expected(policy, log)
    cuts = sorted(draw.randrange(len(log) + 1) for _ in range(draw.randrange(4)))
    for each in ([], cuts, list(range(1, len(log)))):
        found = evaluated(policy, log, each)
        if found != wanted:
            lines = [f"seed {seed}: {text}", f"log {log}", f"cuts {each}", f"oracle {wanted}", f"found  {found}"]
            raise AssertionError("\n".join(lines))
    return "equal"


def _compare_negation(policy: Policy, log: list[Point]) -> None:
    try:
        Evaluation([policy], negate=True)
    except PolicyError:
        return
    found, wanted = evaluated(policy, log, [], True), expected(policy, log, True)
    if found != wanted:
        raise AssertionError(f"the negation of {policy}\nlog {log}\noracle {wanted}\nfound  {found}")


def main() -> None:
    """Compare a range of seeds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", default="0:1000")
    parser.add_argument("--matching", action="store_true", help="TRIGGER, RELEASE, MATCHP, MATCHF and LETPAST")
    given = parser.parse_args()
    low, high = map(int, given.seeds.split(":"))
    counts: Counter[str] = Counter()
    for seed in range(low, high):
        counts[compare(seed, matching=given.matching)] += 1
    sys.stdout.write(f"{dict(counts)}\n")


if __name__ == "__main__":
    main()
