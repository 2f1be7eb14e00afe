"""The HTML pages in headless Chromium: they draw, complain of nothing, load nothing, and answer pointer and keys."""

from __future__ import annotations

import subprocess
import time
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import hamlet
from hamlet.cli import main
from hamlet.engine.options import Options
from hamlet.input.events import open_events
from hamlet.pages.explained import write_explanation
from hamlet.pages.report import Report
from hamlet.streams import Specification
from hamlet.streams.page import write_specification
from tests.live.test_live_files import POLICY, WAIT, running, until
from tests.pages.traces import burst, table

if TYPE_CHECKING:
    from selenium.webdriver import Chrome
    from selenium.webdriver.remote.webelement import WebElement

ROOT = Path(__file__).resolve().parents[2]
WORKLOAD = """
trends: RETURN g, COUNT(*), AVG(B.x) PATTERN SEQ(A, B+) WHERE [g] GROUP-BY g WITHIN 500 s;
others: RETURN g, COUNT(*) PATTERN SEQ(C, B+) WHERE [g] GROUP-BY g WITHIN 100 s;
"""

# Whether something other than nothing was drawn on a canvas.
PAINTED = (
    "canvas => new Uint32Array(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer)"
    ".some(pixel => pixel !== 0)"
)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a run of two queries over three groups, with a trace of 40 bursts."""
    folder = tmp_path_factory.mktemp("report")
    places = np.arange(3_000)
    events = {
        "time": places,
        "type": np.array(["A", "C", "A", *"BBBBBBBBBBBBB"] * 188)[:3_000],
        "g": np.array(["north", "south", "east"])[places % 3],
        "x": places % 7,
    }
    kinds = [("merged", ["trends", "others"]), ("shared", ["trends", "others"]), ("split", []), ("alone", [])]
    bursts = [burst(n * 70, *kinds[n % 4], b=n + 1) for n in range(40)]
    workload = hamlet.Workload.parse(WORKLOAD, source="<two>.sase")
    page = Report(workload, open_events(events), Options(), folder / "report.html")
    for batch in open_events(events).batches():
        page.see(batch)
    page.decided(table(bursts))
    page.write(hamlet.run(workload, events))
    return folder / "report.html"


@pytest.fixture(scope="module")
def explanation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page that explains the ridesharing workload."""
    path = tmp_path_factory.mktemp("explain") / "explain.html"
    write_explanation(hamlet.Workload.from_file(ROOT / "workloads" / "ridesharing.sase"), path)
    return path


TRENDS = "document.querySelector('[data-query=trends] .chart').plot"


