"""Propagation on symbols: the paper's tables, and counts of every event against brute force over random workloads."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
import sympy
from hypothesis import given, settings

import hamlet
from hamlet.errors import DataError, OptionError, UnsupportedError
from hamlet.language.automaton import template
from hamlet.language.parser import parse
from hamlet.language.printing import to_text
from hamlet.language.query import negations
from hamlet.oracle import Event, Search, Stream, Window
from optimizer.template import START
from tests.case_files import oracle_options
from tests.strategies import Case, Features, case_strategy

x, y, z = sympy.symbols("x y z")

FIGURE_4 = "AACBBBBAACCCB"
VALUES = [0, 0, 0, 1, 3, 2, 4, 0, 0, 0, 0, 0, 5]
TWO = """
q1: RETURN COUNT(*) PATTERN SEQ(A, B+) WITHIN 100 s;
q2: RETURN COUNT(*) PATTERN SEQ(C, B+) {} WITHIN 100 s;
"""


def events_of(types: str, values: list[int] | None = None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [{"time": time, "type": type} for time, type in enumerate(types)]
    return found if values is None else [event | {"v": value} for event, value in zip(found, values, strict=True)]


def propagated(text: str, types: str, values: list[int] | None = None, **options: Any) -> Any:
    return hamlet.symbolic(hamlet.Workload.parse(text), events_of(types, values), **options)


# ---------------------------------------------------------------------------------------------- the paper's tables


def test_tables_3_and_4() -> None:
    """x, 2x, 4x, 8x in the first graphlet of B, y in the second; x = 2 and 1, y = 34 and 19."""
    found = propagated(TWO.format(""), FIGURE_4)
    assert found.expressions == [1, 1, 1, x, 2 * x, 4 * x, 8 * x, 1, 1, 1, 1, 1, y]
    assert found.values == {"x": {"q1": 2, "q2": 1}, "y": {"q1": 34, "q2": 19}}
    rows = hamlet.run(hamlet.Workload.parse(TWO.format("")), events_of(FIGURE_4)).rows()
    for row in rows:
        assert sum(found.count(event, row["query"]) for event in (3, 4, 5, 6, 12)) == row["count"]


def test_table_5() -> None:
    """The third B follows fewer B in q2 than in q1: a snapshot of its own, z = 8 and 2; then 4x + z for both."""
    found = propagated(TWO.format("WHERE B.v < NEXT(B).v"), FIGURE_4, VALUES)
    assert found.expressions == [1, 1, 1, x, 2 * x, z, 4 * x + z, 1, 1, 1, 1, 1, y]
    assert found.values == {x: {"q1": 2, "q2": 1}, z: {"q1": 8, "q2": 2}, y: {"q1": 34, "q2": 15}}
    for query, four, all_of_them in (("q1", 30, 64), ("q2", 11, 26)):
        counts = [found.count(event, query) for event in (3, 4, 5, 6, 12)]
        assert (sum(counts[:4]), sum(counts)) == (four, all_of_them)


def test_an_event_that_one_query_rejects_is_a_snapshot_of_its_own() -> None:
    """Def. 3.10 for local predicates: the count is 0 for the query that rejects the event, and sharing goes on."""
    found = propagated(TWO.format("WHERE B.v > 0"), "ACBBB", [0, 0, 1, 0, 1])
    assert found.expressions == [1, 1, x, z, 2 * x + z]
    assert found.values == {"x": {"q1": 1, "q2": 1}, "z": {"q1": 2, "q2": 0}}


# ------------------------------------------------------------------------------------------- what else there is


def test_events_without_queries_and_without_trends() -> None:
    found = propagated(TWO.format(""), "BZAB")
    assert found.expressions == [0, None, 1, x]
    assert found.values == {"x": {"q1": 1, "q2": 0}}


def test_queries_that_do_not_share_need_a_snapshot_where_they_differ() -> None:
    text = """
    one: RETURN COUNT(*) PATTERN SEQ(A, B) WITHIN 100 s;
    two: RETURN COUNT(*) PATTERN SEQ(A?, B) WITHIN 100 s;
    """
    found = propagated(text, "AAB")
    assert found.expressions == [1, 1, z]
    assert found.values == {z: {"one": 2, "two": 3}}
    assert propagated(text.replace("A?", "A"), "AAB").expressions == [1, 1, 2]


def test_nested_kleene_patterns_share_their_bursts() -> None:
    text = """
    one: RETURN COUNT(*) PATTERN (SEQ(A, B+))+ WITHIN 100 s;
    two: RETURN COUNT(*) PATTERN SEQ(C, B+) WITHIN 100 s;
    """
    found = propagated(text, "ACBBAB")
    assert found.expressions == [1, 1, x, 2 * x, 4, y]
    assert found.values == {"x": {"one": 1, "two": 1}, "y": {"one": 8, "two": 4}}


def test_windows_and_partitions_have_snapshots_of_their_own() -> None:
    text = TWO.format("").replace("WITHIN 100 s", "GROUP-BY k WITHIN 4 s")
    events = [event | {"k": key} for event, key in zip(events_of("AACBBAB"), "uvuuvvu", strict=True)]
    found = hamlet.symbolic(hamlet.Workload.parse(text), events)
    assert found.expressions == [1, 1, 1, x, 0, 1, 0]
    assert found.values == {"x": {"q1": 1, "q2": 1}}


def test_gaps_between_windows() -> None:
    found = propagated("RETURN COUNT(*) PATTERN B+ WITHIN 2 s SLIDE 3 s", "BBBB")
    assert found.expressions == [x, 2 * x, None, y]


def test_negated_events_end_a_graphlet_and_match_nothing() -> None:
    found = propagated("RETURN COUNT(*) PATTERN SEQ(A, NOT C, B+) WITHIN 100 s", "ABCB")
    assert found.expressions == [1, x, None, y]
    assert found.values == {"x": {"q1": 1}, "y": {"q1": 1}}


def test_sums_beyond_the_second_snapshot_have_numbers() -> None:
    found = propagated("RETURN COUNT(*) PATTERN SEQ(A, B+) WITHIN 100 s", "ABABABAB")
    assert [str(each) for each in found.expressions[1::2]] == ["x", "y", "x3", "x4"]
    assert list(found.values) == list(map(sympy.Symbol, ("x", "y", "x3", "x4")))


def test_events_in_any_order_and_form(tmp_path: Path) -> None:
    workload = hamlet.Workload.parse(TWO.format(""))
    events = events_of("AACBBBB")
    expected = hamlet.symbolic(workload, events)
    turned = hamlet.symbolic(workload, events[::-1])
    assert turned.expressions == expected.expressions[::-1]
    table = pa.Table.from_pylist(events)
    assert hamlet.symbolic(workload, table) == expected
    pyarrow.parquet.write_table(table, tmp_path / "events.parquet")
    assert hamlet.symbolic(workload, tmp_path / "events.parquet") == expected
    assert hamlet.symbolic(workload, []).expressions == []
    named = [{"at": event["time"], "kind": event["type"]} for event in events]
    assert hamlet.symbolic(workload, named, time_column="at", type_column="kind") == expected


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("RETURN COUNT(*) PATTERN A AND B WITHIN 5 s", UnsupportedError, "two queries"),
        ("RETURN COUNT(*) PATTERN A+ WITHIN 5 s SLIDE 1 s", UnsupportedError, "leave out SLIDE"),
        (
            "EVENT B(v INT); RETURN COUNT(*) PATTERN SEQ(A, B) GROUP-BY k WITHIN 5 s",
            UnsupportedError,
            "every partition",
        ),
        ("RETURN COUNT(*) PATTERN A WHERE A.v * 9223372036854775807 > 1 WITHIN 5 s", DataError, "64 bits"),
        (
            "RETURN COUNT(*) PATTERN A+ WHERE A.v * NEXT(A).v * 9223372036854775807 > 1 WITHIN 5 s",
            DataError,
            "64 bits",
        ),
    ],
)
def test_what_symbols_cannot_show(text: str, error: type[Exception], message: str) -> None:
    events = [{"time": time, "type": "A", "v": 3, "k": 1} for time in range(2)]
    with pytest.raises(error, match=message):
        hamlet.symbolic(hamlet.Workload.parse(text), events)


def test_options_are_checked() -> None:
    with pytest.raises(OptionError, match="no option 'window'"):
        propagated(TWO.format(""), "AB", window=3)


def test_sympy_is_loaded_on_use_only() -> None:
    code = "import hamlet, sys; assert 'sympy' not in sys.modules; hamlet.symbolic; assert 'sympy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


# --------------------------------------------------------------------------------------------- against brute force

FEATURES = Features(queries=4, events=8, windows=False, aggregates=False)


class Prefixes:
    """Brute force: every partial trend of a query, one by one, along the runs of its template."""

    def __init__(self, case: Case, number: int) -> None:
        text, events, options = case
        parsed = parse(text)
        self.query = parsed.queries[number]
        columns = oracle_options(options)
        stream = Stream(
            events,
            parsed.declarations,
            columns.get("time_column", "time"),
            columns.get("type_column", "type"),
            columns.get("order_column"),
        )
        self.search = Search(self.query, stream, Window(0, 10**9))
        self.template = template(self.query.pattern)
        bodies = {to_text(each.body): each.body for each in negations(self.query.pattern)}
        self.guards = [bodies[guard.text] for guard in self.template.guards]
        self.counts: dict[int, int] = {}
        self.extend(START, None, {})

    def matches(self, event: Event) -> bool:
        return any(
            type == event.type and self.search.accepts(event, variable)
            for variable, type in zip(self.template.variables, self.template.types, strict=True)
        )

    def extend(self, state: int, last: tuple[Event, str] | None, key: Mapping[str, Any]) -> None:
        for step in self.template.transitions:
            if step.source != state:
                continue
            variable, type = self.template.variable(step.target), self.template.types[self.template.labels[step.target]]
            for event in self.search.events:
                extended = self.search.agree(key, event)
                if event.type != type or extended is None or not self.search.accepts(event, variable):
                    continue
                if last is not None and not (last[0].before(event) and self.search.connects(last, (event, variable))):
                    continue
                left = None if last is None else last[0]
                if any(self.search.forbidden(self.guards[guard], left, event, extended) for guard in step.guards):
                    continue
                self.counts[event.index] = self.counts.get(event.index, 0) + 1
                self.extend(step.target, (event, variable), extended)


def check(case: Case) -> None:
    """With its values in place of the snapshots, an expression is the number of partial trends that the event ends."""
    text, events, options = case
    found = hamlet.symbolic(hamlet.Workload.parse(text), events, **options)
    assert len(found.expressions) == len(events)
    assert all(isinstance(each, sympy.Expr) or each is None for each in found.expressions)
    queries = [Prefixes(case, number) for number in range(len(parse(text).queries))]
    for index, expression in enumerate(found.expressions):
        event = next(each for each in queries[0].search.stream.events if each.index == index)
        matching = [query for query in queries if query.matches(event)]
        assert (expression is None) == (not matching), (index, expression)
        for query in matching:
            assert found.count(index, query.query.name) == query.counts.get(index, 0), (index, query.query.name)
        for symbol in () if expression is None else expression.free_symbols:  # those that share and reject the event
            for query in queries:
                if query.query.name in found.values[symbol] and query not in matching:
                    assert found.count(index, query.query.name) == 0


@given(case_strategy(FEATURES))
@settings(max_examples=60)
def test_oracle_counts_of_every_event(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_oracle_counts_of_bursts_that_queries_share(first: int) -> None:
    """Queries that differ in what comes before B+, in a local predicate and in an adjacent one; long bursts."""
    for seed in range(first, first + 50):
        check(sharing_case(seed))


def sharing_case(seed: int) -> Case:
    import random

    chance = random.Random(seed)
    patterns = ["SEQ(A, B+)", "SEQ(C, B+)", "B+", "SEQ(A, B+, C)", "SEQ(A, NOT C, B+)", "(SEQ(A, B+))+", "SEQ(B x, B+)"]
    wheres = ["", "", "B.v > 0", "B.v >= 1", "B.v > 2", "B.v < NEXT(B).v", "B.v <= NEXT(B).v AND B.v > 0", "[k]"]
    queries = []
    for _ in range(chance.randint(2, 4)):
        where = chance.choice(wheres)
        queries.append(
            f"RETURN COUNT(*) PATTERN {chance.choice(patterns)} {f'WHERE {where}' * bool(where)} WITHIN 1000 s;"
        )
    types = ["A", "C"] + [chance.choice("BBBBBACZ") for _ in range(8)]
    events: list[dict[str, Any]] = [
        {"time": time, "type": type, "v": chance.randint(0, 3), "k": chance.choice([1, 1, 2])}
        for time, type in enumerate(types)
    ]
    return "\n".join(queries), events, {}
