"""Logs of events that several queries share: matched events, and trends by what they took, counted when windows close.

The oracle says what rows are; other workloads that must give the same are those of one query each, and those that take
no part in a log since they count trends whose neighbours are compared in a way that always holds.
"""

from __future__ import annotations

import datetime
import math
import random
import re
import time
from typing import Any

import pyarrow as pa
import pytest

import hamlet
from hamlet import oracle
from hamlet.planner.matching import most_taken
from tests.comparison import difference, in_any_order
from tests.effort import share_of

SHAPES = (
    "SEQ(A, B+)",
    "SEQ(A, B+, C)",
    "(SEQ(A, B+))+",
    "SEQ(A+, C)",
    "SEQ(A, B+, NOT C)",
    "SEQ(NOT C, A, B+)",
    "SEQ(A x, NOT C, B+, A y)",
    "(A OR B)+",
    "SEQ(A x+, NOT C, B+, A y*)",
    "(SEQ(A x, B+, A y))+",
    "(SEQ(A, NOT C, A y*))+",
)
ITEMS = ("COUNT(EVENTS {v})", "SUM(EVENTS {v}.a)", "AVG(EVENTS {v}.b)", "MIN(EVENTS {v}.a)", "MAX(EVENTS {v}.b)")
GROUPS = ("", "FIRST({v}.a)", "LAST({v}.s)", "COUNT({v})", "FIRST({v}.b)")

Events = list[dict[str, Any]]


def stream(seed: int, events: int = 60, keys: int = 2, types: str = "ABC") -> Events:
    """Events in bursts of equal times, some without values."""
    chance = random.Random(seed)
    found: Events = []
    now = 0
    for _ in range(events):
        now += chance.choice((0, 1, 1, 2))
        found.append(
            {
                "time": now,
                "type": chance.choice(types),
                "k": chance.randrange(keys),
                "a": chance.choice((-3, 0, 2, 2, 7, None)),
                "b": chance.choice((-0.0, 0.0, 1.5, float("nan"), None)),
                "s": chance.choice(("x", "y", None)),
            }
        )
    return found


def variable(shape: str) -> str:
    """One that every trend binds, or may bind."""
    return "B" if "B+" in shape else "A"


def workload(within: str, count: int = 24) -> str:
    """Queries of all shapes with every kind of item and group."""
    found = []
    for number in range(count):
        shape, v = SHAPES[number % len(SHAPES)], variable(SHAPES[number % len(SHAPES)])
        group = GROUPS[number % len(GROUPS)].format(v=v)
        more = f", {group}" if group else ""
        item = "COUNT(*)" if group else ITEMS[number % len(ITEMS)].format(v=v) + ", COUNT(*)" * (number % 3 == 0)
        found.append(f"RETURN k{more}, {item} PATTERN {shape} GROUP-BY k{more} {within};\n")
    return "".join(found)


def rows(text: str, events: Events, **options: Any) -> list[dict[str, Any]]:
    return hamlet.run(hamlet.Workload.parse(text), events, **options).rows()


WINDOWS = ("WITHIN 10 s", "WITHIN 12 s SLIDE 5 s", "WITHIN 6 s SLIDE 9 s")
SPANS = (
    "SPAN 6 s WITHIN 10 s",
    "SPAN 7 s WITHIN 12 s SLIDE 5 s",
    "SPAN 4 s WITHIN 6 s SLIDE 9 s",
    "SPAN 9 s WITHIN ALL",
)


@pytest.mark.parametrize("within", [*WINDOWS, *SPANS])
def test_all_shapes_as_the_oracle(within: str) -> None:
    text = workload(within)
    parsed = hamlet.Workload.parse(text)
    for seed in range(2 if within in SPANS else 4):
        events = stream(seed, 26)
        expected = oracle.evaluate(parsed.analysis.text, events)
        found = rows(text, events)
        assert difference(in_any_order(found), in_any_order(expected)) is None
        assert found


def test_what_comes_with_an_event_that_empties_is_emptied_later() -> None:
    """Of one time, B begins a trend beside a C, which a later C ends."""
    events = [{"time": time, "type": type} for time, type in ((3, "B"), (3, "C"), (4, "A"), (5, "C"), (7, "A"))]
    text = "RETURN COUNT(A) AS n, COUNT(*) PATTERN SEQ((A OR B), NOT C, A+) GROUP-BY COUNT(A) WITHIN 8 s"
    expected = oracle.evaluate(hamlet.Workload.parse(text).analysis.text, events)
    assert difference(rows(text, events), expected) is None
    assert [(row["n"], row["count"]) for row in expected] == [(1, 1), (2, 1)]


