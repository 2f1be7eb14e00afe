"""CSV and JSON lines: types of the whole file, NULL, times, and errors that name the line; folders of files."""

from __future__ import annotations

import bz2
import contextlib
import datetime
import gzip
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hamlet
import hamlet.input.jsonfile
import hamlet.policies
import hamlet.streams
from hamlet.cli import main
from hamlet.errors import DataError, HamletError, OptionError
from hamlet.input.events import open_events
from hamlet.language.query import AttributeType

MANY = 600_000  # lines that fill more than one block of either format


def rows(path: Path, **options: Any) -> list[dict[str, Any]]:
    return pa.Table.from_batches(open_events(path, **options).batches()).to_pylist()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


# -------------------------------------------------------------------------------------------------------- CSV


def test_csv_values(folder: Path) -> None:
    path = write(
        folder,
        "a.csv",
        'time,type,n,d,s,b\n2,A,1,1.5,NA,true\n1,,,NaN,"a ""b"",\nc",\n3,B,NA,,"",false\n',
    )
    assert rows(path) == [
        {"time": 1, "type": None, "n": None, "d": None, "s": 'a "b",\nc', "b": None},
        {"time": 2, "type": "A", "n": 1, "d": 1.5, "s": "NA", "b": True},
        {"time": 3, "type": "B", "n": None, "d": None, "s": None, "b": False},
    ]


@pytest.mark.parametrize(
    ("first", "last", "kind"),
    [
        ("1", "2.5", AttributeType.DOUBLE),
        ("", "2", AttributeType.INT),
        ("", "x", AttributeType.STRING),
        ("1", "x", AttributeType.STRING),
        ("true", "2", AttributeType.STRING),
        ("2024-01-01", "2024-01-01T05:06:07.5", AttributeType.TIMESTAMP),
        ("2024-01-01 00:00:00", "2024-01-01T05:06:07.123456789", AttributeType.TIMESTAMP),
        ("2024-01-01T00:00:00Z", "2024-01-01T05:06:07", AttributeType.STRING),
        ("2024-01-01T00:00:00", "x", AttributeType.STRING),
        ("12:00:00", "13:00:00", AttributeType.STRING),
    ],
)
def test_csv_types_are_those_of_all_rows(folder: Path, first: str, last: str, kind: AttributeType) -> None:
    path = write(folder, "a.csv", "time,type,x\n" + f"1,A,{first}\n" * MANY + f"2,A,{last}\n")
    events = open_events(path)
    assert events.schema.type_of("x") is kind
    assert events.rows == MANY + 1
    value = list(events.batches())[-1].column("x")[-1]
    assert value.is_valid
    if kind is AttributeType.STRING:
        assert value.as_py() == last


