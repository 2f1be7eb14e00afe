"""The page that explains a workload: what is drawn, and that nothing lies on anything else."""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import pytest

import hamlet
import hamlet.cli
from hamlet.pages.drawing import Arrow, Drawing, State, draw
from hamlet.pages.explained import page

ROOT = Path(__file__).parents[1]
WORKLOADS = sorted((ROOT / "workloads").glob("*.sase"))


def chain(*arrows: tuple[int, int]) -> Drawing:
    size = 1 + max(max(arrow) for arrow in arrows)
    return draw([State(n, f"S{n}") for n in range(size)], [Arrow(*arrow, label=(f"{arrow}",)) for arrow in arrows])


def test_a_sequence_runs_from_left_to_right_on_one_line() -> None:
    drawing = chain((0, 1), (1, 2), (2, 3))
    assert len({each["y"] for each in drawing.states}) == 1
    assert [each["x"] for each in drawing.states] == sorted(each["x"] for each in drawing.states)


def test_transitions_that_lead_back_or_skip_states() -> None:
    """(SEQ(A, B?, C))+: a way back, and one past B that does not cross it."""
    drawing = chain((0, 1), (1, 2), (2, 3), (1, 3), (3, 1), (1, 1))
    skip, back, loop = (drawing.arrows[place] for place in (3, 4, 5))
    by = {number: each["y"] for number, each in enumerate(drawing.states)}
    assert skip["lines"][0][1] != pytest.approx(by[2], abs=40)
    assert back["lines"][0][1] > max(by.values())
    assert loop["lines"][0][1] < by[1]


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda path: path.stem)
def test_the_workloads_of_this_project(workload: Path) -> None:
    """Every query has its card, every drawing lies in its picture, and no state on another."""
    checked = hamlet.Workload.from_file(workload)
    text = page(checked)
    assert len(text.encode()) < 300_000
    assert re.findall(r'id="query-(\d+)"', text) == [str(place) for place in range(len(checked.names))]
    pictures = re.findall(r'<svg class="drawing".*?</svg>', text, re.DOTALL)
    assert len(pictures) >= len(checked.names)
    for picture in pictures:
        box = re.search(r'viewBox="([^"]*)"', picture)
        assert box is not None
        left, top, width, height = map(float, box[1].split())
        states = [
            tuple(map(float, found))
            for found in re.findall(r'class="body" x="(.*?)" y="(.*?)" width="(.*?)" height="(.*?)"', picture)
        ]
        assert states
        for x, y, wide, high in states:
            assert left <= x <= x + wide <= left + width
            assert top <= y <= y + high <= top + height
        for (x, y, wide, _), (x2, y2, wide2, _) in combinations(states, 2):
            assert abs(y - y2) >= 42 or x + wide <= x2 or x2 + wide2 <= x


def test_the_merged_template_names_the_queries_of_each_transition() -> None:
    """Figure 3 of the paper: A and C lead into one shared B+."""
    text = page(
        hamlet.Workload.parse(
            "RETURN COUNT(*) PATTERN SEQ(A, B+) WITHIN 10 s; RETURN COUNT(*) PATTERN SEQ(C, B+) WITHIN 10 s"
        )
    )
    group = text[text.index('data-group="1"') : text.index("</article>")]
    states = re.findall(r'<g class="state ([^"]*)" data-q="([^"]*)" data-tip="([^"]*)"', group)
    assert states == [
        ("", "0 1", "start"),
        ("", "0", "A\nq1: A"),
        ("p0 final", "0 1", "B\nq1: B\nq2: B\ntrends may end here: q1, q2"),
        ("", "1", "C\nq2: C"),
    ]
    labels = re.findall(r"<text [^>]*>([^<]*)</text>", group[: group.index('<g class="state')])
    assert sorted(labels) == ["q1", "q1", "q1, q2", "q2", "q2"]
    assert "<b>B+</b></td><td><div>q1, q2</div></td>" in group
    assert "sharing pays from" in group


def test_guards_predicates_and_rungs_are_shown() -> None:
    text = page(
        hamlet.Workload.parse(
            "a: RETURN COUNT(*) PATTERN SEQ(A, NOT SEQ(C, D), B+, NOT E) WHERE B.x < NEXT(B).x "
            "WITHIN 10 min SLIDE 4 min"
        )
    )
    card = text[text.index('id="query-0"') :]
    for shown in ("no SEQ(C, D)", "no E after", "B.x &lt; NEXT(B).x", "NOT SEQ(C, D)", 'class="badge indexed"'):
        assert shown in card, shown
    assert "The plan has no group of queries that share a Kleene part" in text
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
    assert "1</b> query" in (tmp_path / "w.html").read_text(encoding="utf-8")
    for place, message in ((tmp_path, "is a folder"), (tmp_path / "w.sase", "would replace a file that is read here")):
        assert hamlet.cli.main([*explain, str(place)]) == 2
        assert message in capsys.readouterr().err


def test_without_igraph_it_is_said_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "w.sase").write_text("RETURN COUNT(*) PATTERN SEQ(A, B+) WITHIN 1 s")
    code = "import sys; sys.modules['igraph'] = None; import hamlet.cli; sys.exit(hamlet.cli.main(sys.argv[1:]))"
    arguments = ["explain", str(tmp_path / "w.sase"), "--html", str(tmp_path / "w.html")]
    done = subprocess.run([sys.executable, "-c", code, *arguments], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert "pip install 'hamlet-cep[draw]'" in done.stderr
    assert not (tmp_path / "w.html").exists()