def test_more_queries_than_a_word_has_bits() -> None:
    """Seventy queries have several words of slots; each has the rows that it has alone."""
    text = workload("WITHIN 15 s", 72)
    events = stream(5, 90)
    together = rows(text, events)
    parts = [each + ";" for each in text.split(";") if each.strip()]
    apart = [row | {"query": f"q{number}"} for number, part in enumerate(parts, 1) for row in rows(part, events)]
    assert in_any_order(together) == in_any_order(apart)


def test_queries_of_as_many_slots_as_a_word_has_bits() -> None:
    """One query has up to all bits of a word."""
    events = [{"time": time, "type": "A", "a": time} for time in range(66)]
    for slots in (30, 31, 32, 33, 47, 62, 63, 64, 65):
        text = f"RETURN COUNT(EVENTS A), SUM(EVENTS A.a) AS s PATTERN A{{{slots}}} WITHIN 1 h; "
        text += f"RETURN COUNT(A) AS n, COUNT(*) PATTERN SEQ(A, A{{{slots - 2}}}, A?) GROUP-BY COUNT(A) WITHIN 1 h"
        found = rows(text, events)
        counts = [(slots - 1, math.comb(66, slots - 1)), (slots, math.comb(66, slots))]
        assert [(row["count_events_A"], row["s"]) for row in found[:1]] == [(66, sum(range(66)))], slots
        assert [(row["n"], row["count"]) for row in found[1:]] == counts, slots


@pytest.mark.parametrize("group", ["FIRST(B.a)", "LAST(B.a)", "COUNT(B)"])
def test_numbers_beyond_a_word(group: str) -> None:
    """Three hundred events of one window: as the operator that keeps trends in nodes, which compares neighbours."""
    events = stream(7, 300, keys=1)
    text = "RETURN {group}, COUNT(*) PATTERN SEQ(A, B+) {where} GROUP-BY {group} WITHIN 1000 s"
    logged = rows(text.format(group=group, where=""), events)
    nodes = rows(text.format(group=group, where="WHERE B.time <= NEXT(B).time + 1"), events)
    assert logged == nodes
    assert max(row["count"] for row in logged).bit_length() > 64


def test_many_values_split_trends() -> None:
    """Of more than a few values trends are counted at the first, or last, event: as where they are kept in nodes."""
    chance = random.Random(4)
    events = [event | {"w": chance.choice((None, *range(40)))} for event in stream(6, 150, keys=1, types="AAABBBC")]
    for shape in SHAPES:
        v = "x" if " x" in shape else variable(shape)
        for group in (f"FIRST({v}.w)", f"LAST({v}.w)"):
            rest = f"PATTERN {shape} GROUP-BY k, {group} WITHIN 60 s SLIDE 40 s"
            split = rows(f"RETURN k, {group}, COUNT(*) {rest}", events)
            nodes = rows(f"RETURN k, {group}, COUNT(*), COUNT(DISTINCT {v}.a) AS d {rest}", events)
            assert split == [{name: value for name, value in row.items() if name != "d"} for row in nodes], rest
            assert len(split) > 20


@pytest.mark.parametrize("within", ["WITHIN 10 s", "WITHIN 12 s SLIDE 5 s", "SPAN 5 s WITHIN 9 s"])
def test_pairs_as_the_oracle(within: str) -> None:
    """Of AND each operand logs its events; rows come at one time, also where one of them looks ahead."""
    shapes = ("SEQ(A, B+) AND SEQ(C, A y)", "SEQ(NOT C, A+) AND A x", "SEQ(A, B+, NOT C c) AND SEQ(A x, C)")
    text = "".join(
        f"RETURN k, {', '.join(each.format(v='A') for each in ITEMS[place:])} PATTERN {shape} GROUP-BY k {within};\n"
        f"RETURN k, {ITEMS[place].format(v='A')}, COUNT(*) PATTERN {shape} GROUP-BY k {within};\n"
        for place, shape in enumerate(shapes)
    )
    parsed = hamlet.Workload.parse(text)
    for seed in range(4):
        events = stream(seed, 16)
        expected = in_any_order(oracle.evaluate(parsed.analysis.text, events))
        assert difference(in_any_order(rows(text, events)), expected) is None
        engine = hamlet.Engine(parsed)
        found = [row for at in range(0, 16, 3) for row in engine.push(events[at : at + 3])] + engine.close()
        assert difference(in_any_order(found), expected) is None


