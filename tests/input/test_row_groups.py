"""Row groups of Parquet that are not read: the same rows, counts and notes as when all are read."""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hamlet
from hamlet.cli import main
from hamlet.engine.where import FilteredEvents
from hamlet.input.events import open_events
from hamlet.input.files import ParquetFile
from hamlet.input.period import PeriodEvents
from hamlet.input.records import table_of_records
from hamlet.planner.skipping import Needs
from tests.strategies import Features, random_case

START = datetime.datetime(2024, 3, 5)
ALL = Features(
    events=40,
    conjunction=True,
    broadcast=True,
    semantics=True,
    span=True,
    session=True,
    having=True,
    top=True,
    distinct=True,
    chained=True,
)


def written(path: Path, table: pa.Table, rows: int = 1, **options: Any) -> Path:
    pq.write_table(table, path, row_group_size=rows, **options)
    return path


def read(path: Path, condition: str) -> tuple[list[Any], int]:
    """The places of the events that fulfil a condition, and how many row groups were left out."""
    source = FilteredEvents(open_events(path), condition)
    found = [place for batch in source.batches(["place"]) for place in batch.column("place").to_pylist()]
    return found, sum(source.row_groups.skipped().values())


def told(notes: Sequence[str]) -> list[str]:
    return [note for note in notes if not note.startswith("skipped ")]


# ------------------------------------------------------------------------------------------- random cases


