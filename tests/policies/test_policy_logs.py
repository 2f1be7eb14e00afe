"""MonPoly's log format: what is read, however it is cut into chunks, and every mistake with its place."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest

from hamlet.errors import DataError
from hamlet.input import jsonfile
from hamlet.policies import Policy, run
from hamlet.policies.logs.reader import LogFile
from hamlet.policies.tenant import PolicyTenant

SIGNATURE = {("p", 1): ["int"], ("q", 2): ["string", "float"], ("e", 0): [], ("b", 1): ["bool"], ("q", 1): ["int"]}
GOOD = '@1 p(1)(2) q("a b",1.5)\n  (x, -2)\n@1 @2 e\n e() q(7); # c @9\n@3;\n@10 b(true)\n@11 e # tail'


def read(path: Path, **options: Any) -> tuple[list[int], dict[Any, list[Any]]]:
    """All time-stamps, and the tuples of each predicate with their time-points in front."""
    times: list[int] = []
    found: dict[Any, list[Any]] = {}
    for chunk in LogFile(path, SIGNATURE, **options).chunks():
        assert chunk.first == len(times)
        times += chunk.times.tolist()
        for key, (points, columns) in chunk.relations.items():
            values = [column.to_pylist() for column in columns]
            rows = zip((points + chunk.first).tolist(), *values, strict=True)
            found.setdefault(key, []).extend(rows)
    return times, found


@pytest.mark.parametrize("chunk_bytes", [*range(1, 40), 1 << 20])
def test_a_log_reads_alike_however_it_is_cut(tmp_path: Path, chunk_bytes: int) -> None:
    (tmp_path / "x.log").write_text(GOOD)
    times, found = read(tmp_path / "x.log", chunk_bytes=chunk_bytes)
    assert times == [1, 1, 2, 3, 10, 11]
    assert found == {
        ("p", 1): [(0, 1), (0, 2)],
        ("q", 2): [(0, "a b", 1.5), (0, "x", -2.0)],
        ("e", 0): [(2,), (2,), (5,)],
        ("q", 1): [(2, 7)],
        ("b", 1): [(4, True)],
    }


@pytest.mark.parametrize("chunk_bytes", [1, 3, 1 << 20])
def test_a_mistake_has_its_place_however_a_log_is_cut(tmp_path: Path, chunk_bytes: int) -> None:
    (tmp_path / "x.log").write_text('@1 @2 q("é",1)\n@3 q("é",1) @4 e(7)')
    with pytest.raises(DataError, match=r"x.log:2:17: a tuple of 1 field for e"):
        read(tmp_path / "x.log", chunk_bytes=chunk_bytes)


def test_compressed_logs_and_empty_ones(tmp_path: Path) -> None:
    (tmp_path / "x.log.gz").write_bytes(gzip.compress(GOOD.encode()))
    assert read(tmp_path / "x.log.gz")[0] == [1, 1, 2, 3, 10, 11]
    (tmp_path / "x.log").write_text(" \n# nothing\n")
    assert read(tmp_path / "x.log") == ([], {})


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("p(1)", "1:1", "expected '@'"),
        ("@x", "1:2", "expected a time-stamp"),
        ("@5\n@4", "2:2", "time goes back: the time-point before is at 5"),
        ("@1 p(", "1:5", "not closed"),
        ('@1 q("a', "1:6", "quoted value is not closed"),
        ("@1 p(1 2)", "1:8", "expected ',' or ')'"),
        ("@10 p(1\n@11 p(2)", "2:1", "expected ',' or ')'"),
        ("@1 p(a)", "1:6", "expected an integer and found 'a'"),
        ("@1 r(1)", "1:4", "no predicate 'r'"),
        ("@1 p(1,2)", "1:5", "a tuple of 2 fields for p, which has 1"),
        ("@1 p", "1:4", "a tuple of 0 fields for p"),
        ("@1 q(x,y)", "1:8", "expected a number"),
        ("@1 b(yes)", "1:6", "expected true or false"),
        ("@1 p(9223372036854775808x)", "1:6", "expected an integer"),
        ("@9223372036854775808", "1:2", "beyond 2^61"),
        ("@1 p(1) @2305843009213693953", "1:10", "beyond 2^61"),
        ("@1 p(,)", "1:6", "expected a value"),
        ("@1 p(1))", "1:8", "expected a predicate"),
        ("; ", "1:1", "expected '@'"),
        ("@1 }", "1:4", "expected a predicate"),
    ],
)
def test_mistakes_have_their_place(tmp_path: Path, text: str, place: str, said: str) -> None:
    (tmp_path / "x.log").write_text(text)
    with pytest.raises(DataError) as caught:
        read(tmp_path / "x.log")
    assert f"x.log:{place}: " in str(caught.value)
    assert said in str(caught.value)


def test_integers_at_the_edge_of_64_bits(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_text("@1 p(9223372036854775807)(-9223372036854775808)")
    assert read(tmp_path / "x.log")[1] == {("p", 1): [(0, 9223372036854775807), (0, -9223372036854775808)]}


def test_numbers_are_those_that_python_reads(tmp_path: Path) -> None:
    texts = ["0.1", "-3", "1e300", "123456789.123456789", "2.5e-3", "0.30000000000000004", "-0.0", "1e-320"]
    (tmp_path / "x.log").write_text("@1 " + " ".join(f"q(a,{text})" for text in texts))
    assert [row[2] for row in read(tmp_path / "x.log")[1]["q", 2]] == [float(text) for text in texts]


def test_unknown_predicates_are_counted_where_that_is_wanted(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_text("@1 zz(1)(2) p(1) @2 z")
    log = LogFile(tmp_path / "x.log", SIGNATURE, ignore_unknown=True, chunk_bytes=7)
    (first, *_) = list(log.chunks())
    assert log.unknown == 3
    assert list(first.relations) == [("p", 1)]


def test_random_bytes_are_refused_or_read(tmp_path: Path) -> None:
    chance = random.Random(1)
    parts = ["@", "1", "2", " ", "p", "q", "(", ")", ",", '"', ";", "#", "\n", "e", "-", "\\", "é", "\0", "9" * 20]
    for _ in range(400):
        text = "".join(chance.choice(parts) for _ in range(chance.randrange(30)))
        (tmp_path / "x.log").write_text(text)
        try:
            whole = read(tmp_path / "x.log")
        except DataError:
            with pytest.raises(DataError):
                read(tmp_path / "x.log", chunk_bytes=3)
        else:
            assert read(tmp_path / "x.log", chunk_bytes=3) == whole


@pytest.mark.parametrize("days", [["2024-03-05"], ["2024-03-05", "2024-03-06T07:08:09Z"], ["2024-03-05 10:00:00.5"]])
def test_strings_of_a_signature_are_text_in_json_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, days: list[str]
) -> None:
    """Where all of them look like times, in chunks of any size; a pipe's lines likewise."""
    policy = Policy.parse("A(s)", "A(s: string)")
    events = [{"time": place, "type": "A", "s": each} for place, each in enumerate([*days, days[0]])]
    path = tmp_path / "e.jsonl"
    path.write_text("".join(f"{json.dumps(each)}\n" for each in events))
    expected = [each["s"] for each in events]
    lines = PolicyTenant([policy], {}).parser("json", "lines")
    assert lines.parse(path.read_bytes()).column("s").to_pylist() == expected
    for size in (1 << 23, 60):
        monkeypatch.setattr(jsonfile, "_CHUNK", size)
        for source in (path, [path, path]):
            for bad_rows in ("error", "drop"):
                found = run(policy, source, bad_rows=bad_rows)
                assert {each["s"] for each in found.rows()} == set(expected), (size, source, bad_rows)


def test_strings_of_a_signature_are_text_in_csv_whatever_they_look_like(tmp_path: Path) -> None:
    policy = Policy.parse("A(s) AND B(n)", "A(s: string) B(n: int) C(s: int)")
    path = tmp_path / "e.csv"
    path.write_text("time,type,s,n\n1,A,007,\n1,B,,7\n2,A,true,\n2,B,,8\n3,A,2024-01-02,\n3,B,,9\n4,A,12,\n")
    rows = [(1, "007", 7), (2, "true", 8), (3, "2024-01-02", 9)]
    assert [(each["time"], each["s"], each["n"]) for each in run(policy, path).rows()] == rows
    both = Policy.parse("A(s) AND NOT C(7)", "A(s: string) C(s: int)")  # a column of both kinds is what it looks like
    path.write_text("time,type,s\n1,A,007\n")
    with pytest.raises(DataError, match="the column 's' is of type int64, and string means text"):
        run(both, path)
