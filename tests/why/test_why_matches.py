"""Evidence for rows of row patterns in SQL: cases by hand, the command, random statements, and mutants."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hamlet
from hamlet.checker import EvidenceError, check
from hamlet.cli import main
from hamlet.errors import OptionError
from tests.random_patterns import Generator

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


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "q.sql").write_text(TEXT)
    (tmp_path / "ticks.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in TICKS))
    given = ["why", str(tmp_path / "q.sql"), "--input", f"ticks={tmp_path / 'ticks.jsonl'}", "--check"]
    assert main([*given, "--row", '{"since": 6}', "--format", "json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["kind"] == "match"
    assert "was checked" in err


def cases(low: int, high: int) -> Any:
    """Random statements that have rows, their tables and results."""
    schema = pa.schema([(name, pa.int64()) for name in ("i", "k", "t", "v", "w")])
    for seed in range(low, high):
        case = Generator(seed, labels=seed % 3 > 0).case()
        table = pa.Table.from_pylist(case.rows, schema)
        try:
            yield seed, case.sql, {"t": table}, hamlet.sql(case.sql, {"t": table})
        except hamlet.DataError:
            continue


def test_random_evidence_is_accepted() -> None:
    shown = absent = 0
    for seed, text, tables, results in cases(0, 12):
        rows = results.rows()
        for row in [row for row in rows if rows.count(row) == 1][:3]:
            evidence = results.why(row)
            assert evidence.holds, f"seed {seed}\n{text}\n{row}"
            check(text, tables, evidence)
            shown += 1
        for at in range(min(3, tables["t"].num_rows)):
            evidence = results.why({"at": at})
            check(text, tables, evidence)
            absent += not evidence.holds
    assert shown > 8
    assert absent > 10


def mutants(data: dict[str, Any], dice: random.Random) -> Any:
    """Evidence with one thing changed, which then is not true."""
    for place in range(len(data["rows"])):
        found = copy.deepcopy(data)
        found["rows"][place]["at"] += dice.choice((-1, 1))
        yield found
        found = copy.deepcopy(data)
        found["rows"][place]["label"] += "x"
        yield found
        for name, value in data["conditions"][place].items():
            found = copy.deepcopy(data)
            found["conditions"][place][name] = 12345 if value != 12345 else None
            yield found
        found = copy.deepcopy(data)
        del found["rows"][place], found["conditions"][place]
        yield found
    if data["holds"] and "skipped_to" in data and data["rows"]:
        yield data | {"skipped_to": -5}
    yield data | {"holds": not data["holds"], "taken": False}


def test_mutants_are_rejected() -> None:
    tried = 0
    for seed, text, tables, results in cases(30, 37):
        dice = random.Random(seed)
        rows = results.rows()
        some: list[dict[str, Any]] = [row for row in rows if rows.count(row) == 1][:1]
        if tables["t"].num_rows:
            some.append({"at": 0})
        for row in some:
            data = results.why(row).data
            if data.get("unmatched") or not data["rows"]:
                continue
            for mutant in mutants(data, dice):
                tried += 1
                with pytest.raises(EvidenceError):
                    check(text, tables, mutant)
    assert tried > 15
