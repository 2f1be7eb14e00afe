"""Evidence of random workloads, and mutants of it, against the checker: ``python -m tests.compare_trend_evidence``.

The paths of a row's steps must be the trends that the oracle lists; counts and rows follow from them.
"""

from __future__ import annotations

import argparse
import copy
import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import hamlet
from hamlet import oracle
from hamlet.checker import EvidenceError, check
from hamlet.errors import HamletError, OptionError, UnsupportedError
from hamlet.language.query import Taken
from hamlet.output.plain import json_value
from hamlet.why.trends.why import of_query as why
from tests.case_files import oracle_options
from tests.compare_random import features_of
from tests.comparison import accepted_mutants, by_seeds
from tests.strategies import random_case
from tests.why.evidence_by_definition import steps_of, steps_told

_NOT_FOR_THE_CHECK = ("sharing", "benefit", "numbers", "count_type", "threads")


def paths_of(steps: Sequence[Mapping[str, Any]]) -> list[tuple[tuple[int, str], ...]]:
    """The trends that steps stand for."""
    found: list[tuple[tuple[int, str], ...]] = []
    ways: list[list[tuple[tuple[int, str], ...]]] = []
    for step in steps:
        pair = step["at"], step["variable"]
        own = [(pair,)] if step["begins"] else []
        own += [(*path, pair) for before in step["after"] for path in ways[before]]
        assert len(own) == step["count"]
        ways.append(own)
        found += own if step["ends"] else []
    return found


def mutated(draw: random.Random, evidence: Mapping[str, Any]) -> dict[str, Any]:
    """Evidence with one thing changed."""
    found: dict[str, Any] = copy.deepcopy(dict(evidence))
    lists = [each for each in found.get("operands") or [found.get("steps")] if each]
    kind = draw.randrange(9 + (1 if found.get("rows") else 0) + 3 * ("because" in found))
    if kind > 8:
        row = draw.choice(found["rows"])
        if kind == 9:
            found["rows"].remove(row)
        elif kind == 10:
            _change(draw, row["row"])
        elif kind == 11:
            draw.choice([step for steps in lists for step in steps if step["at"] < 0])["at"] = -draw.randrange(1, 99)
        else:
            place = draw.randrange(len(found["because"]))
            found["because"][place] = mutated(draw, found["because"][place])
        return found
    if not lists or kind == 8:
        _change(draw, found["row"])
        return found
    steps = draw.choice(lists)
    step = draw.choice(steps)
    if kind == 0:
        step["count"] += draw.choice([-1, 1])
    elif kind == 1:
        step["trends"] += draw.choice([-1, 1])
    elif kind == 2 and step["after"]:
        step["after"].remove(draw.choice(step["after"]))
    elif kind == 3:
        step["at"] += draw.choice([-1, 1])
    elif kind == 4:
        step["begins"] = not step["begins"]
    elif kind == 5:
        step["ends"] = not step["ends"]
    elif kind == 6:
        steps.remove(step)
    else:
        step["variable"] = draw.choice(steps)["variable"]
    return found


def _change(draw: random.Random, row: dict[str, Any]) -> None:
    name = draw.choice([name for name in row if name != "query" and not name.startswith("approx")])
    row[name] = row[name] + 1 if isinstance(row[name], int | float) else 7


def compare(seed: int, features: str, mutants: int = 3) -> Counter[str]:
    """Give evidence for rows of one random workload and for some that are not there."""
    counts: Counter[str] = Counter()
    case = random_case(seed, features_of(features))
    text, events, options = case
    try:
        workload = hamlet.Workload.parse(text)
        rows = hamlet.run(workload, events, **options).rows()
    except HamletError:
        return Counter(refused=1)
    draw = random.Random(seed)
    wanted = draw.sample(rows, min(len(rows), 4))
    absent = [{**row, **{name: 99 for name in row if name in _grouping(workload, row)}} for row in wanted[:1]]
    for row in [*wanted, *(each for each in absent if each not in rows)]:
        try:
            evidence = why(workload, events, row, **options).data
        except UnsupportedError:
            counts["unsupported"] += 1
            continue
        except OptionError as error:
            if "rows match" not in str(error) and "in the row, too" not in str(error):
                raise AssertionError(f"seed {seed}: {text}\nrow {row}") from error
            counts["ambiguous"] += 1
            continue
        where = f"seed {seed} ({features}): {text}\n{options}\nevents {events}\nrow {row}\n{evidence}"
        assert evidence["holds"] is (row in rows), where
        _same_trends(workload, events, options, evidence, where)
        given = {name: value for name, value in options.items() if name not in _NOT_FOR_THE_CHECK}
        try:
            check(text, events, evidence, **given)
        except EvidenceError as error:
            raise AssertionError(f"{error}\n{where}") from error
        counts["rows"] += 1
        changed = (mutated(draw, evidence) for _ in range(mutants))
        for other in accepted_mutants(changed, evidence, partial(check, text, events, **given), counts):
            if other["row"] == evidence["row"] or other["holds"] is not (other["row"] in rows):
                raise AssertionError(f"accepted {other}\n{where}")
    return counts