def test_csv_times(folder: Path) -> None:
    dates = open_events(write(folder, "d.csv", "time,type\n2024-01-02,A\n2024-01-01,B\n"))
    assert dates.schema.clock.type == pa.timestamp("s")
    assert next(dates.batches()).column("type").to_pylist() == ["B", "A"]
    zoned = open_events(write(folder, "z.csv", "time,type\n2024-01-01T00:00:00.5+02:00,A\n"))
    assert zoned.schema.clock.type == pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"a\.csv is empty"),
        ("\n\n", r"a\.csv is empty"),
        ("time,type\n1,A\n2\n", r"a\.csv:3: 1 field in place of 2, '2'\nhint: bad_rows='drop' leaves such rows out"),
        ("time,type\n" + "1,A\n" * MANY + "2,A,B\n", rf"a\.csv:{MANY + 2}: 3 fields in place of 2, '2,A,B'"),
        (
            "sep=;\ntime;type;x\n1;A;2\n",
            r"a\.csv:2: .*\nhint: the first line must name the columns; remove what stands",
        ),
        ('time,type,x\n1,"A,3\n2,A,3\n', r"hint: a quotation mark is opened and not closed"),
        ('time,type\n1,A\n2,"A\n3,A\n', r"not closed: the last value is 'A\\n3,A\\n', to the end"),
        ("time,type,,\n1,A,,\nx,A,,\n", r"a\.csv:3: the time column 'time' holds 'x'"),
        ("time,type\n" + "1,A\n" * MANY + "zz,A\n", rf"a\.csv:{MANY + 2}: the time column 'time' holds 'zz'; it must"),
        ("time,type\nx,A\n", r"a\.csv:2: the time column 'time' holds 'x'; it must hold integers"),
        ("time,type\n1,A\nx,A\n", r"a\.csv:3: the time column 'time' holds 'x'; it must hold integers"),
        ("time,type\n2024-01-01T00:00:00Z,A\n2024-01-01T00:00:00,A\n", r"a\.csv:3: .* all with a zone or all without"),
        ("time,type\n1.5,A\n1e300,A\n", r"a\.csv: the time column 'time' holds '1e300' in row 2"),
        ("time,type\n1,A\n,A\n", r"the time column 'time' is NULL in row 2"),
        ("time,type\n,A\n", r"the time column 'time' is NULL in row 1"),
        ("time,type,type\n1,A,B\n", r"the header names the column 'type' more than once"),
        ("time,type,x\n1,A,0.5\n1,A,18446744073709551616\n", r"'x' holds the integer 18446744073709551616 in row 2"),
        ("1,A\n2,B\n", r"a\.csv:1: the first line must name the columns, and it is '1,A'"),
        ("when;,type\n1,A\n", r"there is no time column 'time'; the columns are when;, type"),
    ],
)
def test_csv_errors(folder: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        list(open_events(write(folder, "a.csv", text)).batches())


def test_csv_event_types_are_text(folder: Path) -> None:
    path = write(folder, "a.csv", "time,type\n1,01\n2,\n")
    assert [row["type"] for row in rows(path)] == ["01", None]


def test_csv_large_doubles_are_no_integers(folder: Path) -> None:
    path = write(folder, "a.csv", "time,type,x\n1,A,1e300\n2,A,18446744073709551616.5\n")
    assert open_events(path).schema.type_of("x") is AttributeType.DOUBLE


def test_csv_with_a_header_only(folder: Path) -> None:
    events = open_events(write(folder, "a.csv", "time,type,x\n"))
    assert events.rows == 0
    assert list(events.batches(["x"])) == []


# ------------------------------------------------------------------------------------------------------- JSON


def test_json_values(folder: Path) -> None:
    path = write(
        folder,
        "a.jsonl",
        '\ufeff{"time": 2, "type": "A", "n": 1}\n\n{"time": 1, "n": 2.5, "s": "é", "l": [1]}\r\n{"time": 3, "b": true}',
    )
    events = open_events(path)
    assert next(events.batches(["n", "s", "b"])).to_pylist() == [
        {"time": 1, "type": None, "n": 2.5, "s": "é", "b": None},
        {"time": 2, "type": "A", "n": 1.0, "s": None, "b": None},
        {"time": 3, "type": None, "n": None, "s": None, "b": True},
    ]
    with pytest.raises(DataError, match="column 'l' has the type"):
        list(events.batches(["l"]))


def test_json_types_are_those_of_all_lines(folder: Path) -> None:
    lines = ['{"time": 1, "type": "A", "x": 1, "day": "2024-01-01"}\n'] * (MANY // 2)
    path = write(folder, "a.json", "".join(lines) + '{"time": 2, "x": 1.5, "y": "late", "day": "Monday"}\n')
    events = open_events(path)
    kinds = [events.schema.type_of(name) for name in ("x", "y", "day")]
    assert kinds == [AttributeType.DOUBLE, AttributeType.STRING, AttributeType.STRING]
    *_, last = events.batches()
    assert last.to_pylist()[-1] == {"time": 2, "type": None, "x": 1.5, "day": "Monday", "y": "late"}
    assert last.to_pylist()[0]["day"] == "2024-01-01"


@pytest.mark.parametrize(
    ("text", "kind", "moment"),
    [
        ("2024-01-01T05:06:07", pa.timestamp("us"), datetime.datetime(2024, 1, 1, 5, 6, 7)),
        ("2024-01-01T05:06:07Z", pa.timestamp("us", "UTC"), None),
        ("2024-01-01T05:06:07.5", pa.timestamp("us"), datetime.datetime(2024, 1, 1, 5, 6, 7, 500_000)),
        ("2024-01-01T05:06:07.5+01:00", pa.timestamp("us", "UTC"), None),
        ("2024-01-01T05:06:07.123456789", pa.timestamp("ns"), None),
    ],
)
def test_json_times(folder: Path, text: str, kind: pa.DataType, moment: datetime.datetime | None) -> None:
    events = open_events(write(folder, "a.jsonl", f'{{"time": "{text}", "type": "A"}}\n'))
    assert events.schema.clock.type == kind
    found = next(events.batches()).column("time")
    assert found.type == kind
    if moment is not None:
        assert found[0].as_py() == moment


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv"])
def test_whole_seconds_that_count_as_such(folder: Path, name: str) -> None:
    """Bounds of policies without a unit are in that of the time column, which is seconds there."""
    at = "2024-01-01T05:06:07"
    text = f"time,type,at\n{at},A,{at}\n" if name == "a.csv" else f'{{"time": "{at}", "type": "A", "at": "{at}"}}\n'
    path = write(folder, name, text)
    assert open_events(path).schema.clock.type == pa.timestamp("us")
    kept = open_events(path, whole_seconds=True)
    assert (kept.schema.clock.type, kept.arrow_schema.field("at").type) == (pa.timestamp("s"), pa.timestamp("us"))
    assert next(kept.batches()).column("time")[0].as_py() == datetime.datetime(2024, 1, 1, 5, 6, 7)


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["2024-01-01T05:06:07", "2024-01-01 05:06:08"], pa.timestamp("us")),
        (["2024-01-01T05:06:07Z", None], pa.timestamp("us", "UTC")),
        (["2024-01-01T05:06:07", "2024-01-01T05:06:07.5"], pa.timestamp("us")),
        (["2024-01-01T05:06:07+02:00", "2024-01-01T05:06:07.5Z"], pa.timestamp("us", "UTC")),
        (["2024-01-01T05:06:07.5", None, "2024-01-01T05:06:07.123456789"], pa.timestamp("ns")),
        (["2024-01-01T05:06:07Z", "2024-01-01T05:06:07.5"], pa.string()),
        (["2024-01-01T05:06:07.5", "2024-01-01T05:06:07Z"], pa.string()),
        (["2024-01-01T05:06:07.5", "later"], pa.string()),
        (["later", "2024-01-01T05:06:07.5"], pa.string()),
    ],
)
@pytest.mark.parametrize("chunk", [1 << 23, 1], ids=["one", "many"])
def test_json_times_of_attributes(
    folder: Path, monkeypatch: pytest.MonkeyPatch, texts: list[str | None], kind: pa.DataType, chunk: int
) -> None:
    monkeypatch.setattr(hamlet.input.jsonfile, "_CHUNK", chunk)
    lines = [json.dumps({"time": time, "type": "A", "at": text}) + "\n" for time, text in enumerate(texts)]
    events = open_events(write(folder, "a.jsonl", "".join(lines)))
    assert events.schema.arrow_types["at"] == kind
    found = pa.Table.from_batches(events.batches(["at"])).column("at")
    assert found.combine_chunks().equals(pa.array(texts).cast(kind))


