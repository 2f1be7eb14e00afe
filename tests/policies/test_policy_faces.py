"""What stands around the evaluation of policies: events as time-points, rows as text, slices."""

from __future__ import annotations

import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

from hamlet.errors import DataError
from hamlet.input.ordering import SortKey
from hamlet.output.columnar import encoder_of
from hamlet.parallel.routing.closed import ranges, reach
from hamlet.parallel.routing.joint import JointSlicer
from hamlet.parallel.routing.rates import rates_of
from hamlet.policies import Monitor, Policy, run
from hamlet.policies.logs.reader import LogChunk
from hamlet.policies.logs.tables import Tables
from hamlet.policies.syntax.parser import parse_formula
from hamlet.policies.syntax.signature import Signature

SIGNATURE = Signature.parse("p(a: int) q(b: string, a: int) p(a: int, b: string) n()")
EVENTS = pa.table(
    {
        "time": [1, 1, 2, 3, 3, 3, 5],
        "type": ["p", "q", "other", "p", "q", None, "n"],
        "a": [1, 2, 3, None, 5, 6, 7],
        "b": ["x", "y", "z", "w", "v", "u", "t"],
    }
)
WANTED = {("p", 1), ("q", 2), ("p", 2), ("n", 0)}


def tables(time_points: str = "step", **changed: Any) -> Tables:
    return Tables(SIGNATURE, WANTED, EVENTS.schema, SortKey("time"), "type", time_points, **changed)


def read(found: Tables, rows: int) -> tuple[list[int], dict[Any, list[Any]]]:
    """Time-stamps and tuples, from batches of some rows."""
    times: list[int] = []
    relations: dict[Any, list[Any]] = {}
    for chunk in found.chunks(EVENTS.to_batches(max_chunksize=rows)):
        assert chunk.first == len(times)
        times += chunk.times.tolist()
        for key, (points, columns) in chunk.relations.items():
            values = [column.to_pylist() for column in columns]
            relations.setdefault(key, []).extend(zip((points + chunk.first).tolist(), *values, strict=True))
    return times, relations


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 7])
def test_events_of_one_time_are_one_time_point(rows: int) -> None:
    found = tables()
    times, relations = read(found, rows)
    assert times == [1, 2, 3, 5]
    assert relations == {
        ("p", 1): [(0, 1)],
        ("p", 2): [(0, 1, "x")],
        ("q", 2): [(0, "y", 2), (2, "v", 5)],
        ("n", 0): [(3,)],
    }
    assert (found.events, found.nulls) == (7, 2)


@pytest.mark.parametrize("rows", [1, 3, 7])
def test_each_event_may_be_a_time_point(rows: int) -> None:
    times, relations = read(tables("event"), rows)
    assert times == [1, 1, 2, 3, 3, 3, 5]
    assert relations["q", 2] == [(1, "y", 2), (4, "v", 5)]


def test_columns_are_checked_before_any_event() -> None:
    signature = Signature.parse("p(aa: int) q(b: int) r(int)")
    wanted = {("p", 1), ("q", 1), ("r", 1)}
    with pytest.raises(DataError) as caught:
        Tables(signature, wanted, EVENTS.schema, SortKey("time"), "type")
    said = str(caught.value)
    assert "there is no column 'aa'; did you mean 'a'?" in said
    assert "the column 'b' is of type string, and int means integers" in said
    assert "the signature names no attribute" in said


SCHEMA = pa.schema([("time", pa.int64()), ("time_point", pa.int64()), ("x", pa.string()), ("y", pa.float64())])
ROWS = pa.record_batch([[4, 4, 9], [0, 0, 3], ['a"b', "", None], [1.5, math.inf, 2.0]], schema=SCHEMA)