@pytest.fixture(scope="module")
def violations(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of two policies, one of them never violated."""
    folder = tmp_path_factory.mktemp("policies")
    (folder / "w.sig").write_text("withdraw(user: string, amount: int)")
    (folder / "limit.mfotl").write_text("ALWAYS FORALL u, a. withdraw(u, a) IMPLIES a < 100")
    (folder / "never.mfotl").write_text("ALWAYS FORALL u, a. withdraw(u, a) IMPLIES a < 10000")
    lines = [f"{place * 10},withdraw,{'ab'[place % 2]},{place}" for place in range(500)]
    (folder / "e.csv").write_text("\n".join(["time,type,user,amount", *lines, ""]))
    policies = [str(folder / "limit.mfotl"), str(folder / "never.mfotl"), "-s", str(folder / "w.sig")]
    page = folder / "v.html"
    assert main(["monitor", *policies, "-i", str(folder / "e.csv"), "--report", str(page), "-q", "--limit", "1"]) == 0
    return page


@pytest.fixture(scope="module")
def triggers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a specification with a trigger and a stream of numbers."""
    folder = tmp_path_factory.mktemp("triggers")
    (folder / "w.lola").write_text('input a: Int64\noutput twice := a * 2\ntrigger twice > 100 "large"\n')
    (folder / "e.csv").write_text("\n".join(["time,a", *(f"{place},{place % 70}" for place in range(500)), ""]))
    page = folder / "t.html"
    arguments = [str(folder / "w.lola"), "-i", str(folder / "e.csv"), "--values", "--report", str(page), "-q"]
    assert main(["monitor", *arguments, "--limit", "1"]) == 0
    return page


@pytest.fixture(scope="module")
def matches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a row pattern, three rows of which rise before they fall."""
    folder = tmp_path_factory.mktemp("matches")
    clause = "PARTITION BY s ORDER BY ts MEASURES FIRST(ts) AS since, COUNT(*) AS n PATTERN (a up+)"
    (folder / "rises.sql").write_text(f"SELECT * FROM t MATCH_RECOGNIZE ({clause} DEFINE up AS p > PREV(p))")
    rows = [f"{place},{'xy'[place % 2]},{place // 2 % 4}" for place in range(400)]
    (folder / "t.csv").write_text("\n".join(["ts,s,p", *rows, ""]))
    page = folder / "m.html"
    arguments = [str(folder / "rises.sql"), "-i", str(folder / "t.csv"), "--report", str(page), "-q", "--limit", "1"]
    assert main(["run", *arguments]) == 0
    return page


@pytest.fixture(scope="module")
def dependencies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page that explains a specification."""
    path = tmp_path_factory.mktemp("graph") / "s.html"
    write_specification(Specification.from_file(ROOT / "workloads" / "shop.lola"), path)
    return path


def opened(browser: Chrome, page: Path) -> None:
    browser.get_log("browser")
    browser.get(page.as_uri())


def all_of(browser: Chrome, selector: str) -> list[WebElement]:
    return browser.find_elements("css selector", selector)


def one(browser: Chrome, selector: str) -> WebElement:
    return browser.find_element("css selector", selector)


def tip(browser: Chrome) -> str | None:
    found = one(browser, "#tip")
    return found.text if found.is_displayed() else None


def point_at(browser: Chrome, element: WebElement, x: int = 0, y: int = 0) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)  # type: ignore[no-untyped-call]
    ActionChains(browser, duration=0).move_to_element_with_offset(element, x, y).perform()


def press(browser: Chrome, element: WebElement, *keys: str) -> None:
    browser.execute_script("arguments[0].focus()", element)  # type: ignore[no-untyped-call]
    element.send_keys(*keys)


def numbers(browser: Chrome, script: str) -> Any:
    return browser.execute_script(script)  # type: ignore[no-untyped-call]


def bars(browser: Chrome, selector: str) -> int:
    """How many values the series of a chart have."""
    script = (
        "return document.querySelector('{} .chart').plot.data.slice(1).flat().filter(value => value !== null).length"
    )
    found: int = numbers(browser, script.format(selector))
    return found


# ------------------------------------------------------------------------------------------------------- both pages


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["report", "explanation", "violations", "triggers", "dependencies"])
@pytest.mark.parametrize("width", [1280, 420])
def test_a_page_draws_complains_of_nothing_and_loads_nothing(
    browser: Chrome, request: pytest.FixtureRequest, name: str, width: int
) -> None:
    browser.set_window_size(width, 900)
    opened(browser, request.getfixturevalue(name))
    assert browser.get_log("browser") == []
    assert numbers(browser, "return performance.getEntriesByType('resource').length") == 0
    assert numbers(browser, "return document.documentElement.scrollWidth <= innerWidth")
    drawn = [element.size for element in all_of(browser, "main svg, main canvas")]
    assert len(drawn) >= {"report": 6, "explanation": 17, "triggers": 2}.get(name, 1)
    assert all(size["width"] > 20 and size["height"] > 4 for size in drawn)
    assert numbers(browser, f"return [...document.querySelectorAll('canvas')].every({PAINTED})")
    assert numbers(
        browser, "return [...document.querySelectorAll('path')].every(p => !/NaN|undefined/.test(p.getAttribute('d')))"
    )
    browser.set_window_size(1280, 900)


# ------------------------------------------------------------------------------------------------------ a live run