def _grouping(workload: hamlet.Workload, row: Mapping[str, Any]) -> tuple[str, ...]:
    return next(each.grouping for each in workload.analysis.queries if each.query.name == row["query"])


def _same_trends(
    workload: hamlet.Workload, events: Any, options: Mapping[str, Any], evidence: Mapping[str, Any], where: str
) -> None:
    if not isinstance(evidence["window"][0], int):
        return
    parsed = workload.analysis.text
    query = next(each for each in parsed.queries if each.name == evidence["row"]["query"])
    given = oracle_options(options)
    below = {each.name: each for each in parsed.queries} if "rows" in evidence else {}
    every = oracle.evaluate(parsed, events, **given) if below else []
    rows = {name: [row for row in every if row["query"] == name] for name in below}
    listed = oracle.trends(query, events, declarations=parsed.declarations, rows=rows, **given)
    group = evidence["group"]
    lists = evidence.get("operands") or [evidence["steps"]]
    if below:
        events, lists = _with_rows(events, rows, evidence, lists, where)
    taken = [each for each in query.group_by if isinstance(each, Taken)]
    for operand, steps in enumerate(lists[:2]):
        expected = sorted(
            each.pairs
            for each in listed
            if each.window_start == evidence["window"][0] and each.window_end == evidence["window"][1]
            if each.operand == operand
            and all(dict(each.key).get(name, value) == value for name, value in group.items())
            if all(_taken(events, each.pairs, asked) == group[asked.column] for asked in taken)
        )
        assert sorted(paths_of(steps)) == expected, where
    own = [
        [
            each
            for each in listed
            if [each.window_start, each.window_end] == evidence["window"] and each.operand == operand
            if all(repr(dict(each.key).get(name, value)) == repr(value) for name, value in group.items())
            if all(_taken(events, each.pairs, asked) == group[asked.column] for asked in taken)
        ]
        for operand in range(2)
    ]
    shared = {(each.pairs, each.key) for each in own[1]}
    own.append([each for each in own[0] if (each.pairs, each.key) in shared])
    for place, steps in enumerate(lists):
        patterns = oracle.operands(query) if place == 2 else [oracle.operands(query)[place]]
        known = steps_of(
            patterns,
            [(each.pairs, {name: v for name, v in each.key if name not in group}) for each in own[place]],
            query.longest is not None,
            lambda pairs: [_beginning(events, pairs, asked) for asked in taken],
        )
        assert steps_told(steps) == known, f"{steps_told(steps)}\nnot {known}\n{where}"


def _with_rows(
    events: Any, rows: Mapping[str, list[dict[str, Any]]], evidence: Mapping[str, Any], lists: Any, where: str
) -> tuple[list[Any], list[Any]]:
    """The events with the rows of other queries behind them, and steps that name their places there."""
    every = [json_value(row) for own in rows.values() for row in own]
    places: dict[int, int] = {}
    for each in evidence["rows"]:
        found = [
            n for n, row in enumerate(every) if _alike(row, each["row"]) and len(events) + n not in places.values()
        ]
        assert found, f"no row {each}\n{where}"
        places[each["at"]] = len(events) + found[0]
    moved = [[{**step, "at": places.get(step["at"], step["at"])} for step in steps] for steps in lists]
    return [*events, *(row for own in rows.values() for row in own)], moved


def _alike(one: Mapping[str, Any], two: Mapping[str, Any]) -> bool:
    """Whether two rows are one, but for the last digits of doubles."""
    return one.keys() == two.keys() and all(
        math.isclose(one[name], two[name], rel_tol=1e-9)
        if isinstance(one[name], float) and isinstance(two[name], float)
        else one[name] == two[name]
        for name in one
    )


def _beginning(events: Any, pairs: Sequence[tuple[int, str]], asked: Taken) -> Any:
    """What a beginning has taken; nothing is not NULL, since a first event may still come."""
    return _taken(events, pairs, asked) if any(variable == asked.variable for _, variable in pairs) else "nothing"


def _taken(events: Any, pairs: Sequence[tuple[int, str]], asked: Taken) -> Any:
    bound = [events[place] for place, variable in pairs if variable == asked.variable]
    if asked.attribute is None:
        return len(bound)
    value = bound[0 if asked.function == "FIRST" else -1].get(asked.attribute) if bound else None
    return None if value != value else value


def main() -> None:
    """Compare a range of seeds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--features", default="core")
    parser.add_argument("--mutants", type=int, default=3, help="of each evidence")
    by_seeds(lambda seed, given: compare(seed, given.features, given.mutants), "0:300", parser, refuses=True)


if __name__ == "__main__":
    main()