@pytest.mark.parametrize("numbers", ["exact", "float"])
def test_limited_trends_as_those_kept_by_their_beginnings(numbers: Any) -> None:
    """Asked for distinct values too, trends are kept by their beginnings; counts pass 64 bits."""
    events, most = stream(8, 200, keys=1, types="AAAABBBBC"), 0
    for shape in SHAPES:
        v = "x" if " x" in shape else variable(shape)
        items = ", ".join(each.format(v=v) for each in ITEMS)
        asked = [(f"RETURN k, COUNT(*), {items}", "k")]
        asked += [(f"RETURN k, {each}, COUNT(*)", f"k, {each}") for each in (f"FIRST({v}.a)", f"LAST({v}.s)")]
        for item, group in asked:
            rest = f"PATTERN {shape} GROUP-BY {group} SPAN 80 s WITHIN 120 s SLIDE 50 s"
            logged = rows(f"{item} {rest}", events, numbers=numbers)
            lanes = rows(f"{item}, COUNT(DISTINCT {v}.a) AS d {rest}", events, numbers=numbers)
            for row in lanes:
                del row["d"]
            assert difference(in_any_order(logged), in_any_order(lanes)) is None, rest
            most = max(most, *(row["count"] for row in logged))
    assert most > 2**64


@pytest.mark.parametrize("window", ["WITHIN 12 s SLIDE 5 s", "SPAN 8 s WITHIN 12 s SLIDE 5 s"])
def test_pushes_and_saves_in_the_middle_of_windows(window: str) -> None:
    text = workload(window)
    events = stream(9, 70)
    expected = in_any_order(rows(text, events))
    parsed = hamlet.Workload.parse(text)
    engine, found = hamlet.Engine(parsed), []
    for number, event in enumerate(events):
        found += engine.push([event])
        if number % 9 == 4:
            engine = hamlet.Engine.restore(parsed, engine.save())
    found += engine.close()
    assert in_any_order(found) == expected


@pytest.mark.parametrize("keys", ["k", "k, g", "g"])
def test_whole_windows_as_those_that_come_event_by_event(keys: str) -> None:
    """Windows that are whole in a batch have their rows as columns, in order; partitions may be of one group."""
    chance = random.Random(3)
    events = [event | {"g": chance.choice((1, 2, None))} for event in stream(3, 260, keys=2)]
    text = workload("WITHIN 9 s").replace("RETURN k", f"RETURN {keys}").replace("GROUP-BY k", f"GROUP-BY {keys}")
    text = re.sub("(PATTERN .*?) GROUP-BY", r"\1 WHERE [k, g] GROUP-BY", text)
    text += "RETURN LAST(B.a), k, COUNT(*) PATTERN SEQ(A, B+) WHERE [k, g] GROUP-BY LAST(B.a), k WITHIN 9 s"
    parsed = hamlet.Workload.parse(text)
    whole = hamlet.run(parsed, events)
    assert whole.stats["whole_windows"] > 50
    assert repr(rows(text, events, features="")) == repr(whole.rows())
    engine = hamlet.Engine(parsed)
    found = [row for at in range(0, len(events), 4) for row in engine.push(events[at : at + 4])] + engine.close()
    assert engine.stats["whole_windows"] < whole.stats["whole_windows"]
    assert repr(in_any_order(found)) == repr(in_any_order(whole.rows()))


def test_a_column_becomes_double_while_windows_are_open() -> None:
    """What stands in a log turns, too, for every query that reads it."""
    text = workload("WITHIN 30 s")
    events = [event | {"a": None if event["a"] is None else int(event["a"])} for event in stream(11, 40)]
    later = [event | {"time": event["time"] + events[-1]["time"], "a": 0.5} for event in stream(12, 20)]
    engine = hamlet.Engine(hamlet.Workload.parse(text))
    found = engine.push(events[:25]) + engine.push(events[25:]) + engine.push(later) + engine.close()
    expected = rows(text, events + later)
    assert difference(in_any_order(found), in_any_order(expected)) is None