@pytest.mark.parametrize(
    ("output_format", "expected"),
    [
        (
            "json",
            '{"policy": "p", "time": 4, "time_point": 0, "x": "a\\"b", "y": 1.5}\n'
            '{"policy": "p", "time": 4, "time_point": 0, "x": "", "y": null}\n'
            '{"policy": "p", "time": 9, "time_point": 3, "x": null, "y": 2.0}\n',
        ),
        ("csv", 'policy,time,time_point,x,y\np,4,0,"a""b",1.5\np,4,0,"",inf\np,9,3,,2.0\n'),
        ("monpoly", '@4 (time point 0): ("a\\"b",1.5) ("",inf)\n@9 (time point 3): (,2)\n'),
    ],
)
@pytest.mark.parametrize("step", [1, 2, 3])
def test_rows_as_text(output_format: str, expected: str, step: int) -> None:
    encoder = encoder_of(output_format, SCHEMA.names, lead={"policy": "p"}, tuples=["x", "y"])
    text = encoder.head()
    for begin in range(0, 3, step):
        text += encoder.lines(ROWS.slice(begin, step))
    assert text + encoder.tail() == expected


def test_closed_formulas_are_true_in_monpolys_lines() -> None:
    times = pa.array([1_000_000], pa.timestamp("us"))
    rows = pa.RecordBatch.from_arrays([times, pa.array([7])], ["time", "time_point"])
    assert (
        encoder_of("monpoly", rows.schema.names, tuples=[]).lines(rows) == "@1970-01-01T00:00:01 (time point 7): true\n"
    )


FORMULAS = [
    "((ONCE[0,10) A(w,x)) AND B(w,y)) AND (EVENTUALLY[0,10) C(w,z))",
    "((ONCE[0,10) A(w,x)) AND B(x,y)) AND (EVENTUALLY[0,10) C(y,z))",
    "((ONCE[0,10) A(x,y)) AND B(y,z)) AND (EVENTUALLY[0,10) C(z,x))",
    "(EXISTS y. A(x,y)) AND NOT ONCE (EXISTS x. B(x,x))",
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("text", FORMULAS)
@pytest.mark.parametrize("slices", [1, 4, 7, 16])
def test_a_slice_gets_every_event_that_its_valuations_match(text: str, slices: int) -> None:
    random = np.random.default_rng(len(text) + slices)
    formula = parse_formula(text, "<test>")[0]
    relations: dict[Any, Any] = {}
    for predicate in "ABC":
        fields = random.integers(0, 6, (2, 200))
        fields[0, random.random(200) < 0.5] = 3  # a heavy value
        relations[predicate, 2] = (np.sort(random.integers(0, 50, 200)), tuple(map(pa.array, fields)))
    chunk = LogChunk(0, np.arange(50), relations, 0)
    slicer = JointSlicer(formula, slices, rates_of(formula, [chunk]))
    routed = slicer.route(chunk)
    held = [
        {(key[0], *row) for key, (_, columns) in part.relations.items() for row in rows_of(columns)} for part in routed
    ]
    names = slicer.variables
    values = random.integers(0, 6, (len(names), 300))
    rows = pa.RecordBatch.from_arrays([pa.array(each) for each in values], names=list(names))
    for number, owner in enumerate(slicer.owners(rows).tolist()):
        valuation = dict(zip(names, values[:, number].tolist(), strict=True))
        for atom in slicer.atoms:
            found = relations.get(atom.predicate)
            assert found is not None
            for row in rows_of(found[1]):
                fixed = all(row[place] == valuation[names[dimension]] for dimension, place in atom.fixed)
                same = all(row[one] == row[other] for one, other in atom.equal)
                if fixed and same:
                    assert (atom.predicate[0], *row) in held[owner]
    for slice, part in enumerate(routed):
        alone = slicer.only(chunk, slice)
        assert alone.relations.keys() == part.relations.keys()
        assert all((alone.relations[key][0] == part.relations[key][0]).all() for key in part.relations)


def rows_of(columns: Any) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in columns), strict=True))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("p() AND ONCE[0,5] q()", (5, 0)),
        ("EVENTUALLY[1,3] PREV[0,2] p()", (2, 3)),
        ("p() SINCE[0,4] (q() UNTIL[0,2] r())", (4, 2)),
        ("ONCE p()", (None, 0)),
        ("NEXT p()", (0, None)),
    ],
)
def test_how_far_a_closed_formula_sees(text: str, expected: tuple[int | None, int | None]) -> None:
    assert reach(parse_formula(text, "<test>")[0], 1) == expected


