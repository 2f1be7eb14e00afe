"""`hamlet explain --estimate`: what is said before a run, beside what the run does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import hamlet
from bench import streams
from hamlet.cli.explain import command
from hamlet.input.events import open_events
from hamlet.parallel import estimate as module
from hamlet.parallel.estimate import Estimate, estimate

TEXT = """
    one: RETURN key, COUNT(*), SUM(B.value) PATTERN SEQ(A, B+) GROUP-BY key {within};
    two: RETURN key, COUNT(*) PATTERN SEQ(A+, C) GROUP-BY key {within}"""


def estimated(text: str, events: Any, **options: Any) -> Estimate:
    return estimate(hamlet.Workload.parse(text), open_events(events), **options)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("within", ["WITHIN 300 s", "WITHIN 600 s SLIDE 60 s", "WITHIN 2 h"])
@pytest.mark.parametrize("keys", [4, 200, 20_000])
def test_rows_and_operator(monkeypatch: pytest.MonkeyPatch, within: str, keys: int) -> None:
    """A sample that is short, and of some groups, tells rows within a factor of two."""
    monkeypatch.setattr(module, "MOST", 60_000)
    monkeypatch.setattr(module, "FIRST", 10_000)
    monkeypatch.setattr(module, "MOST_READ", 200_000)
    events, text = streams.many_groups(400_000, keys), TEXT.format(within=within)
    found = estimated(text, events)
    results = hamlet.run(hamlet.Workload.parse(text), events)
    assert found.events == 400_000
    assert found.sampled < 200_000
    assert results.stats["rows"] / 2 <= found.rows <= 2 * results.stats["rows"]
    assert 0 < found.reading_seconds < found.seconds
    work = {name: each["events"] for name, each in results.stats["operators"].items()}
    assert work[found.operator] > 0 or within == "WITHIN 2 h"  # of which the sample is a small part
    assert found.held_bytes > 0
    size = sum(results.table(name).nbytes for name in results.queries)
    assert size / 3 <= found.row_bytes <= 3 * size


def test_what_would_make_it_cheaper() -> None:
    events = streams.many_groups(30_000, 1)
    cheaper = estimated(TEXT.format(within="WITHIN 300 s SLIDE 10 s"), events).cheaper
    assert any("30 windows are open at once" in each for each in cheaper)
    cheaper = estimated("RETURN COUNT(DISTINCT B.value) PATTERN SEQ(A, B) WITHIN 300 s", events).cheaper
    assert any("what an event costs" in each for each in cheaper)
    assert not any("--numbers" in each for each in estimated(TEXT.format(within="WITHIN 1 s"), events).cheaper)


def test_events_are_counted_where_the_input_does_not_say(tmp_path: Path) -> None:
    events = streams.many_groups(30_000, 50)
    plain = events.set_column(1, "type", events["type"].cast(pa.string()))
    pa_csv.write_csv(plain, tmp_path / "events.csv")
    text = TEXT.format(within="WITHIN 60 s")
    found = estimated(text, tmp_path / "events.csv")
    assert found.events == 30_000
    assert found.rows == hamlet.run(hamlet.Workload.parse(text), events).stats["rows"]


def test_the_command(tmp_path: Path) -> None:
    pq.write_table(streams.many_groups(5_000, 50), tmp_path / "events.parquet")
    (tmp_path / "w.sase").write_text(TEXT.format(within="WITHIN 60 s"), encoding="utf-8")
    asked = [str(tmp_path / "w.sase"), "--estimate"]
    read = ["--input", str(tmp_path / "events.parquet")]
    shown = CliRunner().invoke(command, [*asked, *read])
    assert shown.exit_code == 0, shown.output
    assert [line.split()[0] for line in shown.output.splitlines()][:5] == [
        "estimate",
        "seconds",
        "rows",
        "bytes",
        "operator",
    ]
    facts = json.loads(CliRunner().invoke(command, [*asked, *read, "--format", "json", "--numbers", "float"]).output)
    assert facts["events"] == 5_000
    for arguments, why in (
        (asked, "name one by --input"),
        ([*asked, *read, "--html", "x.html"], "--estimate prints"),
        ([asked[0], *read, "--numbers", "float"], "give it with --estimate"),
    ):
        refused = CliRunner().invoke(command, arguments)
        assert refused.exit_code == 2
        assert why in " ".join(refused.output.split())
    empty = pa.table({"time": pa.array([], pa.int64()), "type": pa.array([], pa.string())})
    with pytest.raises(hamlet.HamletError, match="no events"):
        estimated("RETURN COUNT(*) PATTERN A WITHIN 1 s", empty)
