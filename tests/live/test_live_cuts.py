"""Lines that come one by one are the events that they are when they come at once."""

from __future__ import annotations

import json
import random
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

import hamlet
from hamlet.errors import DataError
from hamlet.input.live.table_lines import BadLineError, Columns, CsvLines, JsonLines
from hamlet.input.ordering import SortKey

DAY = "2024-03-0{}"
VALUES: dict[str, tuple[Any, ...]] = {
    "integer": (0, 1, -1, 7, 2**31, 2**53),
    "long integer": (2**53 + 1, 2**62, -(2**63), 2**63 - 1),
    "double": (0.5, 1.0, -2.25, 1e300),
    "text": ("a", "", "7", "1.5", "true", "2024-03-01", " x", "ä"),
    "boolean": (True, False),
    "nothing": (None,),
    "date": tuple(map(DAY.format, range(1, 5))),
    "seconds": tuple(f"{DAY.format(day)}T00:00:0{day}" for day in range(1, 5)),
    "with a space": tuple(f"{DAY.format(day)} 00:00:0{day}" for day in range(1, 5)),
    "fraction": tuple(f"{DAY.format(1)}T00:00:01{tail}" for tail in (".5", ".123456", ".0")),
    "zone": tuple(f"{DAY.format(day)}T00:00:0{day}{tail}" for day in range(1, 3) for tail in ("Z", "+01:00", ".5Z")),
}
TIMES = ("integer", "double", "date", "seconds", "with a space", "fraction", "zone")


def read(form: str, blocks: list[str]) -> list[list[Any]] | str:
    """The values of the events, times as instants; what is wrong with the first bad line."""
    columns = Columns(SortKey("time"), "type")
    lines = JsonLines(columns) if form == "json" else CsvLines(columns, "input")
    if form == "csv":
        lines.begin(b"time,type,v\n")
    rows = []
    for block in blocks:
        try:
            table = lines.parse(block.encode())
        except BadLineError as error:
            return str(error)
        assert table is not None
        rows += [[_plain(row.get(name)) for name in ("time", "type", "v")] for row in table.to_pylist()]
    return rows


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC) if value.tzinfo else value
    return datetime(value.year, value.month, value.day) if isinstance(value, date) else value


def lines_of(form: str, rows: list[dict[str, Any]]) -> list[str]:
    """Events as lines."""
    if form == "json":
        return [json.dumps(row) + "\n" for row in rows]
    return [",".join("" if each is None else str(each) for each in row.values()) + "\n" for row in rows]


@pytest.mark.parametrize("seed", range(100))
def test_lines_one_by_one(seed: int) -> None:
    """Integers beyond 2^53 are exact until a double comes, so they are not drawn beside doubles."""
    rng = random.Random(f"lines one by one {seed}")
    form = rng.choice(["json", "csv"])
    times, kinds = rng.sample(TIMES, rng.choice([1, 1, 2])), rng.sample(list(VALUES), rng.choice([1, 2]))
    if set(kinds) == {"long integer", "double"}:
        kinds = ["double"]
    rows = [
        {"time": rng.choice(VALUES[rng.choice(times)]), "type": "A", "v": rng.choice(VALUES[rng.choice(kinds)])}
        for _ in range(rng.randint(2, 6))
    ]
    lines = lines_of(form, rows)
    together, apart = read(form, ["".join(lines)]), read(form, lines)
    if not isinstance(together, str) and not isinstance(apart, str):
        assert together == apart, lines


def test_times_that_are_text_beside_long_integers() -> None:
    """Each line is looked at by itself then, and its time is text as those before."""
    lines = lines_of("json", [{"time": str(at), "type": "A", "v": 2**62 + at} for at in range(3)])
    apart = read("json", lines)
    assert apart == read("json", ["".join(lines)])
    assert [row[2] for row in apart] == [2**62, 2**62 + 1, 2**62 + 2]
    lines[2] = lines[2].replace('"2"', "2")
    assert read("json", lines) == "'time' is 2, and text in the lines before"


@pytest.mark.parametrize("form", ["json", "csv"])
def test_a_fraction_after_whole_seconds(form: str) -> None:
    """A clock that leaves a fraction of zero out is one clock."""
    lines = lines_of(form, [{"time": at, "type": "A", "v": at} for at in (*VALUES["seconds"][:1], *VALUES["fraction"])])
    apart = read(form, lines)
    assert apart == read(form, ["".join(lines)])
    assert apart[2][0] == datetime(2024, 3, 1, 0, 0, 1, 123456)


@pytest.mark.parametrize("form", ["json", "csv"])
@pytest.mark.parametrize("tail", ["", "Z", ".5", ".123456789"])
def test_means_of_a_file_are_those_of_a_pipe(form: str, tail: str, tmp_path: Path) -> None:
    """Whole seconds of text have a mean that is none, and a pipe does not know whether all will be whole."""
    rows = [{"time": f"{DAY.format(1)}T00:00:0{second}{tail}", "type": "A"} for second in (0, 1, 4)]
    rows = [{**row, "at": row["time"]} for row in rows]
    lines = "".join(lines_of(form, rows))
    text = ("time,type,at\n" if form == "csv" else "") + lines
    name = f"events.{'csv' if form == 'csv' else 'jsonl'}"
    (tmp_path / name).write_text(text)
    workload = hamlet.Workload.parse(
        "RETURN AVG(A.time) AS m, AVG(A.at) AS n, (MAX(A.time) - MIN(A.at)) / 3 AS third PATTERN A WITHIN 1 min"
    )
    columns = Columns(SortKey("time"), "type")
    parser = JsonLines(columns) if form == "json" else CsvLines(columns, "input")
    if form == "csv":
        parser.begin(b"time,type,at\n")
    engine = hamlet.Engine(workload)
    engine.push(parser.parse(lines.encode()))
    assert hamlet.run(workload, tmp_path / name).rows() == engine.close()


@pytest.mark.parametrize("form", ["json", "csv"])
def test_nanoseconds_after_microseconds(form: str) -> None:
    """What the times before cannot hold is refused with the reason."""
    at = "2024-03-01T00:00:01"
    lines = lines_of(form, [{"time": at + tail, "type": "A", "v": 1} for tail in ("", ".5", ".123456789")])
    assert read(form, lines) == (
        "'time' has more than six digits behind the point, and no time before has; give the first with nine digits"
    )
    assert len(read(form, ["".join(lines)])) == 3


def test_a_header_without_the_event_types() -> None:
    """A file of such lines is an error, too; that no type ever occurs would be a note only."""
    for header in (b"time,kind\n", b"time,type_\n"):
        with pytest.raises(DataError, match=r"^input: there is no type column 'type'"):
            CsvLines(Columns(SortKey("time"), "type"), "input").begin(header)