def test_a_damaged_log_is_refused() -> None:
    """Bits that no query has, and strings that nobody knows, are damage; nothing else may come of it."""
    parsed = hamlet.Workload.parse(workload("WITHIN 30 s"))
    engine = hamlet.Engine(parsed)
    engine.push(stream(13, 30))
    saved = engine.save()
    chance = random.Random(3)
    for _ in range(60):
        data = bytearray(saved)
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        with pytest.raises(hamlet.HamletError):
            hamlet.Engine.restore(parsed, bytes(data))


def test_memory_is_shared_out() -> None:
    """The queries of a log hold equal parts of it, and a limit is heard."""
    parsed = hamlet.Workload.parse(workload("WITHIN ALL", 8))
    with pytest.raises(hamlet.MemoryLimitError, match="q"):
        hamlet.run(parsed, stream(17, 20_000, keys=4), max_memory="400 KB")


def test_counts_are_cut_at_what_having_lets_pass() -> None:
    events = [{"time": number, "type": "A"} for number in range(4)]
    found = rows("RETURN COUNT(A), COUNT(*) PATTERN A+ GROUP-BY COUNT(A) HAVING COUNT(A) <= 2 WITHIN 9 s", events)
    assert [(row["count_A"] if "count_A" in row else row["count_a"], row["count"]) for row in found] == [(1, 4), (2, 6)]


@pytest.mark.parametrize(
    ("pattern", "having", "most"),
    [
        ("SEQ(A a, B b{1,5}, C c)", "", 5),
        ("SEQ(A a, (SEQ(B b, C c)){2,4})", "", 4),
        ("SEQ(A a, (SEQ(B b{0,2}, C c)){2,4})", "", 8),
        ("SEQ(B b{2,3}, NOT C c, A a+)", "", 3),
        ("(SEQ(C c, B b{0,3}) OR A a){1,2}", "", 6),
        ("SEQ(A a+, B b{1,9})", "HAVING COUNT(b) < 4", 3),
        ("SEQ(A a, B b+)", "", None),
    ],
)
def test_counts_are_cut_at_what_pattern_and_having_allow(pattern: str, having: str, most: int | None) -> None:
    text = f"RETURN COUNT(*) PATTERN {pattern} GROUP-BY COUNT(b) {having} WITHIN 60 s"
    workload = hamlet.Workload.parse(text)
    query = workload.analysis.queries[0]
    assert most_taken(query, query.taken[0]) == most
    events = stream(5, events=16, keys=1)
    expected = in_any_order(oracle.evaluate(workload.analysis.text, events))
    assert difference(in_any_order(rows(text, events)), expected) is None


COMPARED = (
    "{v}.a < NEXT({w}).a",
    "{v}.a + 1 >= NEXT({w}).a",
    "{v}.b <> NEXT({w}).b",
    "{v}.a * 0.5 > NEXT({w}).b",
    "{v}.a <= NEXT({w}).a AND {v}.s = NEXT({w}).s",
    "{v}.s = NEXT({w}).s AND {v}.a = NEXT({w}).a",
    "{v}.time + 2 < NEXT({w}).time",
    "{v}.a < NEXT({w}).b",  # no keys: all pairs are looked at
    "{v}.s < NEXT({w}).s",
    "{v}.s <> NEXT({w}).s",
)
SUMS = ("SUM({v}.a)", "AVG({v}.a)", "MIN({v}.a)", "MAX({v}.b)", "COUNT({v})")
VARIABLES = ("AB", "ABC", "AB", "AC", "AB", "AB", "xBy", "AB", "xBy", "xBy", "Ay")  # of the shapes, in their order


def comparing(chance: random.Random, within: str, count: int = 8) -> str:
    """Queries over events, some over their trends, too, that compare neighbours, of all shapes."""
    found = []
    for number in chance.sample(range(len(SHAPES)), count):
        v, *pair = (chance.choice(VARIABLES[number]) for _ in range(3))
        conditions = [chance.choice(COMPARED).format(v=pair[0], w=pair[1])]
        if chance.random() < 0.4:
            conditions.append(chance.choice(COMPARED).format(v=v, w=v))
        items = [f"{item.format(v=v)} AS n{place}" for place, item in enumerate(chance.sample(ITEMS, 2))]
        sums = chance.sample(SUMS, 2) if chance.random() < 0.5 else []
        items += [f"{item.format(v=pair[0])} AS s{place}" for place, item in enumerate(sums)]
        items += ["COUNT(*)"] * (chance.random() < 0.5)
        found.append(
            f"RETURN k, {', '.join(items)} PATTERN {SHAPES[number]} WHERE {' AND '.join(conditions)} "
            f"GROUP-BY k {within};\n"
        )
    return "".join(found)