@pytest.mark.sampled(3)
@pytest.mark.parametrize("part", range(3))
def test_random_workloads(tmp_path: Path, part: int) -> None:
    """Rows, counts and notes over a file of small row groups are those over a table."""
    skipped = 0
    for seed in range(40 * part, 40 * part + 40):
        text, events, options = random_case(seed, ALL)
        chance = random.Random(seed)
        events += [{**event, "type": chance.choice("YZ")} for event in chance.sample(events, len(events) // 3)]
        if chance.random() < 0.8:
            events = sorted(events, key=lambda event: (str(event.get("type")), event["time"]))  # types in few groups
        workload = hamlet.Workload.parse(text)
        if not events:
            continue
        table = table_of_records(events)
        for name in {*workload.attributes, "type"}.difference(table.column_names):
            table = table.append_column(name, pa.nulls(len(events)))
        size = chance.randint(1, 2)
        path = written(tmp_path / f"{seed}.parquet", table, size, use_dictionary=chance.random() < 0.5)
        extra = {**options, "null_keys": chance.choice(["keep", "drop"])}
        whole = hamlet.run(workload, table, **extra)
        partly = hamlet.run(workload, path, **extra)
        skipped += sum(partly.stats.get("row_groups", {}).get("skipped", {}).values())
        assert partly.rows() == whole.rows(), (seed, text)
        for name in ("events", "matched_events", "partitions", "windows"):
            assert partly.stats[name] == whole.stats[name], (seed, name, text)
        assert told(partly.warnings) == told(whole.warnings), (seed, text)
    assert skipped > 20


def random_condition(chance: random.Random, depth: int = 2) -> str:
    kind = chance.randrange(9 if depth else 7)
    column = chance.choice(["i", "u", "f", "s", "b", "at", "time", "type"])
    texts = {"s": ["'a'", "'b'", "'bb'", "'é'"], "type": ["A", "B", "'C'"], "b": ["TRUE", "FALSE"]}
    numbers = ["0", "-1", "2", "3.5", "1.0", "9007199254740993"]
    moments = [f"'2024-03-05 00:00:0{second}'" for second in (0, 2, 5)]
    values = texts.get(column, moments if column == "at" else numbers)
    operators = ["=", "<>"] if column == "b" else ["=", "<>", "<", "<=", ">", ">="]
    match kind:
        case 0 | 1 | 2:
            return f"{column} {chance.choice(operators)} {chance.choice(values)}"
        case 3:
            return f"{chance.choice(values)} {chance.choice(operators)} {column}"
        case 4:
            return f"{column} IS {chance.choice(['', 'NOT '])}NULL"
        case 5:
            return f"{column} {chance.choice(['', 'NOT '])}IN ({', '.join(chance.sample(values, 2))})"
        case 6 if column != "b":
            low, high = chance.sample(values, 2)
            return f"{column} {chance.choice(['', 'NOT '])}BETWEEN {low} AND {high}"
        case 6 | 7:
            return f"NOT ({random_condition(chance, depth - 1)})"
    joined = chance.choice([" AND ", " OR "])
    return joined.join(f"({random_condition(chance, depth - 1)})" for _ in range(2))


def random_table(chance: random.Random, rows: int) -> pa.Table:
    def some(values: list[Any], kind: pa.DataType) -> pa.Array:
        few = chance.sample(values, min(len(values), chance.randint(1, 3)))
        return pa.array([chance.choice(few) for _ in range(rows)], kind)

    integers = [0, -1, 2, 3, 2**53 + 1, -(2**63), 2**63 - 1, None]
    doubles = [0.0, -0.0, 2.0, 3.5, math.nan, math.inf, -math.inf, float(2**53), None]
    unit = chance.choice(["s", "ms", "us", "ns"])
    moments = [START + datetime.timedelta(seconds=second) for second in (0, 1, 2, 4, 5)] + [None]
    return pa.table(
        {
            "time": pa.array(sorted(chance.choices(range(8), k=rows))),
            "type": some(["A", "B", "C", None], pa.string()),
            "place": pa.array(range(rows)),
            "i": some(integers, pa.int64()),
            "u": some([0, 2, 3, 2**31 - 1, 2**32 - 1, None], pa.uint32()),
            "f": some(doubles, chance.choice([pa.float64(), pa.float32()])),
            "s": some(["a", "b", "bb", "", "é", "\U0001f600", None], pa.string()),
            "b": some([True, False, None], pa.bool_()),
            "at": some(moments, pa.timestamp(unit)),
        }
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("part", range(4))
def test_random_conditions(tmp_path: Path, part: int) -> None:
    skipped = 0
    for seed in range(150 * part, 150 * part + 150):
        chance = random.Random(seed)
        table = random_table(chance, chance.randint(1, 12))
        path = written(tmp_path / "e.parquet", table, chance.randint(1, 3), use_dictionary=chance.random() < 0.5)
        condition = random_condition(chance)
        whole = FilteredEvents(open_events(table), condition)
        expected = [place for batch in whole.batches(["place"]) for place in batch.column("place").to_pylist()]
        found, groups = read(path, condition)
        assert found == expected, (seed, condition, table.to_pylist())
        skipped += groups
    assert skipped > 100


# ------------------------------------------------------------------------------- what statistics prove, by type


@pytest.mark.parametrize(
    ("values", "kind", "condition", "kept"),
    [
        ([1, 5, None], pa.int64(), "v < 3", [0]),
        ([1, 5, None], pa.int64(), "v IS NULL", [2]),
        ([1, 5, None], pa.int64(), "v IS NOT NULL", [0, 1]),
        ([2**53, 2**53 + 1], pa.int64(), "v > 9007199254740992.0", [1]),
        ([200, 100], pa.uint8(), "v > 150", [0]),
        ([2**32 - 1, 1], pa.uint32(), "v > 5", [0]),
        ([2**63 - 1, 1], pa.uint64(), "v > 5", [0]),  # all are read: some might be beyond 64 bits
        ([1.5, math.nan, 2.5], pa.float64(), "v > 2", [2]),
        ([1.5, math.nan, 2.5], pa.float64(), "v IS NULL", [1]),
        ([1.5, math.nan, 2.5], pa.float64(), "NOT v > 2", [0]),
        ([0.1, 0.5], pa.float32(), "v = 0.5", [1]),
        ([0.0, -0.0], pa.float64(), "v = 0", [0, 1]),
        ([1, 3], pa.float16(), "v > 2", [1]),  # all are read
        ([Decimal("1.5"), Decimal("2.5")], pa.decimal128(5, 1), "v > 2", [1]),  # all are read
        (["a", "b", "a" * 5000], pa.string(), "v >= 'b'", [1]),
        (["a", "b"], pa.large_string(), "v = 'b'", [1]),
        (["a", "b"], pa.dictionary(pa.int8(), pa.string()), "v <> 'a'", [1]),
        (["z", "é", "\U0001f600"], pa.string(), "v > 'z'", [1, 2]),
        ([True, False, None], pa.bool_(), "v = FALSE", [1]),
        ([START, START + datetime.timedelta(hours=1)], pa.timestamp("s"), "v > '2024-03-05 00:30:00'", [1]),
        ([START, START + datetime.timedelta(hours=1)], pa.timestamp("ns"), "v > '2024-03-05 00:30:00'", [1]),
        ([START, START + datetime.timedelta(hours=1)], pa.timestamp("us", "UTC"), "v < '2024-03-05 00:30:00'", [0]),
        ([datetime.date(2024, 3, 5), datetime.date(2024, 3, 6)], pa.date32(), "v >= '2024-03-06'", [1]),
        ([datetime.date(2024, 3, 5), datetime.date(2024, 3, 6)], pa.date64(), "v >= '2024-03-06'", [1]),
    ],
)
def test_types(tmp_path: Path, values: list[Any], kind: pa.DataType, condition: str, kept: list[int]) -> None:
    rows = len(values)
    array = pa.array(values).dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else pa.array(values, kind)
    table = pa.table({"time": range(rows), "type": ["A"] * rows, "place": range(rows), "v": array})
    unsure = kind in (pa.uint64(), pa.float16(), pa.decimal128(5, 1)) or (condition.endswith("'b'") and rows == 3)
    for options in ({}, {"use_dictionary": False}, {"version": "1.0"}):
        found, groups = read(written(tmp_path / "e.parquet", table, **options), condition)
        assert found == kept
        if not unsure and "NULL" not in condition and "nan" not in str(values):
            assert groups == rows - len(kept)
    for some in (["time"], False):  # of this column, and of none, is anything said
        found, groups = read(written(tmp_path / "e.parquet", table, write_statistics=some), condition)
        assert (found, groups) == (kept, 0)


def test_cut_texts(tmp_path: Path) -> None:
    """Bounds that a writer has cut are still on the right side of every value."""
    duckdb = pytest.importorskip("duckdb")
    texts = ["x" * 40 + letter for letter in "abc"] + ["\U0001f600" * 20, "y"]
    events = pa.table({"time": range(5), "type": ["A"] * 5, "place": range(5), "v": texts})
    path = tmp_path / "e.parquet"
    duckdb.sql(f"COPY (SELECT * FROM events ORDER BY time) TO '{path}' (FORMAT parquet)")
    plain = written(tmp_path / "plain.parquet", events, write_statistics=False)
    for text in [*texts, "x" * 40, "x", "z"]:
        for operator in ("=", "<", ">=", "<>"):
            assert read(path, f"v {operator} '{text}'")[0] == read(plain, f"v {operator} '{text}'")[0]


def test_arithmetic_is_computed(tmp_path: Path) -> None:
    """An event whose arithmetic passes 64 bits is an error, whatever the other conditions say of it."""
    table = pa.table({"time": [1, 2], "type": ["A", "A"], "place": [0, 1], "v": [1, 2**62], "w": [5, 6]})
    path = written(tmp_path / "e.parquet", table)
    with pytest.raises(hamlet.DataError, match="64 bits"):
        read(path, "w < 6 AND v * 4 > 0")
    workload = hamlet.Workload.parse("RETURN COUNT(*) PATTERN A WHERE A.w < 6 AND A.v * 4 > 0 WITHIN 10 s")
    with pytest.raises(hamlet.DataError, match="64 bits"):
        hamlet.run(workload, path)


def test_folders_with_values(tmp_path: Path) -> None:
    for day in (1, 2, 3):
        folder = tmp_path / "e" / f"day={day}"
        folder.mkdir(parents=True)
        table = pa.table({"time": [day * 10, day * 10 + 1], "type": ["A", "B"], "place": [day, day]})
        written(folder / "part.parquet", table)
    assert read(tmp_path / "e", "day = 2") == ([2, 2], 4)
    assert read(tmp_path / "e", "day >= 2 AND type = 'A'") == ([2, 3], 4)
    results = hamlet.run(
        hamlet.Workload.parse("RETURN COUNT(*) PATTERN A+ WITHIN 100 s"), tmp_path / "e", since=20, until=31
    )
    assert results.rows()[0]["count"] == 3
    assert [*results.warnings] == ["skipped 4 of 6 row groups: 3 by their times, 1 of events that no query can use"]


def test_files_of_different_types(tmp_path: Path) -> None:
    """An integer that is a double beside another file's is compared as one."""
    folder = tmp_path / "e"
    folder.mkdir()
    written(folder / "1.parquet", pa.table({"time": [1], "type": ["A"], "place": [0], "v": [2**53 + 1]}))
    written(folder / "2.parquet", pa.table({"time": [2], "type": ["A"], "place": [1], "v": [0.5]}))
    written(folder / "3.parquet", pa.table({"time": [3], "type": ["A"], "place": [2]}))
    assert read(folder, "v <= 9007199254740992")[0] == [0, 1]
    assert read(folder, "v > 9007199254740992") == ([], 3)
    assert read(folder, "v IS NULL")[0] == [2]


# ----------------------------------------------------------------------------------------- what queries need


def events(**more: Any) -> pa.Table:
    """Nine events, three of each type, in the order of time."""
    return pa.table({"time": range(9), "type": list("AAABBBCCC"), "k": [1, 2, 1, 1, 1, 2, 1, 1, 1], **more})


def skipped(path: Path, text: str, **options: Any) -> tuple[int, Sequence[str]]:
    results = hamlet.run(hamlet.Workload.parse(text), path, **options)
    whole = hamlet.run(hamlet.Workload.parse(text), pq.read_table(path), **options)
    assert results.rows() == whole.rows()
    assert told(results.warnings) == [*whole.warnings]
    assert results.stats["events"] == whole.stats["events"] == 9
    return sum(results.stats.get("row_groups", {}).get("skipped", {}).values()), results.warnings


def test_what_counts(tmp_path: Path) -> None:
    path = written(tmp_path / "e.parquet", events(v=[1, 2, 3, 1, 2, 3, 1, 2, 3]), 3)
    count = "RETURN COUNT(*) PATTERN"
    assert skipped(path, f"{count} SEQ(A, B+) WITHIN 9 s") == (
        1,
        ("skipped 1 of 3 row groups of events that no query can use",),
    )
    assert skipped(path, f"{count} SEQ(A, NOT C, B+) WITHIN 9 s")[0] == 0
    assert skipped(path, f"{count} SEQ(A, B+, NOT C) WHERE C.v > 5 WITHIN 9 s")[0] == 1
    assert skipped(path, f"{count} SEQ(A, B+) SEMANTICS contiguous WITHIN 9 s")[0] == 0
    assert skipped(path, f"{count} SEQ(A, B+) SEMANTICS next WITHIN 9 s")[0] == 1
    assert skipped(path, f"{count} SEQ(A, C?) WHERE C.v > 5 WITHIN SESSION 2 s")[0] == 1
    assert skipped(path, f"{count} A+ WITHIN 9 s; {count} C+ WITHIN 3 s")[0] == 1
    assert skipped(path, f"{count} A+ WITHIN 9 s; {count} SEQ(B, C) SEMANTICS contiguous WITHIN 3 s")[0] == 0
    assert skipped(path, f"a: {count} A+ WITHIN 3 s; {count} SEQ(a, C+) WITHIN 9 s")[0] == 1
    assert skipped(path, f"{count} A+ WITHIN 9 s", report=tmp_path / "r.html")[0] == 0
    assert skipped(path, f"{count} A+ WITHIN 9 s", trace=tmp_path / "t.jsonl")[0] == 0


def test_notes_know_of_all_events(tmp_path: Path) -> None:
    """Types that never occur, conditions that nothing passes and events without a key, with what was left out."""
    path = written(tmp_path / "e.parquet", events(v=[1, 2, 3, 1, 2, 3, 1, 2, 3]), 3)
    found, notes = skipped(path, "RETURN COUNT(*) PATTERN SEQ(A, Cc?) WITHIN 9 s")
    assert (found, notes[1:]) == (2, ("q1: Cc never occurs (did you mean C?)",))
    found, notes = skipped(path, "RETURN COUNT(*) PATTERN SEQ(A, B) WHERE B.v > 4 WITHIN 9 s")
    assert (found, notes[1:]) == (2, ("q1: no rows, because B.v > 4 rejects all 3 B events",))
    holes = events(v=[1, 2, 3, 1, 2, 3, 1, 2, 3]).set_column(2, "k", pa.array([1, 2, 1, 1, 1, 2, None, 1, 1]))
    path = written(tmp_path / "holes.parquet", holes, 3)
    found, notes = skipped(path, "RETURN COUNT(*) PATTERN SEQ(A, C?) WHERE [k] AND C.v > 4 WITHIN 9 s")
    assert found == 1
    assert "1 event has no k; they are one partition (--null-keys drop leaves them out)" in notes[2]


def test_times_that_cannot_be_read(tmp_path: Path) -> None:
    """A NULL time is an error, also where nobody has a use for the event."""
    path = written(tmp_path / "e.parquet", pa.table({"time": [1, None], "type": ["A", "B"]}))
    with pytest.raises(hamlet.DataError, match="the time column 'time' is NULL in row 2"):
        hamlet.run(hamlet.Workload.parse("RETURN COUNT(*) PATTERN A WITHIN 1 s"), path)
    with pytest.raises(hamlet.DataError, match="the time column 'time' is NULL in row 2"):
        list(FilteredEvents(open_events(path), "type = 'A'").batches())
    far = written(tmp_path / "far.parquet", pa.table({"time": [1, 2**62], "type": ["A", "B"]}))
    with pytest.raises(hamlet.DataError, match="2\\^61"):
        hamlet.run(hamlet.Workload.parse("RETURN COUNT(*) PATTERN A WITHIN 1 s"), far)


def test_disordered_rows(tmp_path: Path) -> None:
    table = pa.table({"time": [5, 1, 9, 3], "type": ["A", "B", "A", "B"], "k": [1, 1, 2, 2]})
    path = written(tmp_path / "e.parquet", table)
    workload = hamlet.Workload.parse("RETURN COUNT(*) PATTERN A+ WITHIN 10 s")
    assert hamlet.run(workload, path).rows() == hamlet.run(workload, table).rows()
    assert PeriodEvents(open_events(path), 2, 6).row_groups.skipped() == {"by their times": 2}


def test_many_row_groups(tmp_path: Path) -> None:
    """Of a file with many, a few are asked first; where one of these can be left out, all are asked."""
    table = pa.table({"time": range(1000), "type": ["A"] * 1000, "place": range(1000), "v": range(1000)})
    path = written(tmp_path / "e.parquet", table, 2)
    assert read(path, "v < 10") == (list(range(10)), 495)
    assert read(path, "v >= 0") == (list(range(1000)), 0)


def test_needs_are_asked_once() -> None:
    workload = hamlet.Workload.parse("RETURN COUNT(*) PATTERN SEQ(A, B) SEMANTICS contiguous WITHIN 1 s")
    assert Needs(workload.analysis, open_events(events()).schema).all


# --------------------------------------------------------------------------------------------- columns, commands


def test_columns_nobody_asks_for_are_not_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "e.parquet", events(v=range(9), unused=["x"] * 9), 3)
    asked: list[tuple[str, ...]] = []
    plain = ParquetFile.batches

    def batches(self: ParquetFile, columns: list[str]) -> Any:
        asked.append(tuple(sorted(columns)))
        return plain(self, columns)

    monkeypatch.setattr(ParquetFile, "batches", batches)
    workload = hamlet.Workload.parse("RETURN COUNT(*) PATTERN SEQ(A, B) WHERE [k] WITHIN 9 s")
    hamlet.run(workload, path)
    assert set(asked) == {("time",), ("k", "time", "type")}
    asked.clear()
    hamlet.run(workload, FilteredEvents(open_events(path), "v < 5"))
    assert set(asked) == {("time",), ("k", "time", "type", "v")}


def test_commands_say_what_they_skip(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path / "e.parquet", events(v=range(9)), 1)
    workload = tmp_path / "w.sase"
    workload.write_text("RETURN COUNT(*) PATTERN SEQ(A, B) WITHIN 9 s")
    options = ["--input", str(path), "--from", "1", "--where", "v <> 4"]
    assert main(["run", str(workload), *options[:4], "--output", "-"]) == 0
    assert (
        "note: skipped 4 of 9 row groups: 1 by their times, 3 of events that no query can use"
        in capsys.readouterr().err
    )
    for command, said in (("check", "skipped"), ("explain", "a run skips")):
        assert main([command, str(workload), *options]) == 0
        assert f"note: {said} 2 of 9 row groups: 1 by their times, 1 by --where\n" in capsys.readouterr().err
        assert main([command, str(workload), *options[:2]]) == 0
        assert f"note: {said} 3 of 9 row groups of events that no query can use\n" in capsys.readouterr().err
        assert main([command, str(tmp_path / "p.mfotl"), "--where", "v > 1"]) == 2
        assert "error: --where speaks of an input; give --input" in capsys.readouterr().err
