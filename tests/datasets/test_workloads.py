"""Every file in workloads/: it parses, prints back to itself, checks without a word, and its columns exist."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

from datasets import flights, taxi
from datasets.ridesharing import Settings, generate
from hamlet.input.events import open_events
from hamlet.language.analysis import analyse
from hamlet.language.parser import parse
from hamlet.language.printing import to_text
from hamlet.language.query import Alternation, Conjunction, Negation, Pattern, Repetition, Shift, WorkloadText, children
from hamlet.language.typecheck import check

FOLDER = Path(__file__).resolve().parents[2] / "workloads"
FILES = sorted(FOLDER.glob("*.sase"))
MICROSECONDS = {"time_unit": "us", "order_column": "seq"}


def with_seq(schema: pa.Schema) -> pa.Table:
    return schema.insert(2, pa.field("seq", pa.int32())).empty_table()


def streams() -> dict[str, tuple[pa.Table, dict[str, str]]]:
    """Tables with the columns of each stream, and the options that its workload's header names."""
    trades = {"symbol": pa.string(), "price": pa.float64(), "size": pa.int32(), "exchange": pa.string()}
    trades |= {"cond": pa.string(), "suspicious": pa.bool_()}
    readings = {"plug": pa.string(), "appliance": pa.string(), "complete": pa.bool_()}
    readings |= {"power_1s_w": pa.int32(), "power_8s_w": pa.int32()}
    begin = {"time": pa.int64(), "type": pa.string()}
    return {
        "ridesharing": (generate(Settings(events=100)), {"type_column": "event"}),
        "trend_alarm": (generate(Settings(events=100)), {"type_column": "event"}),
        "flights": (with_seq(flights.SCHEMA), {}),
        "taxi": (with_seq(taxi.SCHEMA), MICROSECONDS),
        "stock": (with_seq(pa.schema(begin | trades)), MICROSECONDS),
        "stock50": (with_seq(pa.schema(begin | trades)), MICROSECONDS),
        "stock_chains": (with_seq(pa.schema(begin | trades)), MICROSECONDS),
        "smarthome": (with_seq(pa.schema(begin | readings)), MICROSECONDS),
    }


def load(file: Path) -> WorkloadText:
    return parse(file.read_text(encoding="utf-8"), str(file))


def parts(pattern: Pattern) -> list[Pattern]:
    return [pattern, *(p for child in children(pattern) for p in parts(child))]


def test_there_is_a_workload_for_each_stream() -> None:
    assert {file.stem for file in FILES} == set(streams())


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_printing_and_parsing_again_is_the_identity(file: Path) -> None:
    workload = load(file)
    text = to_text(workload)
    assert parse(text) == workload
    assert to_text(parse(text)) == text
    assert len(workload.queries) >= 10 or file.stem == "trend_alarm"  # which is part of an example


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_no_errors_and_no_warnings(file: Path) -> None:
    analysis = analyse(load(file))
    assert [w.format() for w in analysis.warnings] == []
    assert not any(isinstance(p, Conjunction) for q in analysis.text.queries for p in parts(q.pattern))
    assert analysis.text.declarations == ()


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_columns_exist_and_types_fit(file: Path) -> None:
    table, options = streams()[file.stem]
    if table.num_rows == 0:  # a stream without events is no stream
        table = pa.table(
            [pa.array([0 if pa.types.is_integer(t) else None], t) for t in table.schema.types], table.schema.names
        )
    schema = open_events(table, **options).schema  # type: ignore[arg-type]
    assert [d.format() for d in check(analyse(load(file)), schema)] == []


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_every_query_says_what_it_asks(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert (
        re.match(r"-- .*\n-- .*HAMLET", text) or "HAMLET (SIGMOD'21)" in text.split("\n\n")[0] or "HAMLET" in text[:200]
    )
    for query in load(file).queries:
        before = text[: query.span.start].rstrip().splitlines()
        assert before[-1].startswith("-- "), query.name
        assert "?" in before[-1], query.name


def test_the_options_of_each_workload_stand_in_its_header() -> None:
    for name, (_, options) in streams().items():
        header = (FOLDER / f"{name}.sase").read_text(encoding="utf-8").split("\n\n")[0]
        for option, value in options.items():
            assert f"--{option.replace('_', '-')} {value}" in header, name


def test_figure_1_as_printed() -> None:
    q1, q2, q3 = load(FOLDER / "ridesharing.sase").queries[:3]
    assert [q.name for q in (q1, q2, q3)] == ["q1", "q2", "q3"]
    assert to_text(q1.pattern) == "SEQ(Request R, Travel T+, NOT Pickup P)"
    assert to_text(q2.pattern) == "SEQ(Request R, Travel T+, Dropoff D)"
    assert to_text(q3.pattern) == "SEQ(Request R, Travel T+, Cancel C)"
    assert "R.type = " in to_text(q2.condition)


def test_the_language_is_used_in_its_variety() -> None:
    queries = [q for file in FILES for q in load(file).queries]
    found = {type(p) for q in queries for p in parts(q.pattern)}
    assert {Alternation, Negation, Repetition} <= found
    assert {i.value.function for q in queries for i in q.items if hasattr(i.value, "function")} == {
        "COUNT_DISTINCT",
        "COUNT", "SUM", "AVG", "MIN", "MAX",
    }  # fmt: skip
    assert any(i.log2 for q in queries for i in q.items)
    assert any(q.slide for q in queries)
    assert any(Shift.NEXT.value + "(" in to_text(q) for q in queries)


def test_smart_home_has_five_queries_for_the_benchmark() -> None:
    queries = load(FOLDER / "smarthome.sase").queries
    plain = [q for q in queries if q.within.seconds == 300 and q.slide is None and "NEXT(" not in to_text(q)]
    assert sum([a.name for a in q.group_by] == ["plug"] for q in plain) >= 5
