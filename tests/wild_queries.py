"""Random workloads at the edges: values around 2^31, 2^53 and 2^63, times over all of int64, silences, many values.

``python -m tests.compare_random --wild --seeds 0:1000`` compares. A case is one of `tests.strategies` on another scale,
or more events than 64 with ties under a pattern whose trends brute force still lists. Each is run over dicts and over
files that differ in columns, and pushed in 1, 63 to 66 or 100,000 events, saved in between, with options by lot.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

import hamlet
from hamlet import oracle
from hamlet.frontend.time_column import TIME_COLUMNS
from hamlet.language.parser import parse
from tests.case_files import oracle_options
from tests.comparison import difference, in_any_order, in_file_order
from tests.strategies import DEFAULT, Case, Features, random_case

FEATURES = (
    replace(DEFAULT, events=8),
    replace(DEFAULT, events=8, distinct=True, having=True, top=True),
    replace(DEFAULT, events=8, semantics=True, span=True),
    replace(DEFAULT, events=8, session=True),
    replace(DEFAULT, events=7, everything=True, matched=True, taken=True),
)
PLAIN = Features(events=8, local=False, adjacent=False)  # no arithmetic: values may be as large as they fit
CENTRES = (0, 0, 2**31 - 1, -(2**31), 2**53 - 1, 2**53 + 1, -(2**53))
FAR_CENTRES = (2**63 - 9, -(2**63) + 9, 2**62, 2**32)
SCALES = (1, 1, 7, 1000, 2**31, 2**40, 2**50)
BASES = (0, 0, -(2**61), -(2**53), -1, 2**31 - 1, 2**53, 2**61)
SIZES = (1, 63, 64, 65, 66, 100_000)
_LENGTH = re.compile(r"\b(\d+) (s|ms)\b")
MOST = 2**61 - 1


def wild_case(seed: int) -> Case:
    """The case of a number."""
    draw = random.Random(seed)
    if draw.random() < 0.3:
        text, events, options = many_values(draw)
    else:
        plain = draw.random() < 0.4
        text, events, options = random_case(seed, PLAIN if plain else draw.choice(FEATURES))
        enlarge(draw, events, (*CENTRES, *FAR_CENTRES) if plain else CENTRES)
    return rescaled(draw, text, events, options)


def many_values(draw: random.Random) -> Case:
    """More than 64 values with ties, counted under patterns whose trends are few."""
    count = draw.randint(65, 150)
    kind = draw.choice(["int", "float", "text", "mixed"])
    widens = draw.randrange(count)
    time, events = 0, []
    for place in range(count):
        time += draw.choice([0, 0, 0, 1]) if draw.random() < 0.9 else draw.choice([0, 3, 40])
        value: Any = draw.choice([place, draw.randrange(count)])
        if kind == "float" or (kind == "mixed" and place >= widens):
            value += 0.5
        event: dict[str, Any] = {"time": time, "type": draw.choice("AAB"), "k": draw.choice([1, 1, 2]), "v": value}
        if kind == "text":
            event["s"] = f"t{value}"
        events.append(event)
    pattern = draw.choice(["A", "A", "SEQ(A, B)", "SEQ(A, NOT B nb, A a)", "A OR B"])
    counted = "A.s" if kind == "text" else "A.v"
    items = [
        "COUNT(*) AS m",
        f"COUNT(DISTINCT {counted}) AS d",
        "MIN(A.v)",
        "MAX(A.v)",
        "SUM(A.v)",
        "AVG(A.v)",
        "COUNT(A)",
    ]
    chosen = draw.sample(items, draw.randint(1, 4))
    if "NOT" in pattern:
        del events[80:]  # brute force looks at all between two
    semantics = draw.choice(["", "", "", " SEMANTICS skip-till-next-match"]) if pattern.startswith("SEQ(A, B") else ""
    keys = draw.choice(["", "", " WHERE [k]", " WHERE [k] GROUP-BY k"])
    width = draw.choice([5, 20, 1000])
    slide = draw.choice(["", "", f" SLIDE {max(1, width // 3)} s"])
    return f"RETURN {', '.join(chosen)} PATTERN {pattern}{semantics}{keys} WITHIN {width} s{slide}", events, {}


def enlarge(draw: random.Random, events: list[dict[str, Any]], centres: tuple[int, ...]) -> None:
    """Let values of v lie around other numbers, from a place on or throughout."""
    centre = draw.choice(centres)
    since = draw.choice([0, draw.randrange(len(events) + 1)])
    for event in events[since:]:
        value = event.get("v")
        if isinstance(value, int) and draw.random() < 0.8:
            event["v"] = min(max(value + centre, -(2**63)), 2**63 - 1)
        elif isinstance(value, float) and abs(centre) < 2**60:
            event["v"] = value + centre


def rescaled(draw: random.Random, text: str, events: list[dict[str, Any]], options: dict[str, Any]) -> Case:
    """The case with times, and lengths of time, of another scale; perhaps with a silence."""
    scale, base = draw.choice(SCALES), draw.choice(BASES)
    if "time" in re.sub(r"\bWITHIN\b.*", "", text):
        scale, base = 1, draw.choice([0, 2**31, 2**53])  # times are compared with small numbers
    found = [{**event, "time": event["time"] * scale} for event in events]
    if draw.random() < 0.3:
        place, gap = draw.randrange(len(found)), draw.choice([2**20, 2**31, 2**53, 2**58])
        for event in found[place:]:
            event["time"] += gap
    times = [event["time"] for event in found]
    longest = max((int(match[1]) * scale for match in _LENGTH.finditer(text)), default=0)
    low, high = -MOST + 3 * longest, MOST - 3 * longest
    shift = min(max(base, low - min(times)), high - max(times))
    for event in found:
        event["time"] += shift
    text = _LENGTH.sub(lambda match: f"{int(match[1]) * scale} {match[2]}", text)
    return text, found, options


def pushed(draw: random.Random, case: Case, extra: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The rows of an engine that gets pieces of these sizes, saved in between."""
    text, events, options = case
    workload = hamlet.Workload.parse(text)
    engine = hamlet.Engine(workload, **options, **extra)
    waiting = sorted(events, key=lambda event: event["time"])
    rows: list[Mapping[str, Any]] = []
    while waiting:
        size = draw.choice(SIZES)
        piece, waiting = waiting[:size], waiting[size:]
        rows += engine.push(piece)
        if draw.random() < 0.2:
            rows += engine.advance(piece[-1]["time"])
        if draw.random() < 0.3:
            engine = hamlet.Engine.restore(workload, engine.save())
    rows += engine.close()
    return in_file_order(rows, [query.name for query in parse(text).queries])


