"""Bytes, and integers of 64 bits without a sign: in events of all forms, computed with, held and saved."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hamlet.checker import check
from hamlet.errors import DataError, WorkloadError
from hamlet.streams import Monitor, Specification, run
from tests.compare_streams import compare, difference, expected
from tests.effort import share_of
from tests.streams.stream_runs import run_pushed, run_whole

TEXT = """
input b: Bytes, k: UInt64
output byte := b.at(index: k).defaults(to: 255)
output same := b = b.offset(by: -1, or: b)
output seen(x: Bytes) spawn with b eval when x = b with seen(x).offset(by: -1).defaults(to: 0) + 1
output pair := (b, k)
output first := pair.0.at(index: 0).defaults(to: 9)
trigger eval when first > 9 with "got {{}}".format(b)
"""
SPECIFICATION = Specification.parse(TEXT)


@pytest.mark.parametrize("seed", range(20))
def test_rows_are_those_of_the_definition(seed: int) -> None:
    draw = random.Random(seed)
    values = ["00ff", "0a", "0a0b0c", "ff" * 40]
    events: list[tuple[int, dict[str, Any]]] = [
        (time * 10**9, {"b": draw.choice([*values, None]), "k": draw.choice([0, 1, 2, 39, 40, 2**63 - 1, None])})
        for time in range(30)
    ]
    wanted = expected(SPECIFICATION, events)
    assert not isinstance(wanted, str)
    assert difference(wanted, run_whole(SPECIFICATION, events)) is None
    assert difference(wanted, run_pushed(SPECIFICATION, events)) is None


@pytest.mark.parametrize("form", ["dicts", "csv", "jsonl", "parquet", "view"])
def test_bytes_in_events_of_all_forms(form: str, tmp_path: Path) -> None:
    table = pa.table({"time": [1, 2, 3], "b": [b"\x00\xff", None, b"\x0a"], "k": [1, 0, 0]})
    digits = ["00FF", "", "0a"]
    source: Any = tmp_path / f"events.{form}"
    if form == "parquet":
        pq.write_table(table, source)
    elif form == "csv":
        source.write_text("time,b,k\n" + "".join(f"{n},{each},{int(n == 1)}\n" for n, each in enumerate(digits, 1)))
    elif form == "jsonl":
        lines = [f'{{"time": {n}, "b": "{each}", "k": {int(n == 1)}}}\n' for n, each in enumerate(digits, 1)]
        source.write_text("".join(lines))
    elif form == "view":  # as polars gives them
        source = table.set_column(1, "b", table.column("b").cast(pa.binary_view()))
    else:
        source = table.to_pylist()
    rows = [row for row in run(SPECIFICATION, source, values=True).rows() if row.get("stream") in ("byte", "seen")]
    assert rows == [
        {"stream": "byte", "time": 1, "value": 255},
        {"stream": "seen", "time": 1, "value": 1, "x": "00ff"},
        {"stream": "byte", "time": 3, "value": 10},
        {"stream": "seen", "time": 3, "value": 1, "x": "0a"},
    ]


@pytest.mark.parametrize("value", ["0", "zz", "0 1", 5])
def test_what_is_not_bytes(value: Any) -> None:
    with pytest.raises(DataError, match=r"hexadecimal digits a byte|input b is of type Bytes"):
        Monitor(SPECIFICATION).push([{"time": 1, "b": value, "k": 1}])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("input s: String output o := s.at(index: 0).defaults(to: 0)", "'s' is String; at reads Bytes"),
        ("input b: Bytes output o := b.at(index: 0)", "may have no value, and o needs one"),
        ("input b: Bytes output o := b.at(index: -1).defaults(to: 0)", "an index is an unsigned integer"),
        ("input b: Bytes output o := b.at(0).defaults(to: 0)", r"write b.at\(index: 0\)"),
        ('input b: Bytes output o := b = "a"', "Bytes and String have no common type"),
    ],
)
def test_mistakes(text: str, said: str) -> None:
    with pytest.raises(WorkloadError, match=said):
        Specification.parse(text)


def test_evidence_of_a_byte() -> None:
    events = [{"time": 1, "b": "0aff", "k": 1}]
    evidence = run(SPECIFICATION, events, values=True).why({"trigger": "got 0aff", "time": 1})
    check(TEXT, events, evidence)


WIDE = Specification.parse("input k: UInt64 output o := k - 1")


@pytest.mark.parametrize("pushed", [False, True])
def test_integers_of_64_bits_without_a_sign(pushed: bool) -> None:
    events = [{"time": 1, "k": 5}, {"time": 2, "k": 2**64 - 1}, {"time": 3, "k": 2**63}]
    rows: list[dict[str, Any]] = []
    if pushed:
        monitor = Monitor(WIDE, values=True)
        for event in events:
            rows += monitor.push([event])
    else:
        rows = run(WIDE, events, values=True).rows()
    assert [row["value"] for row in rows] == [4, 2**64 - 2, 2**63 - 1]
    with pytest.raises(DataError, match=r"row 1 .* what input k of type UInt64 cannot be"):
        run(WIDE, [{"time": 1, "k": 2**64}])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("input a: (Int64, String) output o := a.0", (1, "x")),
        ("input a: Bytes output o := a", b"ab"),
        ("input a: UInt64 output o := a", 2**64 - 1),
        ("input a: Float64 output o := a", Decimal("1.5")),
        ("input a: String output o := a", "text"),
    ],
)
def test_held_events_of_every_type_are_saved(text: str, value: Any) -> None:
    specification = Specification.parse(text)
    monitor = Monitor(specification, values=True, lateness=5)
    monitor.push([{"time": 1, "a": value}])
    if isinstance(value, str):
        monitor.push(pa.table({"time": [2], "a": pa.array([value]).dictionary_encode()}))
    again = Monitor.restore(specification, monitor.save())
    assert again.close() == monitor.close() != []


@pytest.mark.parametrize("run_cases", [run_whole, run_pushed])
def test_values_at_the_edges_of_their_types(run_cases: Any) -> None:
    assert compare(range(share_of(60)), run_cases, wild=True) is None


def test_a_mean_whose_sum_is_beyond_64_bits_is_exact() -> None:
    text = "input a: Int64 output o := a.aggregate(over_discrete: 5, using: avg).defaults(to: 0)"
    events = [{"time": time, "a": 2**63 - 1 - time} for time in range(5)]
    assert run(Specification.parse(text), events, values=True).rows()[-1]["value"] == 2**63 - 3
