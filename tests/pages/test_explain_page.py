"""The page that explains a workload: what it says and what it hands to the script that draws; see also the browser."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import hamlet
import hamlet.cli
from hamlet.pages.explained import page

ROOT = Path(__file__).resolve().parents[2]
WORKLOADS = sorted((ROOT / "workloads").glob("*.sase"))
VENDOR = ROOT / "hamlet" / "pages" / "vendor"


def graphs_of(text: str) -> list[dict[str, Any]]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    graphs: list[dict[str, Any]] = json.loads(found[1])["graphs"]
    return graphs


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda path: path.stem)
def test_the_workloads_of_this_project(workload: Path) -> None:
    """Every query has its line, its card and its graph; every arrow leads from a state to a state."""
    checked = hamlet.Workload.from_file(workload)
    text = page(checked)
    assert len(text.encode()) < 300_000
    assert re.findall(r'id="query-(\d+)"', text) == [str(place) for place in range(len(checked.names))]
    assert re.findall(r'href="#query-(\d+)"', text) == [str(place) for place in range(min(30, len(checked.names)))]
    graphs = graphs_of(text)
    assert [int(number) for number in re.findall(r'data-graph="(\d+)"', text)] == [*range(len(graphs))]
    assert len(graphs) >= len(checked.names)
    for graph in graphs:
        reached = {0}
        for arrow in graph["arrows"]:
            assert 0 <= arrow["source"] < len(graph["states"])
            reached.add(arrow["target"])
        assert reached == set(range(len(graph["states"])))
        assert len({(arrow["source"], arrow["target"]) for arrow in graph["arrows"]}) == len(graph["arrows"])


def test_the_page_opens_with_what_is_asked_and_who_can_share() -> None:
    text = page(
        hamlet.Workload.parse(
            "one: RETURN COUNT(*) PATTERN SEQ(A, B+) WITHIN 10 s; two: RETURN COUNT(*) PATTERN SEQ(C, B+) WITHIN 10 s;"
            "three: RETURN g, MAX(A.x) PATTERN A GROUP-BY g WITHIN 1 min"
        )
    )
    lead = re.search(r'<p class="lead">(.*?)</p>', text, re.DOTALL)
    assert lead is not None
    assert lead[1] == "3 queries ask for trends; 2 of them can share work."
    assert text.index('class="lead"') < text.index("Who can share with whom") < text.index("How much is kept")
    rows = re.findall(r"<tr><td><a href.*?</tr>", text)
    assert [re.sub(r"<[^>]+>", "|", row).strip("|").split("|")[-1] for row in rows] == ["two", "one", "–"]
    assert "<td>g</td>" in rows[2]
    assert "no two of them can share work" in page(
        hamlet.Workload.parse("RETURN COUNT(*) PATTERN A+ WITHIN 10 s; RETURN COUNT(*) PATTERN B+ WITHIN 10 s")
    )


def test_the_merged_template_names_the_queries_of_each_transition() -> None:
    """Figure 3 of the paper: A and C lead into one shared B+."""
    text = page(
        hamlet.Workload.parse(
            "RETURN COUNT(*) PATTERN SEQ(A, B+) WITHIN 10 s; RETURN COUNT(*) PATTERN SEQ(C, B+) WITHIN 10 s"
        )
    )
    merged = graphs_of(text)[0]
    assert merged["label"] == "merged template of group 1"
    assert [(each["classes"], each["queries"], each["tip"]) for each in merged["states"]] == [
        ("", "0 1", "start"),
        ("", "0", "A\nq1: A"),
        ("p0 final", "0 1", "B\nq1: B\nq2: B\ntrends may end here: q1, q2"),
        ("", "1", "C\nq2: C"),
    ]
    assert sorted(each["label"] for each in merged["arrows"]) == [["q1"], ["q1"], ["q1, q2"], ["q2"], ["q2"]]
    group = text[text.index('data-group="1"') : text.index("</article>")]
    assert "<b>B+</b></td><td><div>q1, q2</div></td>" in group
    assert "sharing pays from" in group


def test_guards_predicates_and_granularity_are_shown() -> None:
    text = page(
        hamlet.Workload.parse(
            "a: RETURN COUNT(*) PATTERN SEQ(A, NOT SEQ(C, D), B+, NOT E) WHERE B.x < NEXT(B).x "
            "WITHIN 10 min SLIDE 4 min"
        )
    )
    card = text[text.index('id="query-0"') :]
    assert 'class="badge indexed"' in card
    assert '<p class="note">NOT SEQ(C, D)</p>' in card
    drawn, inner = graphs_of(text)
    assert [label for each in drawn["arrows"] for label in each["label"]] == ["no SEQ(C, D)", "B.x < NEXT(B).x"]
    assert [each["below"] for each in drawn["states"]] == [[], [], ["no E after"]]
    assert [each["title"] for each in inner["states"]] == ["", "C", "D"]
    assert "No two queries have a Kleene sub-pattern in common" in text
    assert "10 min, a new one every 4 min, 3 open at a time; 5 panes" in text


def test_names_of_a_workload_are_no_markup() -> None:
    evil = "</svg><script>alert(1)</script>"
    text = page(hamlet.Workload.parse(f'"<b>x": RETURN COUNT(*) PATTERN SEQ("{evil}" T+, B) WITHIN 1 s'))
    assert text.count("<script") == 2
    assert "<b>x" not in text


def test_the_command_line_writes_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "w.sase").write_text("RETURN COUNT(*) PATTERN SEQ(A, B+) WITHIN 1 s")
    explain = ["explain", str(tmp_path / "w.sase"), "--html"]
    assert hamlet.cli.main([*explain, str(tmp_path / "w.html")]) == 0
    assert capsys.readouterr().out == ""
    assert "1 query asks for trends." in (tmp_path / "w.html").read_text(encoding="utf-8")
    for place, message in ((tmp_path, "is a folder"), (tmp_path / "w.sase", "would replace a file that is read here")):
        assert hamlet.cli.main([*explain, str(place)]) == 2
        assert message in capsys.readouterr().err


def test_the_libraries_of_the_pages_have_their_licences_and_versions() -> None:
    """They are packed with the distribution, and the README says which version lies there."""
    readme = (VENDOR / "README.md").read_text(encoding="utf-8")
    script = (VENDOR / "uPlot.iife.min.js").read_text(encoding="utf-8")
    version = re.search(r"\(v([0-9.]+)\)", script[:200])
    assert version is not None
    assert f"| {version[1]} |" in readme
    for name in ("uPlot", "dagre"):
        assert "Permission is hereby granted" in (VENDOR / f"{name}.LICENSE").read_text(encoding="utf-8")
        assert f"({name}.LICENSE)" in readme
    for each in VENDOR.glob("*.js"):
        assert "</script" not in each.read_text(encoding="utf-8")
        assert "sourceMappingURL" not in each.read_text(encoding="utf-8")
