"""Compares the engine with the oracle over many random cases: ``python -m tests.compare_random --seeds 0:10000``.

Prints the first case that differs as a program that can be pasted, and ends with exit code 1. Options of `hamlet.run`
are given as ``--option numbers=float --option threads=2``.
"""

from __future__ import annotations

import argparse
import ast
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import hamlet
from hamlet import oracle
from hamlet.engine import class_runner
from hamlet.engine.options import Options
from hamlet.engine.sharing import Sharing
from hamlet.language.parser import parse
from hamlet.language.query import Aggregate
from hamlet.oracle.aggregates import Occurrences, aggregate
from hamlet.parallel.time import side_by_side
from hamlet.parallel.time.mapped import MappedChunks
from hamlet.parallel.time.whole import WholeChunks
from tests.case_files import oracle_options
from tests.comparison import difference, in_any_order, in_file_order, table
from tests.strategies import CORE, DEFAULT, Case, Features, random_case

FEATURES = {
    "core": CORE,
    "default": DEFAULT,
    "conjunction": Features(conjunction=True),
    "broadcast": Features(broadcast=True),
    "adjacent": Features(queries=1, events=12, negation=False, windows=False),
    "negation": Features(queries=1, events=12, windows=False, nulls=False, aggregates=False),
    "sharing": Features(queries=6, adjacent=False),
    "tumbling": Features(queries=6, adjacent=False, equivalence=False, tumbling=True),
    "large tumbling": Features(queries=4, adjacent=False, equivalence=False, local=False, tumbling=True, large=True),
    "logged": Features(queries=6, events=12, adjacent=False, matched=True, taken=True, once=True),
    "logged values": Features(queries=5, events=14, adjacent=False, local=False, taken=True, once=True),
    "logged events": Features(queries=6, events=12, adjacent=False, matched=True, once=True),
    "compared events": Features(queries=4, events=12, matched=True, once=True),
    "compared sums": Features(queries=3, events=12, negation=False, matched=True),
    "compared shared": Features(queries=3, events=12, matched=True, conjunction=True, broadcast=True),
    "large": Features(local=False, adjacent=False, large=True),
    "large pairs": Features(local=False, adjacent=False, large=True, conjunction=True),
}
PARTS = (
    "semantics",
    "span",
    "session",
    "everything",
    "expressions",
    "having",
    "top",
    "distinct",
    "matched",
    "taken",
    "chained",
    "broadcast",
    "conjunction",
)


def features_of(names: str) -> Features:
    """A set of features by its name, or the default ones with some more, as ``semantics,span``."""
    if names in FEATURES:
        return FEATURES[names]
    wanted = PARTS if names == "all" else tuple(names.split(","))
    unknown = set(wanted).difference(PARTS)
    if unknown:
        raise argparse.ArgumentTypeError(
            f"{', '.join(sorted(unknown))}: the names are {', '.join([*FEATURES, *PARTS])}"
        )
    return replace(DEFAULT, events=9, **dict.fromkeys(wanted, True))


refused: list[int] = []  # seeds of cases that the engine refuses, in so many words


@contextmanager
def windows_at_once() -> Iterator[None]:
    """Windows that are whole in a batch are computed at once, however few events it has."""
    with mock.patch.object(class_runner, "WHOLE_FROM", 0):
        yield


@contextmanager
def chunks_of_few_events(seed: int) -> Iterator[None]:
    """Threads compute chunks of an event or a few wherever a stream may be cut."""
    sizes = (1, 1 + seed % 4)
    with (
        mock.patch.object(MappedChunks, "sizes", sizes),
        mock.patch.object(WholeChunks, "sizes", sizes),
        mock.patch.object(side_by_side, "MOST_HELD", 3 + seed % 7),
    ):
        yield


@contextmanager
def decisions_by_lot(seed: int) -> Iterator[None]:
    """Every decision about sharing falls at random, whatever the options say."""
    by_lot = property(lambda options: Sharing("random", trace=seed % 2 == 1, seed=seed))
    with mock.patch.object(Options, "decided_by", by_lot):
        yield


