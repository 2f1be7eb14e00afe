"""`--where` over lines of JSON: which events are taken does not depend on where the stream is cut."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import pytest

from hamlet.engine.live_filter import LiveFilter
from hamlet.errors import WorkloadError
from hamlet.input.live.table_lines import Columns, JsonLines
from hamlet.input.ordering import SortKey
from hamlet.streams.live_choice import LiveChoice
from hamlet.streams.specification import Specification
from hamlet.streams.tenant import StreamTenant

_CONDITIONS = (
    "w > 2 OR v < 3",
    "NOT w > 2",
    "w IS NULL AND v > 1",
    "v > w",
    "w + 1 > v",
    "name = Soho",
    "name <> Soho OR event.w = 4",
    "name IN (Soho, Camden) AND w BETWEEN 1 AND 4",
    "event.name = 'Soho'",
    "v IN (w, 2)",
)
_SPEC = Specification.parse("input v: Int64\ninput w: Int64\noutput a := v\noutput b := w")


def _events(random_: random.Random) -> list[dict[str, Any]]:
    drawn = ({"v": random_.randrange(6), "w": random_.randrange(6), "name": random_.choice(("Soho", "Mayfair"))},)
    return [
        {"time": time, "type": "A"}
        | {name: value for each in drawn for name, value in each.items() if random_.random() < 0.3}
        for time in range(random_.randrange(1, 8))
    ]


def _blocks(events: Sequence[dict[str, Any]], random_: random.Random) -> list[bytes]:
    """The events as lines, cut at random."""
    blocks = [b""]
    for event in events:
        if random_.random() < 0.5:
            blocks.append(b"")
        blocks[-1] += json.dumps(event).encode() + b"\n"
    return [each for each in blocks if each]


def _of_queries(condition: str, blocks: Sequence[bytes]) -> tuple[list[int], list[str]]:
    chosen = LiveFilter(condition, None, None)
    chosen.growing = True
    lines = JsonLines(Columns(SortKey("time"), "type"))
    tables = [chosen.of(table) for block in blocks if (table := lines.parse(block)) is not None]
    return [time for table in tables for time in table.column("time").to_pylist()], chosen.warnings


def _of_specifications(condition: str, blocks: Sequence[bytes]) -> list[int]:
    chosen = LiveChoice(_SPEC.inputs, condition, None, None)
    tenant = StreamTenant(_SPEC, "s", {}, chosen=chosen)
    lines = tenant.parser("json", "lines")
    tables = (chosen.of(lines.parse(block).table, "lines") for block in blocks)
    return [time for table in tables for time in table.column("time").to_pylist()]


def test_cuts_do_not_matter() -> None:
    """Over one block that ends with an event of all attributes, which fulfils no condition, all columns are known."""
    random_ = random.Random(7)
    for _ in range(60):
        events = _events(random_)
        condition = random_.choice(_CONDITIONS)
        whole = json.dumps({"time": -1, "type": "A", "v": 9, "w": 0, "name": "Soho"}).encode() + b"\n"
        blocks = _blocks(events, random_)
        expected = [time for time in _of_queries(condition, [whole + b"".join(blocks)])[0] if time >= 0]
        assert _of_queries(condition, blocks)[0] == expected, (condition, blocks)
        assert _of_specifications(condition, blocks) == expected, (condition, blocks)


def test_what_never_came_is_said() -> None:
    """At the end a note says it; where a header names all columns, it is a mistake."""
    blocks = [b'{"time":1,"type":"A","speed":1}\n', b'{"time":2,"type":"A","speed":3,"name":"a"}\n']
    assert _of_queries("sped > 2", blocks) == ([], ["--where: no event has a value of sped (did you mean speed?)"])
    assert _of_queries("speed > 2 AND name = b", blocks) == ([], [])
    closed = LiveFilter("sped > 2", None, None)
    with pytest.raises(WorkloadError, match="the input has no column 'sped'"):
        closed.of(JsonLines(Columns(SortKey("time"), "type")).parse(blocks[0]))


@pytest.mark.parametrize("form", ["csv", "json"])
def test_times_before_the_period_say_what_times_are(form: str) -> None:
    """A fraction among the events that are left out makes the others fractions, as in a file."""
    chosen = LiveChoice(_SPEC.inputs, None, "3", None)
    tenant = StreamTenant(_SPEC, "s", {"values": True}, chosen=chosen)
    lines = tenant.parser(form, "lines")
    if form == "csv":
        lines.begin(b"time,v,w")
    rows = [b"1.5,1,2", b"4,5,6"] if form == "csv" else [b'{"time":1.5,"v":1,"w":2}', b'{"time":4,"v":5,"w":6}']
    found = [batch for row in rows for _, batch in tenant.push(lines.parse(row), "lines")]
    assert [str(row["time"]) for batch in found for row in batch.to_pylist()] == ["4.0", "4.0"]