@pytest.mark.parametrize("zone", ["", "Z"])
def test_json_dates_beside_times(folder: Path, zone: str) -> None:
    """A column of dates is one of timestamps, whatever the times beside it are."""
    line = f'{{"time": "2024-01-01T00:00:00{zone}", "type": "A", "at": "2024-01-01"}}\n'
    events = open_events(write(folder, "a.jsonl", line.replace(', "at": "2024-01-01"', "") + line))
    assert pa.types.is_timestamp(events.schema.arrow_types["at"])


def test_json_times_with_and_without_zones(folder: Path) -> None:
    lines = '{"time": "2024-01-01T00:00:00Z", "type": "A"}\n{"time": "2024-01-01T00:00:01", "type": "A"}\n'
    with pytest.raises(DataError, match=r"the column 'time' holds '2024-01-01T.*, all with a zone or"):
        open_events(write(folder, "a.jsonl", lines))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"a\.jsonl is empty"),
        ("\n \n", r"holds no events"),
        ('{"time": 1}\n{"time": 2,}\n', r"a\.jsonl:2: the line is no JSON: .*\(column 12\)"),
        ('{"time": 1}\n{"time": 2\n', r"a\.jsonl:2: the line is no JSON"),
        ('[{"time": 1}]\n', r"a\.jsonl:1: the line holds a list; JSON lines have one object per line"),
        ('{"time": 1}\n3\n', r"a\.jsonl:2: the line holds 3; each line must hold one JSON object"),
        ('{"time": 1}\n"x"\n', r'a\.jsonl:2: the line holds "x"'),
        ("null\n", r"a\.jsonl:1: the line holds null; each line must hold one JSON object"),
        ('{"time": 1}\nnull\n', r"a\.jsonl:2: the line holds null"),
        ('{"time": 1}null\n', r"a\.jsonl:1: the line is no JSON: Extra data"),
        ('{"time":\n1}\n', r"a\.jsonl:1: the line is no JSON"),
        ('{"time": 1}{"time": 2}\n', r"a\.jsonl:1: the line is no JSON: Extra data"),
        ('{"time": 1}\n{"time": 2, "x": 1, "x": 1}\n', r"a\.jsonl:2: the line has \"x\" twice"),
        ('{"time": 1, "x": 1}\n{"time": 2, "x": "s"}\n', r"a\.jsonl:2: attribute 'x' is \"s\", but a number in line 1"),
        ('{"time": 1, "x": 1}\n{"time": 2, "x": true}\n', r"a\.jsonl:2: attribute 'x' is true, but a number"),
        ('{"time": 1, "x": 18446744073709551616}\n', r"a\.jsonl:1: attribute 'x' holds an integer of 65 bits"),
        (f'{{"time": 1, "x": {"9" * 5000}}}\n', r"a\.jsonl:1: the line holds a number of several thousand digits"),
        (f'{{"time": 1, "x": {"[" * 100_000}}}\n', r"a\.jsonl:1: values are nested too deeply"),
        ('{"time": 1, "x": "\\ud800"}\n', "half of a character"),
        ('{"time": 1}\n{"time": null}\n', r"the time column 'time' is NULL in row 2"),
        ('{"time": null}\n', r"the time column 'time' is NULL in row 1|NULL"),
        ('{"time": 1}\n{"type": "A"}\n', r"the time column 'time' is NULL in row 2"),
        (
            '{"time": "noon"}\n',
            r"a\.jsonl:1: the column 'time' holds 'noon', and it must hold integers, seconds such as 0.5",
        ),
        ('{"time": "2024-01-01T00:00:00.5Z"}\n{"time": "2024-01-01T00:00:00.5"}\n', r"all with a zone or all without"),
    ],
)
def test_json_errors(folder: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        list(open_events(write(folder, "a.jsonl", text)).batches())


def test_a_column_of_another_encoding_matters_where_it_is_read(tmp_path: Path) -> None:
    """Wherever in the file the first such byte stands."""
    towns = [b"Ulm"] * 600_000 + [b"M\xfcnchen"]
    lines = [b"time,type,town,v", *(b"%d,A,%b,1" % event for event in enumerate(towns))]
    for name, text in (("late", lines), ("early", [lines[0], lines[-1]])):
        path = tmp_path / f"{name}.csv"
        path.write_bytes(b"\n".join(text) + b"\n")
        source = open_events(path)
        assert sum(batch.num_rows for batch in source.batches(["v"])) == len(text) - 1
        with pytest.raises(DataError, match=r"column 'town' has the type binary.*\nhint: .*not UTF-8"):
            list(source.batches(["town"]))
        path.write_bytes(b"\n".join(text).replace(b",A,M", b",\xc4,M") + b"\n")
        with pytest.raises(DataError, match=rf"{name}\.csv:{len(text)}: the type column 'type' is not UTF-8 text"):
            open_events(path)


def test_json_bytes_that_are_no_text(folder: Path) -> None:
    (folder / "a.jsonl").write_bytes(b'{"time": 1}\n{"time": 2, "x": "\xff"}\n')
    with pytest.raises(DataError, match=r"a\.jsonl:2: the line is not UTF-8 text"):
        open_events(folder / "a.jsonl")


def test_json_clashes_between_chunks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = '{"time": 1, "type": "A", "x": 1}\n'
    monkeypatch.setattr(hamlet.input.jsonfile, "_CHUNK", len(line))
    assert len(rows(write(folder, "a.jsonl", line * 9 + '{"time": 1, "x": 2.5}\n'))) == 10
    with pytest.raises(DataError, match=r"b\.jsonl:10: attribute 'x' is \"s\", but int64 in the lines before"):
        open_events(write(folder, "b.jsonl", line * 9 + '{"time": 1, "x": "s"}\n'))
    with pytest.raises(DataError, match=r"c\.jsonl:\d: the column 'time', which orders the events, is NULL"):
        open_events(write(folder, "c.jsonl", '{"type": "A", "x": 1, "y": 12345}\n' * 3 + line * 9))


@settings(max_examples=150)
@given(data=st.binary(max_size=200) | st.text(alphabet='{}[]":,0123456789.eE-truefalsn\n \\uaxtim', max_size=120))
@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.parquet"])
def test_hostile_bytes_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: bytes | str
) -> None:
    path = tmp_path_factory.getbasetemp() / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    with contextlib.suppress(HamletError):
        list(open_events(path).batches())