def in_files(
    draw: random.Random,
    events: list[dict[str, Any]],
    folder: Path,
    endings: Sequence[str] = ("csv", "jsonl", "parquet"),
) -> list[str]:
    """Files of one format whose columns stand in another order; one without values is left out where it may be."""
    ending = draw.choice(endings)
    parts: list[list[dict[str, Any]]] = [[] for _ in range(draw.randint(1, 3))]
    for event in events:
        draw.choice(parts).append(event)
    names = list(dict.fromkeys(name for event in events for name in event))
    whole = pa.Table.from_pylist([{name: event.get(name) for name in names} for event in events])
    paths = []
    for place, part in enumerate(each for each in parts if each):
        own = draw.sample(names, len(names))
        table = pa.Table.from_pylist([{name: event.get(name) for name in own} for event in part], _schema(whole, own))
        empty = [
            name for name in own if table.column(name).null_count == len(table) and name not in (*TIME_COLUMNS, "type")
        ]
        table = table.drop_columns(empty)
        path = folder / f"{place}.{ending}"
        if ending == "csv":
            pa_csv.write_csv(table, path)
        elif ending == "parquet":
            pq.write_table(table, path, row_group_size=draw.choice([1, 7, 1000]))
        else:
            path.write_text("".join(json.dumps(each) + "\n" for each in table.to_pylist()))
        paths.append(str(path))
    return paths


def _schema(whole: pa.Table, names: list[str]) -> pa.Schema:
    return pa.schema([whole.schema.field(name) for name in names])


def has_file_form(events: list[dict[str, Any]]) -> bool:
    """Whether files say the same as the dicts: each attribute that is named has a value, none is NaN or huge."""
    names = {name for event in events for name in event}
    values = [event.get(name) for event in events for name in names]
    if any(isinstance(value, int) and not -(2**63) <= value < 2**63 for value in values):
        return False
    if any(isinstance(value, float) and value != value for value in values):
        return False
    return all(any(event.get(name) is not None for event in events) for name in names) and _one_type(events)


def _one_type(events: list[dict[str, Any]]) -> bool:
    """Whether Arrow takes columns as they are: no integers among floats, which files would round."""
    kinds: dict[str, set[type]] = {}
    for event in events:
        for name, value in event.items():
            if value is not None:
                kinds.setdefault(name, set()).add(type(value))
    return all(len(each) == 1 for each in kinds.values())


def compare_wild(seed: int, folder: Path) -> str:
    """Compare one seed: what became of it, 'equal' or 'refused'; raises AssertionError with a program."""
    from tests.compare_random import magnitudes, snippet

    case = wild_case(seed)
    text, events, options = case
    draw = random.Random(seed + 1)
    extra: dict[str, Any] = {}
    if draw.random() < 0.2:
        extra["numbers"] = "float"
    if draw.random() < 0.3:
        extra["sharing"] = draw.choice(["static", "never"])
    if draw.random() < 0.2:
        extra["threads"] = 2
    floats = "numbers" in extra
    expected = oracle.evaluate(parse(text), events, **oracle_options(options))
    workload = hamlet.Workload.parse(text)
    ways: dict[str, Any] = {
        "run": lambda: hamlet.run(workload, draw.sample(events, len(events)), **options, **extra).rows(),
        "push": lambda: pushed(draw, case, extra),
    }
    if has_file_form(events):
        paths = in_files(draw, events, folder)
        ways["files"] = lambda: hamlet.run(workload, paths, missing_columns="null", **options, **extra).rows()
    for way, rows in ways.items():
        try:
            got, wanted = rows(), expected
        except hamlet.UnsupportedError:
            return "refused"
        except hamlet.WorkloadError as error:
            if way == "files" and "the input has no column" in str(error):  # which no dict names either
                continue
            raise AssertionError(f"{way}: {error}\n{snippet(case, extra)}") from error
        except Exception as error:
            raise AssertionError(f"{way}: {type(error).__name__}: {error}\n{snippet(case, extra)}") from error
        if "SESSION" in text and way == "push":
            got, wanted = in_any_order(got), in_any_order(expected)
        wrong = difference(got, wanted, floats=floats)
        if wrong:
            wrong = difference(got, wanted, magnitudes=magnitudes(case) if wanted is expected else None, floats=floats)
        if wrong:
            raise AssertionError(f"{way}: {wrong}\n{snippet(case, extra)}")
    return "equal"
