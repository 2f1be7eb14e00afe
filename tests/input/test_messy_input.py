"""Input as it is found: other delimiters, bad rows, folders that are columns, patterns, datasets, periods."""

from __future__ import annotations

import datetime
import json
import random
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pa_dataset
import pyarrow.parquet as pq
import pytest

import hamlet
from hamlet import policies, streams
from hamlet.cli import main
from hamlet.engine.tenant import QueryTenant
from hamlet.input.doubts import unit_doubt
from hamlet.input.events import open_events
from hamlet.runtime.feed import BadRows, Feed
from hamlet.streams.tenant import StreamTenant

WORKLOAD = hamlet.Workload.parse("RETURN COUNT(*) PATTERN SEQ(A, B+) WITHIN 100 s")
ROWS = ["1,A,x", "2,B,y", "3,B,z"]


def csv(path: Path, *lines: str, head: str = "time,type,name") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([head, *lines]) + "\n")
    return path


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_the_header_tells_the_delimiter(tmp_path: Path, mark: str) -> None:
    path = csv(tmp_path / "e.csv", *(row.replace(",", mark) for row in ROWS), head=mark.join(["time", "type", "name"]))
    assert [row["count"] for row in hamlet.run(WORKLOAD, path).rows()] == [3]
    assert [row["count"] for row in hamlet.run(WORKLOAD, path, delimiter=mark).rows()] == [3]


def test_another_delimiter(tmp_path: Path) -> None:
    path = csv(tmp_path / "e.csv", *(row.replace(",", ":") for row in ROWS), head="time:type:name")
    assert [row["count"] for row in hamlet.run(WORKLOAD, path, delimiter=":").rows()] == [3]
    with pytest.raises(hamlet.OptionError, match=r"the delimiter is '\\\\t'; it must be one character; a tab"):
        hamlet.run(WORKLOAD, path, delimiter="\\t")
    with pytest.raises(hamlet.DataError):
        hamlet.run(WORKLOAD, path)


BAD = [*ROWS[:2], "2,B", "when,A,x", ",B,x", "3,B,z", "4,B,x,y", "5,Q,x,y"]


def test_bad_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = csv(tmp_path / "e.csv", *BAD)
    with pytest.raises(hamlet.DataError, match=r"e\.csv:"):
        hamlet.run(WORKLOAD, path)
    results = hamlet.run(WORKLOAD, path, bad_rows="drop")
    assert [row["count"] for row in results.rows()] == [3]
    assert results.stats["events"] == 3
    [note] = [each for each in results.warnings if "bad rows" in each]
    assert note.startswith("5 bad rows dropped: ")
    assert "2 fields in place of 3, '2,B'" in note
    assert note.endswith(", ...")
    workload = tmp_path / "w.sase"
    workload.write_text(str(WORKLOAD))
    assert main(["run", str(workload), "--input", str(path), "--bad-rows", "drop"]) == 0
    assert "note: 5 bad rows dropped: " in capsys.readouterr().err
    assert main(["run", str(workload), "--input", str(path)]) == 2


def test_bad_times_from_the_first_row_on(tmp_path: Path) -> None:
    path = csv(tmp_path / "e.csv", "soon,A,x", *ROWS)
    results = hamlet.run(WORKLOAD, path, bad_rows="drop")
    assert [row["count"] for row in results.rows()] == [3]
    assert "1 bad row dropped: time is 'soon'" in results.warnings
    days = ["2024-03-05 10:00:00,A,x", "never,B,x", "2024-03-05 10:00:01,B,x"]
    path = csv(tmp_path / "d.csv", *days)
    assert [row["count"] for row in hamlet.run(WORKLOAD, path, bad_rows="drop").rows()] == [1]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("e.csv", "time,type,v\nsoon,A,1\nlater,A,2\n"),
        ("e.csv", "time,type,v\n,A,1\n,A,2\n"),
        ("e.csv", "time,type,v\n1,A\n2,B,3,4\n"),
        ("e.jsonl", '{"time": "soon", "type": "A", "v": 1}\nfoo\n'),
        ("e.csv", "time,type,v\nTrue,A,1\nTrue,A,2\n"),
        ("e.jsonl", '{"type": "A", "v": 1}\n{"time": null, "type": "A", "v": 1}\n'),
        ("e.jsonl", '{"time": true, "type": "A", "v": 1}\n{"time": true, "type": "A", "v": 1}\n'),
    ],
)
def test_bad_rows_only(tmp_path: Path, name: str, text: str) -> None:
    """They are left out as among good ones, which leaves no events, or those of another file: as of a pipe."""
    (tmp_path / name).write_text(text)
    workload = hamlet.Workload.parse("RETURN SUM(x.v) PATTERN A x WITHIN 100 s")
    policy = policies.Policy.parse("A(v)", signature="A(v: int)")
    specification = streams.Specification.parse("input v: Int64\noutput w := v")
    good = tmp_path / f"good{name}"
    good.write_text(text.split("\n")[0] + "\n1,A,7\n" if name.endswith("csv") else '{"time":1,"type":"A","v":7}')
    for sources, events in (([tmp_path / name], 0), ([tmp_path / name, good], 1), ([good, tmp_path / name], 1)):
        found = (
            hamlet.run(workload, sources, bad_rows="drop"),
            policies.run(policy, sources, bad_rows="drop"),
            streams.run(specification, sources, values=True, bad_rows="drop"),
        )
        for results in found:
            assert (results.stats["events"], len(results.rows())) == (events, events)
            assert "2 bad rows dropped: " in results.warnings[0]