def test_the_page_of_a_live_run_shows_what_comes(
    browser: Chrome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("prometheus_client")
    (tmp_path / "p.mfotl").write_text("publish(x) AND x > 0")
    (tmp_path / "p.sig").write_text("publish(x: int)")
    monkeypatch.chdir(tmp_path)
    arguments = ["--input", "-", "--output", "-", "--http", "127.0.0.1:0"]
    with running(*POLICY, *arguments, stdin=subprocess.PIPE) as run:
        assert run.stdin is not None
        assert run.stderr is not None
        run.stdin.write(b"@1 publish(1)\n@2 publish(2)\n@3 publish(3)\n")
        run.stdin.flush()
        address = run.stderr.readline().decode().split()[-1]
        browser.get_log("browser")
        browser.get(address)
        until(lambda: one(browser, "#rows").text == "2")
        assert one(browser, "#state").text == "live"
        assert [each.text for each in all_of(browser, "#names td")] == ["p", "2"]
        assert any('"x": 2' in each.text for each in all_of(browser, "#last td"))
        run.stdin.write(b"@4 publish(4)\n")
        run.stdin.flush()
        until(lambda: one(browser, "#rows").text == "3")
        loaded = numbers(browser, "return performance.getEntriesByType('resource').map(each => each.name)")
        assert all(each.startswith(address) and not each.endswith((".js", ".css")) for each in loaded)
        assert [each for each in browser.get_log("browser") if "favicon" not in each["message"]] == []
        run.terminate()
        run.communicate(timeout=WAIT)
        until(lambda: one(browser, "#state").text == "the run does not answer")


# ------------------------------------------------------------------------------------------------------- the report


def test_evidence_opens_by_a_click(browser: Chrome, violations: Path, triggers: Path, tmp_path: Path) -> None:
    """Pages begin with the question, say what was strange, and open the evidence of rows."""
    events = [{"time": t, "type": "AAB"[t % 3], "g": "ns"[t % 2], "v": t, "late": None} for t in range(90)]
    text = """
        sums: RETURN g, SUM(B.v) AS s, COUNT(*) PATTERN SEQ(A, B) GROUP-BY g WITHIN 10 s;
        long: RETURN COUNT(A), COUNT(*) PATTERN A{1,3} SEMANTICS CONTIGUOUS GROUP-BY COUNT(A) WITHIN ALL;
        none: RETURN COUNT(*) PATTERN C WITHIN 10 s;
    """
    page = tmp_path / "findings.html"
    hamlet.run(hamlet.Workload.parse(text), events, report=page)
    for place, asked, inside in [
        (page, "sums In each 10 s, for each g: how many trends SEQ(A, B) are there", "begins"),
        (violations, "When, and of which values, is this broken?", "fails at time-point"),
        (triggers, "When does this hold?", "at event"),
    ]:
        opened(browser, place)
        assert asked in one(browser, "main").text
        first = one(browser, ".row-evidence")
        assert inside not in first.text
        one(browser, ".row-evidence > summary").click()
        assert inside in first.text
        assert "hamlet why" in first.text
        assert not browser.get_log("browser")
    opened(browser, page)
    strange = [each.text for each in all_of(browser, ".strange li")]
    assert [each for each in strange if "C never occurs" in each]
    assert [each for each in strange if "SUM(EVENTS B.v), each event once, is " in each]
    titles = [each.text for each in all_of(browser, ".counts h3")]
    assert titles == ["sums: rows over time", "sums: rows by group", "long: trends by length"]


def test_a_tool_tip_names_window_groups_and_values(browser: Chrome, report: Path) -> None:
    opened(browser, report)
    assert tip(browser) is None
    point_at(browser, one(browser, "[data-query=trends] .chart .u-over"))
    shown = tip(browser)
    assert shown is not None
    assert {"north", "south", "east"} <= set(shown.split("\n"))
    assert "·10" in shown  # counts of more digits than a double has
    point_at(browser, one(browser, "h1"))
    assert tip(browser) is None


def test_arrow_keys_walk_through_a_chart(browser: Chrome, report: Path) -> None:
    opened(browser, report)
    chart = one(browser, "[data-query=trends] .chart")
    press(browser, chart, "\ue010")  # End
    last = tip(browser)
    press(browser, chart, "\ue012")  # ArrowLeft
    before = tip(browser)
    assert last is not None
    assert before is not None
    assert (last.split("\n")[0], before.split("\n")[0]) == ("2 500 s – 3 000 s", "2 000 s – 2 500 s")
    assert one(browser, "#live").get_attribute("textContent")
    press(browser, chart, "\ue00c")  # Escape
    assert tip(browser) is None


def test_the_query_filter_hides_charts_and_decisions(browser: Chrome, report: Path) -> None:
    opened(browser, report)

    def cards() -> list[bool]:
        return [card.is_displayed() for card in all_of(browser, "#charts article")]

    chips = {chip.text: chip for chip in all_of(browser, "#queries button")}
    assert cards() == [True, True]
    assert "trends, others" in one(browser, "#sets").text
    chips["trends"].click()
    assert cards() == [False, True]
    assert chips["trends"].get_attribute("aria-pressed") == "false"
    one(browser, "#none").click()
    assert cards() == [False, False]
    assert "trends, others" not in one(browser, "#sets").text
    assert "nobody" in one(browser, "#sets").text
    one(browser, "#all").click()
    assert cards() == [True, True]


def test_groups_are_found_by_a_part_of_their_name(browser: Chrome, report: Path) -> None:
    opened(browser, report)

    def lines() -> int:
        drawn: int = numbers(browser, f"return {TRENDS}.series.length - 1")
        return drawn

    assert lines() == 3
    one(browser, "#search").send_keys("OUT")
    assert lines() == 1
    assert [button.text for button in all_of(browser, "[data-query=trends] .legend button")] == ["south"]
    one(browser, "#search").send_keys("zzz")
    assert "No group" in one(browser, "[data-query=trends] .chart").text


def test_the_axis_is_logarithmic_or_linear(browser: Chrome, report: Path) -> None:
    opened(browser, report)

    def scale() -> list[str]:
        ticks: list[str] = numbers(browser, f"return {TRENDS}.axes[1]._values")
        return ticks

    assert all(text.startswith("10") for text in scale())
    one(browser, "#linear").click()
    assert scale()[0] == "0"
    assert "·10" in scale()[-1]
    one(browser, "[data-query=trends] select").send_keys("avg_B_x")
    assert 2 < float(scale()[-1]) < 7
    assert numbers(browser, f"return {TRENDS}.scales.y.max") > 2


def test_bursts_are_shown_one_by_one(browser: Chrome, report: Path) -> None:
    opened(browser, report)
    strip = one(browser, "#bursts .chart")
    assert bars(browser, "#bursts") == 40
    assert "All 40 bursts" in one(browser, "#thinned").text
    press(browser, strip, "\ue010")  # End: the 40th burst stands alone
    shown = tip(browser)
    assert shown is not None
    assert {"alone", "g=x", "40, 7, 4", "44, 56"} <= set(shown.split("\n"))
    press(browser, strip, "\ue012")
    press(browser, strip, "\ue012")
    shown = tip(browser)
    assert shown is not None
    assert "shared by trends, others" in shown
    for button in all_of(browser, "#bursts .legend button"):
        if button.text == "alone":
            button.click()
    assert bars(browser, "#bursts") == 30
    assert [each.get_attribute("aria-pressed") for each in all_of(browser, "#timeline [data-kind]")][-1] == "false"
    before, most = bars(browser, "#timeline"), "return document.querySelector('#timeline .chart').plot.scales.y.max"
    height = numbers(browser, most)
    one(browser, "#measure").send_keys("events")
    assert 0 < before == bars(browser, "#timeline")
    assert numbers(browser, most) > 2 * height


def test_a_key_of_the_legend_puts_a_line_in_front(browser: Chrome, report: Path) -> None:
    opened(browser, report)
    key = next(button for button in all_of(browser, "[data-query=trends] .legend button") if button.text == "south")
    key.click()
    line = f"{TRENDS}.series.find(series => series.label === 'south')"
    assert numbers(browser, f"return {line}._focus") is True
    press(browser, one(browser, "[data-query=trends] .chart"), "\ue010")  # End
    assert one(browser, "#tip .on").text.startswith("south")
    assert key.get_attribute("aria-pressed") == "true"


def test_charts_follow_the_change_from_light_to_dark(browser: Chrome, report: Path) -> None:
    opened(browser, report)
    pixel = f"return {TRENDS}.axes[0].stroke({TRENDS}, 0)"
    drawn = "return document.querySelector('canvas').toDataURL()"
    seen = []
    for scheme in ("light", "dark"):
        features = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", features)
        deadline = time.monotonic() + 10  # the page hears of it with its next frame
        while seen and numbers(browser, drawn) == seen[0][1] and time.monotonic() < deadline:
            time.sleep(0.05)
        seen.append((numbers(browser, pixel), numbers(browser, drawn)))
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert seen[0][0] != seen[1][0]
    assert seen[0][1] != seen[1][1]


def test_a_run_without_an_event_has_a_page_too(browser: Chrome, tmp_path: Path) -> None:
    empty = {"time": np.zeros(0, np.int64), "type": np.zeros(0, "U1")}
    hamlet.run(hamlet.Workload.parse("RETURN COUNT(*) PATTERN A+ WITHIN 1 s"), empty, report=tmp_path / "r.html")
    opened(browser, tmp_path / "r.html")
    assert browser.get_log("browser") == []
    shown = one(browser, "main").text
    for text in ("No window of this query has a trend.", "The input has no event.", "There was nothing to decide"):
        assert text in shown


def test_long_names_leave_room_on_a_narrow_page(browser: Chrome, tmp_path: Path) -> None:
    name = "_".join(["long"] * 20)
    events = {"time": [1, 2], "type": ["A", "A"], "g": [f"</script> {'on and ' * 20}", "b"], "x": [1, 2]}
    workload = hamlet.Workload.parse(
        f"{name}: RETURN g, COUNT(*) AS n_{name}, SUM(A.x) PATTERN A GROUP-BY g WITHIN 9 s"
    )
    hamlet.run(workload, events, report=tmp_path / "r.html")
    browser.set_window_size(420, 900)
    opened(browser, tmp_path / "r.html")
    assert browser.get_log("browser") == []
    assert numbers(browser, "return document.documentElement.scrollWidth <= innerWidth")
    bars = [element.size["width"] for element in all_of(browser, ".bars i")]
    assert len(bars) > 2
    assert min(bars) > 60
    assert one(browser, ".grid h3").size["height"] < 100
    browser.set_window_size(1280, 900)


# --------------------------------------------------------------------------------------- policies and specifications


def test_bars_and_lines_say_what_they_are(browser: Chrome, violations: Path, triggers: Path) -> None:
    opened(browser, violations)
    assert one(browser, ".lead").text == "500 events checked against 2 policies: 1 violated, 400 violations in all."
    assert one(browser, "main table").text.splitlines()[1:] == ["limit 400 1000 4990", "never 0"]
    press(browser, one(browser, ".chart"), "\ue010")  # End
    shown = tip(browser)
    assert shown is not None
    assert shown.splitlines()[1] == "violations"
    opened(browser, triggers)
    assert one(browser, ".lead").text == "500 events, 1 trigger: 1 fired, 133 times in all."
    assert "trigger twice > 100 " in one(browser, "main table").text
    bars_of, lines = all_of(browser, ".chart")
    press(browser, lines, "\ue011")  # Home
    shown = tip(browser)
    assert shown is not None
    assert "twice" in shown
    press(browser, bars_of, "\ue011")
    assert tip(browser) != shown


def test_row_patterns_say_what_was_asked_and_why_a_row_is_there(browser: Chrome, matches: Path) -> None:
    opened(browser, matches)
    asked = "In t, for each s, in the order of ts: where do rows match a up+, where up is p > PREV(p)?"
    assert one(browser, ".question").text.startswith(asked)
    assert one(browser, ".lead").text == "400 rows read: 100 matches, 100 rows given."
    evidence = all_of(browser, ".row-evidence")
    assert len(evidence) == 3
    assert not one(browser, ".row-evidence pre.command").is_displayed()
    evidence[0].find_element("css selector", "summary").click()
    assert "PREV(p)=0, p=1" in evidence[0].text
    assert "hamlet why" in evidence[0].text
    press(browser, one(browser, ".chart"), "\ue011")  # Home
    shown = tip(browser)
    assert shown is not None
    assert "rows" in shown
    assert {"Rows by s", "Rows by n"} <= {each.text for each in all_of(browser, "h3")}


# -------------------------------------------------------------------------------------------------- the explanation


def test_picking_a_query_marks_it_in_the_merged_template(browser: Chrome, explanation: Path) -> None:
    opened(browser, explanation)
    assert all_of(browser, ".group .off") == []
    one(browser, "#queries [data-pick='1']").click()
    marked = {node.get_attribute("data-q") for node in all_of(browser, ".group .state.on")}
    assert marked
    assert all("1" in str(queries).split() for queries in marked)
    assert {node.get_attribute("data-place") for node in all_of(browser, ".query:not(.off)")} == {"1"}
    one(browser, "#queries [data-pick='1']").click()
    assert all_of(browser, ".off") == []


def test_states_say_what_they_are(browser: Chrome, explanation: Path) -> None:
    opened(browser, explanation)
    state = next(node for node in all_of(browser, ".group .state.final") if "speed" in node.text)
    point_at(browser, state)
    shown = tip(browser)
    assert shown is not None
    assert {"Travel where speed < 10", "q1: T", "q3: T"} <= set(shown.split("\n"))
    point_at(browser, one(browser, "h1"))
    assert tip(browser) is None


BOXES = """
const box = rect => ['x', 'y', 'width', 'height'].map(name => Number(rect.getAttribute(name)));
return [...document.querySelectorAll('svg.drawing')].map(svg => ({
  box: [svg.viewBox.baseVal.width, svg.viewBox.baseVal.height],
  states: [...svg.querySelectorAll('.body')].map(box),
  circles: svg.querySelectorAll('circle').length,
  arrows: svg.querySelectorAll('.way').length,
}));
"""


def test_no_state_of_a_graph_lies_on_another(browser: Chrome, explanation: Path) -> None:
    opened(browser, explanation)
    drawn = numbers(browser, BOXES)
    assert len(drawn) >= 17
    for each in drawn:
        assert each["circles"] == 1
        assert each["arrows"] >= len(each["states"]) > 0
        for x, y, wide, high in each["states"]:
            assert 0 <= x <= x + wide <= each["box"][0]
            assert 0 <= y <= y + high <= each["box"][1]
        for (x, y, wide, high), (x2, y2, wide2, _) in combinations(each["states"], 2):
            assert abs(y - y2) >= high or x + wide <= x2 or x2 + wide2 <= x


def test_a_sequence_runs_from_left_to_right_on_one_line(browser: Chrome, tmp_path: Path) -> None:
    query = "RETURN COUNT(*) PATTERN SEQ(A, B, C+) WITHIN 1 s"
    write_explanation(hamlet.Workload.parse(query), tmp_path / "w.html")
    opened(browser, tmp_path / "w.html")
    (graph,) = numbers(browser, BOXES)
    assert len({y for _, y, _, _ in graph["states"]}) == 1
    assert sorted(graph["states"]) == graph["states"]


def test_arrow_keys_go_from_state_to_state(browser: Chrome, explanation: Path) -> None:
    opened(browser, explanation)
    drawing = one(browser, "#query-0 .drawing")
    press(browser, drawing, "\ue014", "\ue014")  # ArrowRight, twice: past the start
    assert tip(browser) == "Request R"
    press(browser, drawing, "\ue010")  # End
    assert tip(browser) == "Travel T\na trend may end here"
    assert one(browser, "#live").get_attribute("textContent") == "Travel T, a trend may end here"