def run(case: Case, extra: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of `hamlet.run`."""
    text, events, options = case
    rows: list[dict[str, Any]] = hamlet.run(hamlet.Workload.parse(text), events, **options, **extra).rows()
    return rows


def push(case: Case, extra: Mapping[str, Any], seed: int, *, saved: bool = False) -> list[Mapping[str, Any]]:
    """The rows of `hamlet.Engine`, pushed in random pieces: events in time order, equal times in any order.

    Where it is `saved`, the engine is often saved between two pieces, and another one goes on.
    """
    text, events, options = case
    source = random.Random(seed)
    workload = hamlet.Workload.parse(text)
    engine = hamlet.Engine(workload, **options, **extra)
    shuffled = sorted(source.sample(events, len(events)), key=lambda event: event["time"])
    rows: list[Mapping[str, Any]] = []
    while shuffled:
        size = source.randint(1, len(shuffled))
        piece, shuffled = shuffled[:size], shuffled[size:]
        rows += engine.push(piece)
        if source.random() < 0.3:
            rows += engine.advance(piece[-1]["time"])
        if saved and source.random() < 0.7:
            engine = hamlet.Engine.restore(workload, engine.save())
    rows += engine.close()
    return in_file_order(rows, [query.name for query in parse(text).queries])


def compare(case: Case, extra: Mapping[str, Any], seed: int, ways: Sequence[str] = ("run", "push")) -> str | None:
    """A report where one of the ways to run a case gives other rows than the oracle, else None."""
    text, events, options = case
    expected = oracle.evaluate(parse(text), events, **oracle_options(options))
    floats = extra.get("numbers") == "float"
    absolute = magnitudes(case) if floats else None
    for way in ways:
        try:
            got = run(case, extra) if way == "run" else push(case, extra, seed, saved=way == "save")
        except hamlet.UnsupportedError:  # a row of a query beside events of several orders
            refused.append(seed)
            continue
        except Exception as error:
            return f"{way} raised {type(error).__name__}: {error}\n{snippet(case, extra)}\nexpected\n{table(expected)}"
        if way != "run" and "SESSION" in text:  # sessions of several groups begin at one time and close one by one
            got, wanted, bound = in_any_order(got), in_any_order(expected), None
        else:
            wanted, bound = expected, absolute
        wrong = difference(got, wanted, magnitudes=bound, floats=floats)
        if wrong and absolute is None and wanted is expected:  # sums of doubles that cancel have their bound here, too
            wrong = difference(got, expected, magnitudes=magnitudes(case))
        if wrong:
            return f"{way}: {wrong}\n{snippet(case, extra)}\ngot\n{table(got)}\nexpected\n{table(expected)}"
    return None


def magnitudes(case: Case) -> list[dict[str, Any]]:
    """The oracle's rows with sums of absolute values in place of sums: what errors are bounded by."""

    def absolute(asked: Aggregate, seen: Occurrences) -> Any:
        if asked.function in ("SUM", "AVG"):
            seen = replace(seen, values=[abs(value) for value in seen.values])
        return aggregate(asked, seen)

    text, events, options = case
    return oracle.evaluate(parse(text), events, **oracle_options(options), shown=absolute)


def parsed(option: str) -> tuple[str, Any]:
    """Name and value of ``NAME=VALUE``; what is no Python literal is text."""
    name, _, value = option.partition("=")
    try:
        return name, ast.literal_eval(value)
    except (SyntaxError, ValueError):
        return name, value


def snippet(case: Case, extra: Mapping[str, Any]) -> str:
    """A case as a program that can be pasted."""
    text, events, options = case
    arguments = "".join(f", {name}={value!r}" for name, value in {**options, **extra}.items())
    lines = ["import hamlet", "inf, nan = float('inf'), float('nan')", 'text = """', text, '"""', "events = ["]
    lines += [f"    {event!r}," for event in events]
    lines += ["]", f"for row in hamlet.run(hamlet.Workload.parse(text), events{arguments}).rows():", "    print(row)"]
    return "\n".join(lines)


def _wild(seeds: range) -> int:
    from tests.wild_queries import compare_wild

    counts: Counter[str] = Counter()
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            try:
                counts[compare_wild(seed, Path(folder))] += 1
            except AssertionError as error:
                sys.stdout.write(f"seed {seed}: {error}\n")
                return 1
    sys.stdout.write(f"{dict(counts)}\n")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the comparison; 0 where all cases agree."""
    parser = argparse.ArgumentParser(prog="python -m tests.compare_random", description="compare engine and oracle")
    parser.add_argument("--seeds", default="0:1000", help="FIRST:LAST, the last excluded, or one seed")
    parser.add_argument("--features", type=features_of, default="default", help="what the cases may contain")
    parser.add_argument("--way", choices=["run", "push", "save"], action="append", help="else run and push")
    parser.add_argument("--failures", type=int, default=1, metavar="N", help="go on until N cases differ")
    parser.add_argument("--decisions", choices=["random"], help="about sharing: by lot, per burst")
    parser.add_argument("--whole", action="store_true", help="take whole windows at once in batches of any size")
    parser.add_argument("--chunks", action="store_true", help="threads compute chunks of a few events")
    parser.add_argument(
        "--wild", action="store_true", help="values, times and streams at the edges (tests.wild_queries)"
    )
    parser.add_argument("--option", action="append", default=[], metavar="NAME=VALUE", help="an option of hamlet.run")
    asked = parser.parse_args(arguments)
    first, _, last = asked.seeds.partition(":")
    seeds = range(int(first), int(last) if last else int(first) + 1)
    if asked.wild:
        return _wild(seeds)
    extra = dict(map(parsed, asked.option))
    started = time.monotonic()
    failures = 0
    for done, seed in enumerate(seeds, start=1):
        with (
            decisions_by_lot(seed) if asked.decisions else nullcontext(),
            windows_at_once() if asked.whole else nullcontext(),
            chunks_of_few_events(seed) if asked.chunks else nullcontext(),
        ):
            report = compare(random_case(seed, asked.features), extra, seed, asked.way or ("run", "push"))
        if report:
            failures += 1
            sys.stdout.write(f"seed {seed}: {report}\n")
            if failures == asked.failures:
                return 1
        if done % 500 == 0 or done == len(seeds):
            kept = f"{done - failures} of {done} cases agree" + f" ({len(set(refused))} refused)" * bool(refused)
            sys.stdout.write(f"{kept}, {time.monotonic() - started:.0f} s\n")
            sys.stdout.flush()
    return int(failures > 0)


if __name__ == "__main__":
    raise SystemExit(main())