def _line(random_: random.Random, form: str, time: object) -> str:
    """An event with a value from 0 on, or a line that is none."""
    time = random_.choice([None, "x", "5x", "", True]) if random_.random() < 0.3 else time
    value, is_whole = random_.randrange(9), random_.random() < 0.9
    if form == "json":
        return json.dumps({"time": time, "type": "A", "v": value}) if is_whole else random_.choice(["foo", '{"v": 1}'])
    return f"{'' if time is None else time},A" + (f",{value}" if is_whole else random_.choice(["", ",1,2"]))


@pytest.mark.parametrize("form", ["csv", "json"])
def test_files_and_pipes_drop_the_same_rows(tmp_path: Path, form: str) -> None:
    workload = hamlet.Workload.parse("RETURN SUM(x.v) PATTERN A x WITHIN 1 s")
    specification = streams.Specification.parse("input v: Int64\noutput w := v")
    for seed in range(25):
        random_ = random.Random(seed)
        shown = random_.choice(["{}", "{}.5", "2024-01-01T00:00:{:02}", "2024-01-01T00:00:{:02}Z"])
        times = [shown.format(place) for place in range(random_.randrange(1, 12))]
        given = [json.loads(each) if each[:4] != "2024" else each for each in times]
        lines = [_line(random_, form, each) for each in given]
        text = "time,type,v\n" * (form == "csv") + "\n".join(lines) + "\n"
        path = tmp_path / f"e.{form}"
        path.write_text(text)
        cut = random_.randrange(len(text))
        for results, tenant in (
            (hamlet.run(workload, path, bad_rows="drop"), QueryTenant(workload, {})),
            (
                streams.run(specification, path, values=True, bad_rows="drop"),
                StreamTenant(specification, "s", {"values": True}),
            ),
        ):
            found: list[tuple[int, Any]] = []
            bad = BadRows(True)
            feed = Feed("pipe", form, [tenant], bad, lambda _, events, name: found.extend(tenant.push(events, name)))  # noqa: B023
            feed.data(text[:cut].encode())
            feed.data(text[cut:].encode())
            feed.end(True)
            found += tenant.close()
            rows = [row for place, rows in found for row in tenant.batch(place, rows).to_pylist()]
            (value,) = {"sum_x_v", "value"} & set(rows[0] if rows else ["value"])
            assert [int(row[value]) for row in rows] == [row[value] for row in results.rows()], text
            assert bad.dropped.rows == len(lines) - results.stats["events"], text


