"""`hamlet.testing`: assertions that show the trends, and golden cases for pytest."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from hamlet.errors import DataError
from hamlet.testing import Case, assert_trends, cases, describe_trends, events_of, rows_of

QUERY = "RETURN COUNT(*), SUM(B.v) AS total PATTERN SEQ(A, B+) WHERE [k] WITHIN 10 s"
STREAM = """
time type k v
0    A    1 -
1    B    1 5
2    B    2 6
3    B    1 7
"""


def failure(query: str, stream: str, expected: int | str, **options: str) -> str:
    with pytest.raises(AssertionError) as caught:
        assert_trends(query, stream, expected, **options)
    return str(caught.value)


def test_what_holds_passes() -> None:
    assert_trends(QUERY, STREAM, 3)
    assert_trends(QUERY, STREAM, [{"count": 3, "total": 24}])
    assert_trends(QUERY, STREAM, "query count total\nq1 3 24")
    assert_trends(QUERY, "B A", "none")
    assert_trends(QUERY, "B A", 0)
    assert_trends(QUERY, STREAM, [{"total": 24.0}], numbers="float")


def test_a_wrong_number_shows_the_trends() -> None:
    assert failure(QUERY, STREAM, 4).splitlines() == [
        "found 3, expected 4",
        "found:",
        "  query=q1 window_start=0 window_end=10 count=3 total=24",
        "q1, window [0, 10), k=1: 3 trends",
        "  A@0 B@1",
        "  A@0 B@3",
        "  A@0 B@1 B@3",
    ]


def test_wrong_rows_say_which_value() -> None:
    assert failure(QUERY, STREAM, "query count total\nq1 3 25").startswith("row 1: found total=24, expected 25\n")
    assert failure(QUERY, STREAM, "query cuont\nq1 3").startswith("row 1 has no column 'cuont'; its columns are query")
    assert failure(QUERY, STREAM, "none").startswith("found 1 row, expected 0\n")
    assert failure(QUERY, "B", 1).splitlines() == ["found 0, expected 1", "found: no rows", "q1: no trends"]


def test_variables_are_shown_where_they_differ_from_the_type() -> None:
    query = "RETURN COUNT(*) PATTERN SEQ(A x, A y) AND A WITHIN 10 s"
    assert describe_trends(query, "A A").splitlines() == [
        "q1, window [0, 10), left side of AND: 1 trend",
        "  A:x@0 A:y@1",
        "q1, window [0, 10), right side of AND: 2 trends",
        "  A@0",
        "  A@1",
    ]


def test_long_lists_are_cut_and_long_streams_not_listed() -> None:
    query = "RETURN COUNT(*) PATTERN A+ WITHIN 100 s"
    assert describe_trends(query, "A " * 8).splitlines()[-1] == "  ... and 215 more"
    assert describe_trends(query, "A " * 21).startswith("(the trends are listed for streams of up to 20 events")
    moment = datetime.datetime(2024, 1, 1)
    assert describe_trends(query, [{"time": moment, "type": "A"}]) == "(the trends are listed for integer times)"


def test_options_reach_engine_and_list() -> None:
    stream = "time type no\n1 A 1\n1 B 2"
    query = "RETURN COUNT(*) PATTERN SEQ(A, B) WITHIN 10 ms"
    assert_trends(query, stream, "none", time_unit="ms")
    message = failure(query, stream, 2, time_unit="ms", order_column="no")
    assert message.endswith("q1, window [0, 10): 1 trend\n  A@1 B@1")


def test_cases_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "two.case").write_text(
        "Two after one.\n-- options\ntime_unit ms\n-- events\nA B B\n-- query\n"
        "RETURN COUNT(*) PATTERN SEQ(A, B+) WITHIN 10 ms\n-- expect\nquery count\nq1 3\n",
        encoding="utf-8",
    )
    [case] = cases(tmp_path)
    assert (str(case), case.about, case.options) == ("two", "Two after one.", {"time_unit": "ms"})
    case.check()
    case.check(numbers="float")
    (tmp_path / "two.case").write_text("-- events\nA\n-- query\nRETURN COUNT(*) PATTERN A WITHIN 1 s\n")
    with pytest.raises(DataError, match=r"two\.case: there is no section '-- expect'"):
        cases(tmp_path)
    with pytest.raises(DataError, match=r"there is no \.case file in"):
        cases(tmp_path / "none")


@pytest.mark.parametrize("case", cases(Path(__file__).parents[1] / "cases"), ids=str)
def test_golden_cases_by_the_public_way(case: Case) -> None:
    case.check()


def test_lines_of_a_wrong_length_are_refused() -> None:
    with pytest.raises(DataError, match="the line '1 A 3' has 3 cells under the head 'time type'"):
        events_of("time type\n1 A 3")
    assert rows_of("none") == []


def test_a_time_that_is_no_integer() -> None:
    with pytest.raises(DataError, match="the time of the event 'A@x' is not an integer; write type@time"):
        events_of("B A@x")