# ------------------------------------------------------------------------------------------ folders and formats


@pytest.mark.parametrize(("suffix", "pack"), [("gz", gzip.compress), ("bz2", bz2.compress)])
def test_compressed_text(folder: Path, suffix: str, pack: Any) -> None:
    csv, jsonl = folder / f"a.csv.{suffix}", folder / f"a.jsonl.{suffix}"
    csv.write_bytes(pack(b"time,type\n1,A\n"))
    jsonl.write_bytes(pack(b'{"time": 1, "type": "A"}\n'))
    assert rows(csv) == rows(jsonl) == [{"time": 1, "type": "A"}]


def test_the_format_may_be_given(folder: Path) -> None:
    path = write(folder, "events.txt", "time,type\n1,A\n")
    assert rows(path, input_format="csv") == [{"time": 1, "type": "A"}]
    with pytest.raises(OptionError, match=r"cannot tell the format"):
        open_events(path)
    with pytest.raises(DataError, match=r"events\.txt is not a readable Parquet file"):
        open_events(path, input_format="parquet")


def test_folders_are_read_as_one(folder: Path) -> None:
    pq.write_table(pa.table({"time": [5, 6], "type": ["A", "B"], "x": [1, 2]}), folder / "b.parquet")
    pq.write_table(pa.table({"time": [1, 9], "type": ["C", "D"], "x": [0.5, 1.0], "y": [1, 1]}), folder / "a.parquet")
    (folder / "_SUCCESS").touch()
    (folder / "sub").mkdir()
    pq.write_table(pa.table({"time": [7], "type": pa.array(["E"]).dictionary_encode()}), folder / "sub" / "c.parquet")
    events = open_events(folder)
    assert events.rows == 5
    assert events.schema.type_of("x") is AttributeType.DOUBLE
    found = [row for batch in events.batches(["x"]) for row in batch.to_pylist()]
    assert [(row["time"], row["type"], row["x"]) for row in found] == [
        (1, "C", 0.5),
        (5, "A", 1.0),
        (6, "B", 2.0),
        (7, "E", None),
        (9, "D", 1.0),
    ]