def test_compared_neighbours_as_the_oracle() -> None:
    some = 0
    for seed, within in enumerate((*WINDOWS, "WITHIN ALL")):
        parsed = hamlet.Workload.parse(comparing(random.Random(seed), within, 6))
        events = stream(seed, 11)
        expected = in_any_order(oracle.evaluate(parsed.analysis.text, events))
        some += len(expected)
        assert difference(in_any_order(hamlet.run(parsed, events).rows()), expected) is None
        engine, found = hamlet.Engine(parsed), []
        for number, event in enumerate(events):
            found += engine.push([event])
            if number % 7 == 3:
                engine = hamlet.Engine.restore(parsed, engine.save())
        assert difference(in_any_order(found + engine.close()), expected) is None
    assert some


def test_events_that_operands_and_partitions_share_as_the_oracle() -> None:
    """What tells them apart is in the log, too, so that none counts twice."""
    declared = "EVENT A(k INT, g INT, a INT); EVENT B(k INT, a INT, b DOUBLE); EVENT C(g INT, a INT);\n"
    shared = ("SEQ(A, B+) AND SEQ(C, B+)", "SEQ(A, NOT C, B+) AND SEQ(B+, A y)", "SEQ(B{2,}, A) AND SEQ(C, B+)")
    rolled = ("SEQ(A, B+)", "SEQ(A x+, NOT C, B+, A y*)", "SEQ(B+, A)")
    some = 0
    for seed in range(share_of(48)):
        chance = random.Random(seed)
        within, compared = chance.choice((*WINDOWS, "WITHIN ALL")), chance.choice(COMPARED[:6])
        condition = compared.format(v="B", w="B").replace(".s", ".a")
        found = []
        for pattern in (chance.choice(shared), chance.choice(rolled)):
            first, second = chance.sample(ITEMS, 2)
            items = f"{first.format(v='B')} AS n, {second.format(v='B')} AS m" + ", COUNT(*)" * (chance.random() < 0.5)
            found.append(f"RETURN k, {items} PATTERN {pattern} WHERE [k, g] AND {condition} GROUP-BY k {within};\n")
        parsed = hamlet.Workload.parse(declared + "".join(found))
        events = [{**each, "g": chance.randrange(2)} for each in stream(seed, 12)]
        expected = in_any_order(oracle.evaluate(parsed.analysis.text, events))
        some += len(expected)
        assert difference(in_any_order(hamlet.run(parsed, events).rows()), expected) is None, parsed.analysis.text.text
        engine, pushed = hamlet.Engine(parsed), []
        for number, event in enumerate(events):
            pushed += engine.push([event])
            if number % 5 == 3:
                engine = hamlet.Engine.restore(parsed, engine.save())
        assert difference(in_any_order(pushed + engine.close()), expected) is None
    assert some > share_of(48)


def test_compared_neighbours_by_keys_as_by_looking_at_all() -> None:
    """Without the index all pairs of a log are looked at; beside distinct values trends are kept in nodes."""
    events = stream(21, 300)
    for seed in range(3):
        text = comparing(random.Random(seed), "WITHIN 150 s SLIDE 90 s")
        by_keys = rows(text, events)
        assert by_keys
        assert rows(text, events, features="") == by_keys
        nodes = rows(re.sub("EVENTS (.)(.*?) PATTERN", r"EVENTS \1\2, COUNT(DISTINCT \1.a) AS d PATTERN", text), events)
        assert [{name: value for name, value in row.items() if name != "d"} for row in nodes] == by_keys