def test_ranges_of_time_cover_all_time_points_once() -> None:
    chunk = LogChunk(0, np.array([1, 1, 2, 5, 5, 9, 10, 12]), {}, 0)
    parts = ranges([chunk], 3, 2, 3)
    assert len(parts) == 3
    owned = [time for part in parts for time in chunk.times.tolist() if part.first <= time <= part.last]
    assert sorted(owned) == chunk.times.tolist()
    cut = parts[1].cut(chunk)
    assert cut is not None
    assert cut.first == int(np.searchsorted(chunk.times, parts[1].begin))


def test_floats_of_any_numbers() -> None:
    """Integers that no double holds are rounded, as literals are, and decimals are numbers; in one push and in many."""
    policy = Policy.parse("p(a)", signature="p(a: float)")
    prices = pa.array([Decimal("0.25"), Decimal("1e15")], pa.decimal128(20, 2))
    events = [
        pa.table({"time": [0, 1], "type": ["p", "p"], "a": column})
        for column in ([2**53 + 1, -(2**60) - 1], [0.5, 1e300], prices)
    ]
    wanted = [2.0**53, -(2.0**60), 0.5, 1e300, 0.25, 1e15]
    assert [row["a"] for each in events for row in run(policy, each).rows()] == wanted
    monitor = Monitor(policy)
    rows = [row for place, each in enumerate(events) for row in monitor.push(at(each, place))]
    assert [row["a"] for row in rows + monitor.close()] == wanted
    dicts = [{"time": place, "type": "p", "a": value} for place, value in enumerate([2**53 + 1, Decimal("0.5"), 1])]
    monitor = Monitor(policy)
    assert [row["a"] for each in dicts for row in monitor.push([each])] == [2.0**53, 0.5]


def at(table: pa.Table, place: int) -> pa.Table:
    return table.set_column(0, "time", pa.array([2 * place, 2 * place + 1]))


def test_decimals_with_a_fraction_are_no_int() -> None:
    prices = pa.array([Decimal("1.50")], pa.decimal128(20, 2))
    with pytest.raises(DataError, match="int means integers"):
        run(Policy.parse("p(a)", signature="p(a: int)"), pa.table({"time": [0], "type": ["p"], "a": prices}))


def test_integers_that_pandas_has_made_doubles() -> None:
    frame = pytest.importorskip("pandas").DataFrame({"time": [0, 1], "type": ["p", "p"], "a": [1, None]})
    policy = Policy.parse("p(a)", signature="p(a: int)")
    with pytest.raises(DataError, match=r"hint: pandas makes doubles .* df\.convert_dtypes\(\) keeps them"):
        run(policy, frame)
    assert [row["a"] for row in run(policy, frame.convert_dtypes()).rows()] == [1]


@pytest.mark.parametrize(("last", "rows"), [("2024-01-01T00:00:09", 1), ("2024-01-01T00:00:09.5", 0)])
def test_bounds_without_a_unit_over_timestamps(last: str, rows: int, tmp_path: Path) -> None:
    """They are in the unit of the column, which a fraction makes microseconds: who reads no file sees neither."""
    policy = Policy.parse("B(u) AND ONCE[0,3] A(u)", "A(u: int) B(u: int)", name="o")
    (tmp_path / "e.csv").write_text(f"time,type,u\n2024-01-01T00:00:00,A,1\n2024-01-01T00:00:02,B,1\n{last},B,1\n")
    found = run(policy, tmp_path / "e.csv")
    told = ["o: the bound 3 has no unit, so it is 3 microseconds, the unit of the time column; write 3s for seconds"]
    assert len(found) == rows
    assert list(found.warnings) == (told if not rows else [])
    monitor = Monitor(policy)
    monitor.push(pa_csv.read_csv(tmp_path / "e.csv"))
    assert len(monitor.warnings) == (not rows)
    unit = Policy.parse("B(u) AND ONCE[0,3s] A(u)", "A(u: int) B(u: int)")
    found = run(unit, tmp_path / "e.csv")
    assert (len(found), list(found.warnings)) == (1, [])
