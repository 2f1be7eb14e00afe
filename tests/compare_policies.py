"""Random policies against the oracle: ``python -m tests.compare_policies --seeds 0:10000``."""

from __future__ import annotations

import argparse
import random
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from hamlet.errors import DataError
from hamlet.frontend.time_column import TIME_COLUMNS
from hamlet.oracle.policies import Oracle
from hamlet.policies import Monitor, Policy, PolicyError, run
from hamlet.policies.analysis.rewriting import goal
from hamlet.policies.plan.evaluation import Evaluation
from hamlet.policies.syntax.signature import Signature
from tests.comparison import by_seeds, whole
from tests.random_matches import random_matching
from tests.random_policies import SIGNATURE, Point, formula, random_log, random_policy, wild
from tests.wild_queries import SIZES, has_file_form, in_files

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


def expected(policy: Policy, log: list[Point], negate: bool = False, kind: str = "int") -> list[Row]:
    """The oracle's rows, in order."""
    asked, names, _ = goal(policy.formula, negate)
    return sorted(Oracle(asked, log, kind).rows(names))


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


def compare_wild(seed: int, *, matching: bool = False) -> str:
    """Compare one seed with values, times and bounds of any size: a run over dicts, and pushes of all sizes."""
    draw = random.Random(seed)
    text = random_matching(draw, formula) if matching else random_policy(draw)
    text, log, signature = wild(draw, text, random_log(draw))
    log = [point for place, point in enumerate(log) if not place or point[0] > log[place - 1][0]]
    try:
        policy = Policy.parse(text, signature)
        monitor = Monitor(policy)
    except PolicyError:
        return "refused"
    kind = policy.signature["p", 1].types[0]
    if kind != "int" and text.count("<-") > 1:
        return "refused"  # the oracle knows one type of what is aggregated
    wanted = expected(policy, log, kind=kind)
    events = [event for point in events_of(log) for event in point]
    draw.shuffle(events)
    found = [("run", rows_of(run(policy, whole(draw, events)).rows()))]
    events.sort(key=lambda event: event["time"])
    rows, place, time = [], 0, draw.choice(TIME_COLUMNS)
    while place < len(events):
        count = draw.choice(SIZES)
        rows += monitor.push([named(event, time) for event in whole(draw, events[place : place + count])])
        place += count
        if draw.random() < 0.2:
            monitor = Monitor.restore(policy, monitor.save())
    found.append(("pushed", rows_of(rows + monitor.close())))
    if has_file_form(events):
        with tempfile.TemporaryDirectory() as folder:
            typed = ("jsonl", "parquet")  # a column of digits is no text in CSV
            paths = in_files(draw, [named(event, time) for event in events], Path(folder), typed)
            try:
                found.append(("files", rows_of(run(policy, paths, missing_columns="null").rows())))
            except DataError as error:
                if "there is no column" not in str(error):  # of a predicate that never comes
                    raise
    for way, told in found:
        if repr(told) != repr(wanted) and (told != wanted or kind != "float"):  # -0.0 is 0.0
            lines = [f"seed {seed}: {text}", signature, f"log {log}", f"oracle {wanted}", f"{way}  {told}"]
            raise AssertionError("\n".join(lines))
    return "equal"


def named(event: dict[str, Any], time: str) -> dict[str, Any]:
    """An event whose time column is called otherwise."""
    return {time if name == "time" else name: value for name, value in event.items()}


def events_of(log: list[Point]) -> list[list[dict[str, Any]]]:
    """The events of each time-point; one of a time-point without tuples is of a type that is no predicate."""
    found = []
    for time, tables in log:
        events: list[dict[str, Any]] = []
        for (name, _), tuples in tables.items():
            events += [{"time": time, "type": name, **dict(zip("ab", row, strict=False))} for row in sorted(tuples)]
        found.append(events or [{"time": time, "type": "nothing"}])
    return found


def rows_of(rows: list[dict[str, Any]]) -> list[Row]:
    """Rows as the oracle gives them."""
    return [(row["time"], row["time_point"], tuple(list(row.values())[3:])) for row in rows]


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
    parser.add_argument("--matching", action="store_true", help="TRIGGER, RELEASE, MATCHP, MATCHF and LETPAST")
    parser.add_argument("--wild", action="store_true", help="values, times and bounds of any type and size")

    def one(seed: int, given: argparse.Namespace) -> Counter[str]:
        chosen = compare_wild if given.wild else compare
        return Counter([chosen(seed, matching=given.matching)])

    by_seeds(one, "0:1000", parser)


if __name__ == "__main__":
    main()