def test_compared_neighbours_cost_no_more_than_their_number() -> None:
    """Looking at all pairs of so many events takes a minute."""
    events = pa.table({"time": range(60_000), "type": ["A"] * 60_000, "a": [7919 * n % 10_007 for n in range(60_000)]})
    parsed = hamlet.Workload.parse("RETURN COUNT(EVENTS A) AS n PATTERN A{2,} WHERE A.a < NEXT(A).a WITHIN ALL")
    before = time.process_time()
    [row] = hamlet.run(parsed, events).rows()
    assert time.process_time() - before < 5
    lowest, highest, inside = 1 << 60, [-1] * 60_001, 0
    values = events["a"].to_pylist()
    for place in reversed(range(60_000)):
        highest[place] = max(highest[place + 1], values[place])
    for place, value in enumerate(values):
        inside += lowest < value or value < highest[place + 1]
        lowest = min(lowest, value)
    assert row["n"] == inside
    both = hamlet.Workload.parse("RETURN COUNT(EVENTS A) AS n PATTERN A{2,} AND A{2,} WHERE A.a < NEXT(A).a WITHIN ALL")
    before = time.process_time()
    [row] = hamlet.run(both, events, numbers="float").rows()
    assert time.process_time() - before < 5
    assert row["n"] == inside
    pairs = pa.table({"time": range(60_000), "type": ["A"] * 60_000, "a": [n % 2 - n // 2 * 2 for n in range(60_000)]})
    total = sum(pairs["a"].to_pylist())
    for numbers in ("exact", "float"):
        text = "RETURN COUNT(EVENTS A) AS n, COUNT(*) PATTERN A{2,} WHERE A.a < NEXT(A).a WITHIN ALL;\n"
        text += text.replace("COUNT(*)", "COUNT(*), SUM(A.a) AS s, MIN(A.a) AS low")
        before = time.process_time()
        counted, summed = hamlet.run(hamlet.Workload.parse(text), pairs, numbers=numbers).rows()
        assert time.process_time() - before < 10
        assert (counted["n"], counted["count"]) == (summed["n"], summed["count"]) == (60_000, 30_000)
        assert (summed["s"], summed["low"]) == (total, -59_998)


def test_what_is_compared_gets_its_type_while_windows_are_open() -> None:
    """No value at first, then integers, then doubles, then strings elsewhere; and a window closes after a restore."""
    text = "RETURN COUNT(EVENTS A) AS n, SUM(EVENTS A.a) AS s PATTERN A{2,} WHERE A.a < NEXT(A).a WITHIN ALL;\n"
    text += "RETURN COUNT(EVENTS A) AS n, SUM(A.b) AS b PATTERN A{2,} WHERE A.s > NEXT(A).s WITHIN ALL"
    values = [None, None, 3, None, 2, 2, 5, 4.5, 2.5, None, -0.0, 0]
    texts = [None, None, None, "m", "n", "z", "a", None, "b", "y", "c", "c"]
    events = [
        {"time": place, "type": "A", "a": value, "s": text, "b": value}
        for place, (value, text) in enumerate(zip(values, texts, strict=True))
    ]
    parsed = hamlet.Workload.parse(text)
    engine = hamlet.Engine(parsed)
    for event in events:
        assert engine.push([event]) == []
    found = hamlet.Engine.restore(parsed, engine.save()).close()
    assert difference(found, oracle.evaluate(parsed.analysis.text, events)) is None
    assert difference(engine.close(), found) is None


def test_what_cannot_be_compared_is_told() -> None:
    """A key that passes 64 bits with its event; times beside numbers when the window closes."""
    text = "RETURN COUNT(EVENTS A) AS n PATTERN A+ WHERE A.a + 1 < NEXT(A).a WITHIN ALL"
    events = [{"time": place, "type": "A", "a": 2**63 - 1 - place} for place in (1, 0)]
    with pytest.raises(hamlet.DataError, match=r"A.a \+ 1.* passes 64 bits for the event \(time=0"):
        rows(text, sorted(events, key=lambda event: event["time"]))
    parsed = hamlet.Workload.parse("RETURN COUNT(EVENTS A) AS n PATTERN A+ WHERE A.a < NEXT(A).b WITHIN ALL")
    engine = hamlet.Engine(parsed)
    engine.push([{"time": 1, "type": "A", "a": datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)}])
    engine.push([{"time": 2, "type": "A", "b": 5}])
    with pytest.raises(hamlet.DataError, match=r"A.a \(TIMESTAMP\) cannot be compared with NEXT\(A\).b"):
        engine.close()
