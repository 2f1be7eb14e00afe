"""The page about a batch job on Spark: it says of the job what the page about a run says of the run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hamlet
from hamlet.cli import main
from hamlet.errors import OutputError
from tests.pages.test_report import data_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from selenium.webdriver import Chrome

WORKLOAD = """
trends: RETURN g, COUNT(*), AVG(B.x) PATTERN SEQ(A, B+) WHERE [g] GROUP-BY g WITHIN 500 s;
others: RETURN g, COUNT(*) PATTERN SEQ(C, B+) WHERE [g] GROUP-BY g WITHIN 100 s;
never: RETURN COUNT(*) PATTERN SEQ(A, Z) WHERE [g] WITHIN 100 s;
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workload and 3,000 events of five groups."""
    folder = tmp_path_factory.mktemp("job")
    places = np.arange(3_000)
    kinds = np.array(["A", "C", "A", *"BBBBBBBBBBBBB", "D"] * 177)[:3_000]
    groups = np.array(["north", "south", "east", "west", "middle"])[places // 17 % 5]
    pq.write_table(pa.table({"time": places, "type": kinds, "g": groups, "x": places % 7}), folder / "in.parquet")
    (folder / "w.sase").write_text(WORKLOAD)
    return folder


def reported(folder: Path, command: str, *more: str) -> dict[str, Any]:
    arguments = [command, str(folder / "w.sase"), "--input", str(folder / "in.parquet"), "--quiet", "--overwrite"]
    page = folder / f"{command}.html"
    assert main([*arguments, "--output", str(folder / "out"), "--report", str(page), *more]) == 0
    return data_of(page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("more", [[], ["--balance", "--where", "x <> 3 AND time > 20"]])
def test_a_job_and_a_run_have_the_same_page(spark: SparkSession, folder: Path, more: list[str]) -> None:
    """Rows and events are the same, decisions nearly so."""
    job = reported(folder, "submit", *more)
    run = reported(folder, "run", *more[1:])
    for name in ("axis", "queries", "events"):
        assert job[name] == run[name], name
    # Bursts are cut where batches end, which is elsewhere in a job; the sums themselves are tested in test_report.py.
    found, expected = job["decisions"], run["decisions"]
    assert found["sets"] == expected["sets"]
    assert (found["first"], found["length"], found["bins"]) == (expected["first"], expected["length"], expected["bins"])
    for place in (3, 4):  # bursts, events
        counts = [sum(each[place] for each in page["sums"]) for page in (found, expected)]
        assert counts[0] == pytest.approx(counts[1], rel=0.03)
        assert counts[1] > 200
    page = (folder / "submit.html").read_text("utf-8")
    stages = ["start", *(["measure"] if more else []), "scan", "execute", "write", "report", "rest"]
    assert [page.index(f"</i>{stage}</td>") for stage in stages] == sorted(
        page.index(f"</i>{stage}</td>") for stage in stages
    )
    assert "</i>compute</td>" not in page
    for text in (page, (folder / "run.html").read_text("utf-8")):
        assert ("x &lt;&gt; 3 AND time &gt; 20" in text) == bool(more)


def test_of_many_rows_whole_windows_and_groups_are_drawn(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hamlet.spark import report

    monkeypatch.setattr(report, "MOST_ROWS", 600)
    monkeypatch.setattr(report, "MOST_BINS", 10)
    size = 12_000
    table = pa.table({"time": np.arange(size), "type": ["A"] * size, "k": np.arange(size) % 60, "v": np.arange(size)})
    pq.write_table(table, tmp_path / "in.parquet")
    workload = hamlet.Workload.parse(
        "many: RETURN k, MAX(A.v) AS top PATTERN A GROUP-BY k WITHIN 300 s;"
        "few: RETURN COUNT(*) PATTERN A WHERE [k] WITHIN 600 s"
    )
    place = tmp_path / "r.html"
    stats = hamlet.spark.submit(workload, str(tmp_path / "in.parquet"), str(tmp_path / "out"), report=place)
    assert stats["rows"] == 60 * 40 + 20
    many, few = data_of(place.read_text("utf-8"))["queries"]
    assert (many["rows"], many["groups"]) == (2_400, 60)
    assert many["sample"] == "a sample: 1 of 4 windows and 1 of 2 groups"
    assert (few["rows"], few["sample"], len(few["starts"])) == (20, "", 20)
    assert 1 < len(many["starts"]) < 30
    assert 10 < len(many["lines"]) < 50
    for line in many["lines"]:  # whole windows of whole groups, with their very values
        starts = [many["starts"][number] for number in line.get("bins", range(len(many["starts"])))]
        assert starts == many["starts"]
        assert line["values"][0] == [start + 240 + int(line["label"]) for start in starts]


def test_a_job_page_in_a_browser(spark: SparkSession, folder: Path, browser: Chrome) -> None:
    reported(folder, "submit")
    browser.get_log("browser")
    browser.get((folder / "submit.html").as_uri())
    assert browser.get_log("browser") == []
    names = [card.get_attribute("data-query") for card in browser.find_elements("css selector", "#charts article")]
    assert names == ["trends", "others", "never"]
    count = "each => each.plot ? each.plot.series.length - 1 : 0"
    lines = f"return [...document.querySelectorAll('#charts .chart')].map({count})"
    assert sum(browser.execute_script(lines)) == 10  # a line for each group of two queries
    assert "100,000" not in browser.find_element("css selector", "main").text
    assert "4 slices, side by side" in browser.find_element("css selector", "main").text
    timeline = "return document.querySelector('#timeline .chart').plot.data.slice(1).flat().filter(each => each).length"
    assert browser.execute_script(timeline) > 3
    stages = browser.find_elements("css selector", ".stages span")
    assert sum(stage.size["width"] for stage in stages) > 600


def test_where_no_page_can_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Known before Spark starts; and a stream has no end to report of."""
    pytest.importorskip("pyspark")
    (tmp_path / "w.sase").write_text(WORKLOAD)
    submit = ["submit", str(tmp_path / "w.sase"), "--input", str(tmp_path / "e.csv"), "--output", str(tmp_path / "out")]
    with pytest.raises(OutputError, match="is a folder; name a file in it"):
        hamlet.spark.submit(hamlet.Workload.parse(WORKLOAD), "e.csv", str(tmp_path / "out"), report=tmp_path)
    (tmp_path / "e.csv").write_text("time,type,g,x\n0,A,a,1\n")
    for place, message in (("no/r.html", "make it first"), ("e.csv", "would replace a file that is read here")):
        assert main([*submit, "--report", str(tmp_path / place)]) == 2
        assert message in capsys.readouterr().err
    assert main([*submit, "--stream", "--checkpoint", str(tmp_path / "c"), "--report", str(tmp_path / "r.html")]) == 2
    assert "submit them without --stream, or give them to hamlet run --report" in capsys.readouterr().err