def test_folders_that_are_columns(tmp_path: Path) -> None:
    for day in (5, 6):
        for shop in ("a b", "007"):
            folder = tmp_path / f"day={day}" / f"shop={shop.replace(' ', '%20')}"
            csv(folder / "part.csv", *(f"{100 * day + n},{kind},x" for n, kind in enumerate("ABB")))
    csv(tmp_path / "day=7" / "shop=__HIVE_DEFAULT_PARTITION__" / "part.csv", "701,A,x", "702,B,x")
    text = "RETURN day, shop, COUNT(*) PATTERN SEQ(A, B+) WHERE A.day < 8 GROUP-BY day, shop WITHIN 100 s"
    rows = hamlet.run(hamlet.Workload.parse(text), tmp_path).rows()
    assert {(row["day"], row["shop"], row["count"]) for row in rows} == {
        (5, "007", 3), (5, "a b", 3), (6, "007", 3), (6, "a b", 3), (7, None, 1)
    }  # fmt: skip
    for pattern, left in (("day=5/shop=*/*.csv", ["shop"]), ("day=[56]", ["day", "shop"])):
        some = hamlet.Workload.parse(f"RETURN {', '.join(left)} PATTERN A GROUP-BY {', '.join(left)} WITHIN 1000 s")
        found = hamlet.run(some, tmp_path / pattern).rows()
        assert {row["shop"] for row in found} == {"007", "a b"}
        spec = streams.Specification.parse("input shop: String\noutput x := shop")
        read = streams.run(spec, tmp_path / pattern, values=True).rows()
        assert {row["value"] for row in read} == {"007", "a b"}
        counted = hamlet.sql("SELECT DISTINCT shop FROM t", {"t": tmp_path / pattern}).rows()
        assert {row["shop"] for row in counted} == {"007", "a b"}
    one = tmp_path / "day=5" / "shop=007" / "part.csv"
    with pytest.raises(hamlet.WorkloadError, match="no column 'day'"):
        hamlet.run(hamlet.Workload.parse(text), one)


def test_patterns_and_lists(tmp_path: Path) -> None:
    for place, row in enumerate(ROWS):
        csv(tmp_path / f"logs/{place}.csv", row)
    csv(tmp_path / "logs/other.txt", "9,A,x")
    for source in (
        str(tmp_path / "logs/*.csv"),
        [tmp_path / f"logs/{n}.csv" for n in (2, 0, 1)],
        tmp_path / "**/[0-9].csv",
    ):
        assert [row["count"] for row in hamlet.run(WORKLOAD, source).rows()] == [3]
    with pytest.raises(hamlet.DataError, match="no such file"):
        hamlet.run(WORKLOAD, str(tmp_path / "logs/*.parquet"))
    workload = tmp_path / "w.sase"
    workload.write_text(str(WORKLOAD))
    assert main(["run", str(workload), "--input", str(tmp_path / "logs/*.csv"), "--quiet"]) == 0


def table() -> pa.Table:
    start = datetime.datetime(2024, 3, 5)
    times = [start + datetime.timedelta(hours=n) for n in range(48)]
    return pa.table({"time": pa.array(times, pa.timestamp("us")), "type": ["A", "B"] * 24, "n": range(48)})


def test_datasets_and_lazy_frames(tmp_path: Path) -> None:
    workload = hamlet.Workload.parse("RETURN COUNT(*) PATTERN SEQ(A, B+) WITHIN 1 d")
    expected = hamlet.run(workload, table()).rows()
    pq.write_table(table(), tmp_path / "e.parquet")
    dataset = pa_dataset.dataset(tmp_path / "e.parquet")
    assert hamlet.run(workload, dataset).rows() == expected
    results = hamlet.run(workload, dataset)
    assert len(results.trends("q1", limit=1)) == 1
    polars = pytest.importorskip("polars")
    assert hamlet.run(workload, polars.scan_parquet(tmp_path / "e.parquet")).rows() == expected


@pytest.mark.parametrize(
    ("since", "until", "kept", "skipped"),
    [
        ("2024-03-05 12:00:00", None, range(12, 48), 1),
        (None, "2024-03-05 12:00:00", range(12), 2),
        ("2024-03-05 13:00:00", datetime.datetime(2024, 3, 6, 1), range(13, 25), 1),
        ("2024-03-06", "2024-03-07", range(24, 48), 2),
        ("2030-01-01", None, range(0), 4),
        (None, None, range(48), 0),
    ],
)
def test_periods(tmp_path: Path, since: Any, until: Any, kept: range, skipped: int) -> None:
    workload = hamlet.Workload.parse("RETURN COUNT(*), COUNT(A) PATTERN (A OR B)+ WITHIN 7 d")
    pq.write_table(table(), tmp_path / "e.parquet", row_group_size=12)
    expected = hamlet.run(workload, table().slice(kept.start, len(kept))).rows()
    results = hamlet.run(workload, tmp_path / "e.parquet", since=since, until=until)
    assert results.rows() == expected
    assert results.stats["events"] == len(kept)
    notes = [each for each in results.warnings if "row groups" in each]
    count = {0: [], 1: None, 2: None, 4: None}[skipped]
    if count is None:
        assert len(notes) == 1
        assert "of 4 row groups by their times" in notes[0]
    for events in (table(), table().to_pylist()):
        assert hamlet.run(workload, events, since=since, until=until).rows() == expected