def test_wrong_folders(folder: Path) -> None:
    with pytest.raises(DataError, match="no files in the folder"):
        open_events(folder)
    write(folder, "a.csv", "time,type,x\n1,A,1\n")
    write(folder, "b.csv", "time,type,x\n1,A,s\n")
    with pytest.raises(DataError, match=r"column 'x' is int64 in .*a\.csv and string in .*b\.csv"):
        open_events(folder)
    write(folder, "c.jsonl", "{}\n")
    with pytest.raises(DataError, match=r"mixes formats: b\.csv \(csv\) and c\.jsonl \(json\)"):
        open_events(folder)


def test_damaged_parquet(folder: Path) -> None:
    path = folder / "a.parquet"
    pq.write_table(pa.table({"time": range(100_000), "type": pa.array(map(str, range(100_000)))}), path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match="is not a readable Parquet file"):
        open_events(path)
    path.write_bytes(whole[:5000] + bytes(3000) + whole[8000:])
    with pytest.raises(DataError, match="cannot be read to its end"):
        list(open_events(path).batches())


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_a_file_that_lacks_a_column_is_named(kind: str, tmp_path: Path) -> None:
    whole, lacks = {"time": [1], "type": ["w"], "a": [5]}, {"time": [2, 3], "type": ["w", "w"]}
    for name, columns in (("one", whole), ("two", lacks)):
        path = tmp_path / f"{name}.{kind}"
        if kind == "parquet":
            pq.write_table(pa.table(columns), path)
        else:
            path.write_text("".join(json.dumps(each) + "\n" for each in pa.table(columns).to_pylist()))
    said = f"{tmp_path / 'two'}.{kind} has no column 'a', which others have: it is NULL in its 2 events"
    found = hamlet.run(hamlet.Workload.parse("RETURN SUM(w.a) PATTERN w WITHIN 9 s"), tmp_path)
    assert said in found.warnings
    policy = hamlet.policies.Policy.parse("w(a)", signature="w(a: int)")
    assert said in hamlet.policies.run(policy, tmp_path).warnings
    specification = hamlet.streams.Specification.parse("input a: Int64\noutput b := a")
    assert said in hamlet.streams.run(specification, tmp_path).warnings


