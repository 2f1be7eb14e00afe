"""Evidence for rows of row patterns in SQL: cases by hand, the command, random statements, and mutants."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import hamlet
from hamlet.checker import EvidenceError, check
from hamlet.cli import main
from hamlet.errors import OptionError
from tests.compare_matches import compare
from tests.effort import share_of

PRICES = {"A": [10, 8, 7, 9, 12, 11, 13, 5, 6], "B": [5, 6, 4, 3, 5, 9]}
TICKS = [
    {"symbol": symbol, "ts": ts, "price": price} for symbol, prices in PRICES.items() for ts, price in enumerate(prices)
]
TEXT = """
SELECT symbol, n, since FROM ticks MATCH_RECOGNIZE (
    PARTITION BY symbol ORDER BY ts MEASURES COUNT(*) AS n, FIRST(ts) AS since
    PATTERN (s d+ u+) DEFINE d AS price < PREV(price), u AS price > PREV(price) AND price > LAST(d.price)
) WHERE n > 2 ORDER BY since
"""


def test_every_row_has_its_match() -> None:
    results = hamlet.sql(TEXT, {"ticks": TICKS})
    rows = results.rows()
    assert len(rows) == 3
    for row in rows:
        evidence = results.why(row)
        assert evidence.holds
        assert evidence.kind == "match"
        check(TEXT, {"ticks": TICKS}, evidence)
    data = results.why({"since": 6}).data
    assert data["partition"] == {"symbol": "A"}
    assert data["skipped_to"] is None
    assert [(each["at"], each["label"]) for each in data["rows"]] == [(6, "s"), (7, "d"), (8, "u")]
    assert data["conditions"][2] == {"PREV(price)": 5, "LAST(d.price)": 5, "price": 6}
    with pytest.raises(OptionError, match="2 rows match"):
        results.why({"symbol": "A"})


JUNK: tuple[Any, ...] = (None, True, -1, 2**70, float("nan"), "x", "inf", [], [[]], {}, {"in": []})


def test_junk_in_evidence_is_told() -> None:
    """No number but the right one is accepted, and whatever else stands somewhere is no crash of the checker."""
    data = json.loads(hamlet.sql(TEXT, {"ticks": TICKS}).why({"since": 6}).json())
    for name in ("row", "partition", "rows", "holds", "conditions", "clause", "skipped_to"):
        for junk in JUNK:
            if junk != data.get(name):
                with contextlib.suppress(EvidenceError):
                    check(TEXT, {"ticks": TICKS}, {**data, name: junk})
    for name in ("n", "since"):
        for junk in JUNK:
            with pytest.raises(EvidenceError):
                check(TEXT, {"ticks": TICKS}, {**data, "row": {**data["row"], name: junk}})


def test_no_number_among_doubles() -> None:
    """NaN is above all numbers of the host, integers among them."""
    text = "SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES a.ts AS since PATTERN (a) DEFINE a AS x > 3)"
    events = [{"ts": at, "x": x} for at, x in enumerate((1.5, float("nan"), 4.5))]
    results = hamlet.sql(text, {"t": events})
    assert [row["since"] for row in results.rows()] == [1, 2]
    for row in results.rows():
        check(text, {"t": events}, results.why(row))


def test_rows_at_which_no_match_begins() -> None:
    results = hamlet.sql(TEXT, {"ticks": TICKS})
    taken = results.why({"symbol": "A", "ts": 1})
    assert not taken.holds
    assert taken.data["rows"][0]["at"] == 0
    check(TEXT, {"ticks": TICKS}, taken)
    never = results.why({"symbol": "A", "ts": 5})
    assert [each["label"] for each in never.data["rows"]] == ["s"]
    assert never.data["ended"]["tried"][0]["values"] == {"PREV(price)": 11, "price": 13}
    check(TEXT, {"ticks": TICKS}, never)
    assert "no labelling" in never.text()
    assert "<html" in never.html()
    with pytest.raises(OptionError, match="columns of one row"):
        results.why({"symbol": "C"})


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"holds": False, "values": []}, "an absent row is named by"),
        ({"holds": False, "row": {"at": 6}, "values": []}, "the match gives more rows"),
        ({"holds": False, "row": {"at": 6}, "values": [{"symbol": "A", "n": 4, "since": 6}]}, "gives other rows"),
        ({"row": {"symbol": "A", "n": 3, "since": 6, "b": 1}}, "no column b"),
    ],
)
def test_a_row_of_the_result_is_not_absent(changed: dict[str, Any], reason: str) -> None:
    data = hamlet.sql(TEXT, {"ticks": TICKS}).why({"symbol": "A", "since": 6}).data
    assert data["row"] == {"symbol": "A", "n": 3, "since": 6}
    with pytest.raises(EvidenceError, match=reason):
        check(TEXT, {"ticks": TICKS}, {**data, **changed})


def test_what_the_filter_leaves_out_is_absent() -> None:
    text = TEXT.replace("n > 2", "m.n > 3").replace(") WHERE", ") AS m WHERE")
    data = hamlet.sql(text, {"ticks": TICKS}).why({"symbol": "A", "ts": 6}).data
    assert data["values"] == [{"symbol": "A", "n": 3, "since": 6}]
    check(text, {"ticks": TICKS}, data)
    with pytest.raises(EvidenceError, match="the filter leaves no such row"):
        check(text, {"ticks": TICKS}, {**data, "row": data["values"][0], "holds": True})


@pytest.mark.parametrize("around", ["SELECT count(*) AS c FROM", "SELECT DISTINCT n FROM", "SELECT n FROM"])
def test_where_more_is_around_a_clause_its_rows_are_asked_for(around: str) -> None:
    text = TEXT.replace("SELECT symbol, n, since FROM", around).replace("WHERE n > 2 ORDER BY since", "LIMIT 1")
    evidence = hamlet.sql(text, {"ticks": TICKS}).why({"since": 6})
    assert evidence.data["row"] == {"symbol": "A", "n": 3, "since": 6}
    check(text, {"ticks": TICKS}, evidence)


def test_the_rows_of_evidence_are_those_that_are_asked_for() -> None:
    data = hamlet.sql(TEXT, {"ticks": TICKS}).why({"at": 5}).data
    other = {"at": 9, "event": TICKS[9], "label": "d"}
    for mutant in ({**data, "row": {"at": 4}}, {**data, "rows": [*data["rows"], other]}):
        with pytest.raises(EvidenceError):
            check(TEXT, {"ticks": TICKS}, mutant)


@pytest.mark.parametrize("rows", ["ALL ROWS PER MATCH", "ALL ROWS PER MATCH WITH UNMATCHED ROWS"])
def test_no_row_of_the_result_is_absent_by_evidence_of_another(rows: str) -> None:
    text = TEXT.replace("PATTERN", f"{rows} PATTERN").replace("SELECT symbol, n, since", "SELECT *")
    text = text.replace("WHERE n > 2 ORDER BY since", "")
    results = hamlet.sql(text, {"ticks": TICKS})
    given = results.rows()
    for at in (1, 3):
        data = results.why({"at": at}).data
        check(text, {"ticks": TICKS}, data)
        for row in given[at : at + 2]:
            with pytest.raises(EvidenceError):
                check(text, {"ticks": TICKS}, {**data, "row": row})
    if "UNMATCHED" in rows:
        data = results.why(next(row for row in given if row["n"] is None)).data
        assert data["holds"]
        with pytest.raises(EvidenceError):
            check(text, {"ticks": TICKS}, {**data, "holds": False, "values": []})


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "q.sql").write_text(TEXT)
    (tmp_path / "ticks.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in TICKS))
    given = ["why", str(tmp_path / "q.sql"), "--input", f"ticks={tmp_path / 'ticks.jsonl'}", "--check"]
    assert main([*given, "--row", '{"since": 6}', "--format", "json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["kind"] == "match"
    assert "was checked" in err


def test_random_evidence_is_accepted_and_mutants_are_not() -> None:
    counts: Counter[str] = Counter()
    for seed in range(share_of(20)):
        counts += compare(seed)
    assert counts["rows"] > share_of(8)
    assert counts["absent"] > share_of(10)
    assert counts["rejected"] > share_of(50)