def test_periods_of_integer_times(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, workload = csv(tmp_path / "e.csv", *ROWS), tmp_path / "w.sase"
    workload.write_text(str(WORKLOAD))
    assert main(["run", str(workload), "--input", str(path), "--output", "-", "--from", "1", "--to", "3"]) == 0
    assert '"count": 1}' in capsys.readouterr().out
    assert hamlet.run(WORKLOAD, path, since="1970-01-01 00:00:01", until=4)["q1"].rows()[0]["count"] == 3
    with pytest.raises(hamlet.OptionError, match=r"until \(1\) is not after since \(2\)"):
        hamlet.run(WORKLOAD, path, since=2, until=1)
    with pytest.raises(hamlet.OptionError, match="since is 'noon'; it must be"):
        hamlet.run(WORKLOAD, path, since="noon")


LINES = [
    '{"time": 1, "type": "A", "k": "x"}',
    "no json",
    '{"type": "B", "k": "x"}',
    '{"time": null, "type": "B"}',
    '{"time": "soon", "type": "B"}',
    "[1, 2]",
    '{"time": 3, "type": "B", "k": 7}',
    '{"time": 99999999999999999999999, "type": "B", "k": "x"}',
    '{"time": 3, "type": "B", "k": "x"}',
]


def test_bad_lines_of_json(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    path.write_text("\n".join(LINES) + "\n")
    with pytest.raises(hamlet.DataError, match=r"e\.jsonl:2: the line is no JSON"):
        hamlet.run(WORKLOAD, path)
    results = hamlet.run(WORKLOAD, path, bad_rows="drop")
    assert [row["count"] for row in results.rows()] == [1]
    assert results.stats["events"] == 2
    assert results.warnings[0] == (
        "7 bad rows dropped: line 2: the line is no JSON: Expecting value (column 1); line 3: there is no 'time'; "
        "line 4: 'time' is NULL, ..."
    )
    for bad in LINES[1:-1]:  # each alone, in the first place
        path.write_text("\n".join([LINES[0], bad, LINES[-1]]))
        results = hamlet.run(WORKLOAD, path, bad_rows="drop")
        assert (results.stats["events"], len(results.warnings)) == (2, 1)


def test_a_key_twice_in_json(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    specification = streams.Specification.parse("input v: Float64\noutput w := v + 1.0\ntrigger w > 2.0")
    path.write_text('{"time": 1, "type": "A", "v": 1}\n{"time": 2, "type": "A", "v": 5, "v": 1}\n')
    for run in (partial(hamlet.run, WORKLOAD), partial(streams.run, specification)):
        with pytest.raises(hamlet.DataError, match=r'e\.jsonl:2: the line has "v" twice'):
            run(path)
        results = run(path, bad_rows="drop")
        assert results.stats["events"] == 1
        assert results.warnings[0].startswith('1 bad row dropped: line 2: the line has "v" twice')


def test_nan_is_a_number_whether_bad_lines_are_dropped_or_not(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    path.write_text('{"time": 1, "type": "A", "v": 1}\n{"time": 2, "type": "B", "v": NaN}\n')
    for bad_rows in ("error", "drop"):
        assert hamlet.run(WORKLOAD, path, bad_rows=bad_rows).rows() == [
            {"query": "q1", "window_start": 0, "window_end": 100, "count": 1}
        ]


def test_bad_lines_of_json_in_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a good chunk has is known to later ones, and lines keep their numbers."""
    path = tmp_path / "e.jsonl"
    lines = [f'{{"time": "2024-03-05T10:00:{n % 60:02d}Z", "type": "A", "k": "x", "n": {n}}}' for n in range(60)]
    lines[41] = '{"time": "2024-03-05T10:00:41", "type": "A", "k": "x", "n": 41}'
    lines[50] = '{"time": "2024-03-05T10:00:50Z", "type": "A", "k": "x", "n": "fifty"}'
    path.write_text("\n".join(lines))
    monkeypatch.setattr("hamlet.input.jsonfile._CHUNK", 500)
    results = hamlet.run(hamlet.Workload.parse("RETURN COUNT(*) PATTERN A WITHIN 1 min"), path, bad_rows="drop")
    assert [row["count"] for row in results.rows()] == [58]
    assert results.warnings[0] == (
        "2 bad rows dropped: line 42: 'time' is \"2024-03-05T10:00:41\", without a zone; "
        "line 51: 'n' is \"fifty\", and a number in the lines before"
    )


def test_rows_without_time_in_columns(tmp_path: Path) -> None:
    table = pa.table({"time": pa.array([1, None, 2], pa.int64()), "type": ["A", "B", "B"], "k": ["x"] * 3})
    pq.write_table(table, tmp_path / "e.parquet")
    stream = pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
    for source in (tmp_path / "e.parquet", table, table.to_pylist(), stream):
        results = hamlet.run(WORKLOAD, source, bad_rows="drop")
        assert [row["count"] for row in results.rows()] == [1]
        assert results.warnings == ("1 bad row dropped: row 2: time is NULL",)
    with pytest.raises(hamlet.DataError, match="NULL in row 2"):
        hamlet.run(WORKLOAD, tmp_path / "e.parquet")
    assert "time is ''" in hamlet.run(WORKLOAD, csv(tmp_path / "e.csv", "1,A,x", ",B,x"), bad_rows="drop").warnings[0]


def test_several_inputs_are_one_stream(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    csv(Path("a.csv"), "1,A,x", "5,B,x")
    Path("b.jsonl").write_text('{"time": 3, "type": "B", "name": "x"}\nbad\n')
    csv(Path("more/c.csv"), "4,B,x", ",B,x")
    Path("w.sase").write_text(str(WORKLOAD))
    inputs = ["a.csv", "b.jsonl", "more", "more/*.csv"]
    expected = hamlet.run(WORKLOAD, inputs, bad_rows="drop")
    assert [row["count"] for row in expected.rows()] == [2 * 2 * 3 - 1]  # B at 3, two at 4, 5
    given = [each for name in inputs for each in ("--input", name)]
    assert main(["run", "w.sase", *given, "--bad-rows", "drop", "--output", "-"]) == 0
    said = capsys.readouterr()
    assert '"count": 11' in said.out
    assert (
        "3 bad rows dropped: b.jsonl: line 2: the line is no JSON: Expecting value (column 1); more/c.csv: time is ''"
        in said.err
    )
    for command in ("check", "explain", "trends"):
        assert main([command, "w.sase", *given, "--bad-rows", "drop"]) == 0
        assert main([command, "w.sase", *given]) == 2
    capsys.readouterr()
    Path("s.lola").write_text('input name: String\ntrigger name == "x" "is x"\n')
    assert main(["monitor", "s.lola", "-i", "more", "-i", "a.csv", "--bad-rows", "drop", "--late", "drop"]) == 0
    assert "note: 1 bad row dropped: more/c.csv: time is ''" in capsys.readouterr().err
    Path("p.mfotl").write_text("A(x) AND NOT B(x)")
    Path("p.sig").write_text("A(name: string)\nB(name: string)")
    rest = ["p.mfotl", "--signature", "p.sig", "--output", "-"]
    assert main(["monitor", *rest, "-i", "a.csv", "-i", "more", "--bad-rows", "drop"]) == 0
    said = capsys.readouterr()
    assert said.out == '{"policy": "p", "time": 1, "time_point": 0, "x": "x"}\n'
    assert "1 bad row dropped" in said.err
    assert main(["monitor", *rest, "-i", "a.log", "-i", "b.log"]) == 2
    assert "a log of MonPoly is one" in capsys.readouterr().err


def test_bad_time_points_of_a_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.mfotl").write_text("A(x)")
    (tmp_path / "p.sig").write_text("A(name: string)")
    log = tmp_path / "e.log"
    log.write_text('@1 A("a")\n@2 A("b"\n@3 A("c")\n@2 A(d)\n@4\nA("e")(,)\n@5 B(1)\n@6 A("f")\n')
    rest = ["monitor", str(tmp_path / "p.mfotl"), "--signature", str(tmp_path / "p.sig"), "-i", str(log), "-o", "-"]
    assert main(rest) == 2
    capsys.readouterr()
    assert main([*rest, "--bad-rows", "drop"]) == 0
    said = capsys.readouterr()
    assert [line.rpartition('"x": ')[2] for line in said.out.splitlines()] == ['"a"}', '"c"}', '"f"}']
    assert "note: 4 bad rows dropped: line 3: expected ',' or ')' and found '@'; line 4: the time goes back" in said.err


@pytest.mark.parametrize("suffix", [".xz", ".zip"])
def test_a_compression_that_is_not_read_is_named(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"e.csv{suffix}"
    path.write_bytes(b"PK\x03\x04")
    said = rf"e\.csv{suffix} is compressed in a way that is not read here \({suffix}\); unpack it, or compress it with"
    policy = hamlet.policies.Policy.parse("a()", signature="a()")
    spec = hamlet.streams.Specification.parse('input a: Int64\ntrigger a > 1 "m"')
    for act in (
        lambda: hamlet.run(WORKLOAD, path),
        lambda: hamlet.policies.run(policy, path),
        lambda: hamlet.streams.run(spec, path),
    ):
        with pytest.raises(hamlet.OptionError, match=said):
            act()


def test_files_by_their_names(tmp_path: Path) -> None:
    text = "time\ttype\tname\n1\tA\tx, y\n2\tB\tx\n"
    tabs = tmp_path / "e.tsv"
    tabs.write_text(text)
    assert [row["count"] for row in hamlet.run(WORKLOAD, tabs).rows()] == [1]
    (tmp_path / "e.xlsx").write_bytes(b"PK")
    with pytest.raises(hamlet.OptionError, match=r"e\.xlsx is a spreadsheet, .* save it as CSV, in UTF-8"):
        hamlet.run(WORKLOAD, tmp_path / "e.xlsx")
    (tmp_path / "e.tsv.gz").write_text(text)
    with pytest.raises(hamlet.DataError, match=r"e\.tsv\.gz is not compressed with gzip, as its name says"):
        hamlet.run(WORKLOAD, tmp_path / "e.tsv.gz")


def test_columns_without_a_name(tmp_path: Path) -> None:
    path = csv(tmp_path / "e.csv", *(f"{row},," for row in ROWS), head="time,type,name,,")
    assert [row["count"] for row in hamlet.run(WORKLOAD, path).rows()] == [3]


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("1.234,5", "'1.234,5', in row 2 by time; numbers are written with a point, as in 20.5"),
        ("n/a", "'n/a', in row 2 by time; write COUNT"),
    ],
)
def test_what_keeps_a_column_from_being_summed(value: str, hint: str, tmp_path: Path) -> None:
    path = csv(tmp_path / "e.csv", "1;A;2", f"2;A;{value}", head="time;type;v")
    workload = hamlet.Workload.parse("RETURN SUM(A.v) PATTERN A WITHIN 100 s")
    with pytest.raises(hamlet.WorkloadError) as caught:
        hamlet.run(workload, path)
    assert f"hint: the first value of v that is not a number is {hint}" in str(caught.value)


@pytest.mark.parametrize(("time", "meant"), [("20240305", "2024-03-05"), ("20240305093000", "2024-03-05 09:30:00")])
def test_dates_that_are_read_as_numbers(time: str, meant: str, tmp_path: Path) -> None:
    clock = open_events(csv(tmp_path / "e.csv", f"{time},A,x")).schema.clock
    assert f"if it means {meant}, write it so" in (unit_doubt(int(time), clock) or "")


def test_columns_without_a_name_do_not_move_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A value far down makes its own column wider, whatever stands before it; blanks around names do not count."""
    monkeypatch.setattr("hamlet.input.csvfile._BLOCK", 64)
    path = csv(
        tmp_path / "e.csv", *(f"{time},,A,{time},0" for time in range(40)), "40,,A,0.5,z", head="time,, type,v ,w"
    )
    found = open_events(path).arrow_schema
    assert found.field("v").type == pa.float64()
    assert found.field("w").type == pa.string()
    query = hamlet.Workload.parse("RETURN SUM(x.v) PATTERN A x WITHIN 100 s")
    assert [row["sum_x_v"] for row in hamlet.run(query, path).rows()] == [780.5]