# The same lines give the same rows, or an error about the same line, from a file and from a pipe, in all notations.

SAME_TEXTS = {
    "q.sase": "RETURN A.v, COUNT(*) PATTERN A GROUP-BY A.v WITHIN 1000 d",
    "p.mfotl": "A(v)",
    "s.lola": "input v: Int64\noutput w := v",
    "m.sql": "SELECT * FROM t MATCH_RECOGNIZE (ORDER BY time MEASURES a.v AS v PATTERN (a) DEFINE a AS true)",
}
BOTH = list(SAME_TEXTS)
NAMED = BOTH[:3]  # notations whose time is one of three kinds; row patterns order by any type
HEAD = "time,type,v\n"

SAME_LINES = [
    ("types that look like days", "jsonl", '{"time": 1, "type": "2024-01-01", "v": 1}\n', NAMED),
    ("types that look like times", "jsonl", '{"time": 1, "type": "2024-01-01T10:00:00.5Z", "v": 1}\n', NAMED),
    (
        "a blank before a time",
        "jsonl",
        '{"time": " 7", "type": "A", "v": 1}\n{"time": "8", "type": "A", "v": 2}\n',
        NAMED,
    ),
    (
        "a blank behind a time",
        "jsonl",
        '{"time": "7", "type": "A", "v": 1}\n{"time": "8 ", "type": "A", "v": 2}\n',
        NAMED,
    ),
    ("a sign before a time", "jsonl", '{"time": "+7", "type": "A", "v": 1}\n', NAMED),
    (
        "blanks around moments",
        "jsonl",
        '{"time": " 2024-01-01T10:00:00", "type": "A", "v": 1}\n{"time": "2024-01-02 10:00:00.5 ", "type": "A"}\n',
        NAMED,
    ),
    ("a time that is none", "jsonl", '{"time": "7", "type": "A", "v": 1}\n{"time": "y", "type": "A", "v": 2}\n', NAMED),
    ("blanks around names", "csv", "time, type ,v\n7,A,1\n8,A,2\n", BOTH),
    ("blanks around times", "csv", f"{HEAD} 7,A,1\n8 ,A,2\n", BOTH),
    ("a time that is none", "csv", f"{HEAD}7,A,1\ny,A,2\n", NAMED),
    ("no time", "csv", f"{HEAD}7,A,1\n,A,2\n", NAMED),
    ("values of two kinds", "jsonl", '{"time": 1, "type": "A", "v": 1}\n{"time": 2, "type": "A", "v": "x"}\n', BOTH),
    (
        "an integer of 65 bits",
        "jsonl",
        '{"time": 1, "type": "A", "v": 1}\n{"time": 2, "type": "A", "v": 18446744073709551616}\n',
        BOTH,
    ),
    (
        "a number that is too large",
        "jsonl",
        '{"time": 1, "type": "A", "v": 1}\n{"time": 2, "type": "A", "v": 1e400}\n',
        BOTH,
    ),
]


@pytest.mark.parametrize(
    ("form", "lines", "name"),
    [
        pytest.param(form, lines, name, id=f"{said}, {form}, {name}")
        for said, form, lines, of in SAME_LINES
        for name in of
    ],
)
def test_same_lines(
    form: str,
    lines: str,
    name: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for each, text in {**SAME_TEXTS, "p.sig": "A(v: int)", f"e.{form}": lines}.items():
        (tmp_path / each).write_text(text)
    more = ["--signature", str(tmp_path / "p.sig")] if name == "p.mfotl" else ["--values"] * (name == "s.lola")
    command = ["monitor" if name in ("p.mfotl", "s.lola") else "run", str(tmp_path / name), *more]
    found = []
    with (tmp_path / f"e.{form}").open() as file:
        monkeypatch.setattr("sys.stdin", file)
        for source in ([str(tmp_path / f"e.{form}")], ["-", "--input-format", form.removesuffix("l")]):
            code = main([*command, "--input", *source, "--output", "-", "--output-format", "json"])
            said = capsys.readouterr()
            line, row = (re.search(told, said.err) for told in (r"^error: \S.*?:(\d+): ", r" row (\d+) "))
            place = int(line[1]) if line else int(row[1]) + 1 if row else None
            found.append((code, place if code else said.out))
    assert found[0] == found[1]
