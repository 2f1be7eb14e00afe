"""The HTML pages in headless Chromium: they draw, complain of nothing, load nothing, and answer pointer and keys."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import hamlet
from hamlet.engine.options import Options
from hamlet.input.events import open_events
from hamlet.pages.explained import write_explanation
from hamlet.pages.report import Report
from tests.traces import burst, table

if TYPE_CHECKING:
    from selenium.webdriver import Chrome
    from selenium.webdriver.remote.webelement import WebElement

ROOT = Path(__file__).parents[1]
WORKLOAD = """
trends: RETURN g, COUNT(*), AVG(B.x) PATTERN SEQ(A, B+) WHERE [g] GROUP-BY g WITHIN 500 s;
others: RETURN g, COUNT(*) PATTERN SEQ(C, B+) WHERE [g] GROUP-BY g WITHIN 100 s;
"""

pytestmark = pytest.mark.xdist_group("browser")


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


# ------------------------------------------------------------------------------------------------------- both pages


@pytest.mark.parametrize("name", ["report", "explanation"])
@pytest.mark.parametrize("width", [1280, 420])
def test_a_page_draws_complains_of_nothing_and_loads_nothing(
    browser: Chrome, request: pytest.FixtureRequest, name: str, width: int
) -> None:
    browser.set_window_size(width, 900)
    opened(browser, request.getfixturevalue(name))
    assert browser.get_log("browser") == []
    assert numbers(browser, "return performance.getEntriesByType('resource').length") == 0
    assert numbers(browser, "return document.documentElement.scrollWidth <= innerWidth")
    drawn = [element.size for element in all_of(browser, "main svg")]
    assert len(drawn) >= 6
    assert all(size["width"] > 20 and size["height"] > 4 for size in drawn)
    assert numbers(
        browser, "return [...document.querySelectorAll('path')].every(p => !/NaN|undefined/.test(p.getAttribute('d')))"
    )
    browser.set_window_size(1280, 900)


# ------------------------------------------------------------------------------------------------------- the report


def test_a_tool_tip_names_window_groups_and_values(browser: Chrome, report: Path) -> None:
    opened(browser, report)
    assert tip(browser) is None
    point_at(browser, one(browser, "[data-query=trends] .chart svg"))
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
        return len(all_of(browser, "[data-query=trends] [data-line]"))

    assert lines() == 3
    one(browser, "#search").send_keys("OUT")
    assert lines() == 1
    assert [button.text for button in all_of(browser, "[data-query=trends] .legend button")] == ["south"]
    one(browser, "#search").send_keys("zzz")
    assert "No group" in one(browser, "[data-query=trends] .chart").text


def test_the_axis_is_logarithmic_or_linear(browser: Chrome, report: Path) -> None:
    opened(browser, report)

    def scale() -> list[str]:
        return [text.text for text in all_of(browser, "[data-query=trends] .chart text[x='45']")]

    assert all(text.startswith("10") for text in scale())
    one(browser, "#linear").click()
    assert scale()[0] == "0"
    assert "·10" in scale()[-1]
    one(browser, "[data-query=trends] select").send_keys("avg_B_x")
    assert 2 < float(scale()[-1]) < 7


def test_bursts_are_shown_one_by_one(browser: Chrome, report: Path) -> None:
    opened(browser, report)
    strip = one(browser, "#bursts .chart")
    assert len(all_of(browser, "#bursts svg rect")) == 40
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
    assert len(all_of(browser, "#bursts svg rect")) == 30
    assert [each.get_attribute("aria-pressed") for each in all_of(browser, "#timeline [data-kind]")][-1] == "false"
    bars = all_of(browser, "#timeline rect")
    one(browser, "#measure").send_keys("events")
    assert 0 < len(bars) == len(all_of(browser, "#timeline rect"))


def test_a_run_without_an_event_has_a_page_too(browser: Chrome, tmp_path: Path) -> None:
    empty = {"time": np.zeros(0, np.int64), "type": np.zeros(0, "U1")}
    hamlet.run(hamlet.Workload.parse("RETURN COUNT(*) PATTERN A+ WITHIN 1 s"), empty, report=tmp_path / "r.html")
    opened(browser, tmp_path / "r.html")
    assert browser.get_log("browser") == []
    shown = one(browser, "main").text
    for text in ("No window of this query has a trend.", "The input has no event.", "There was nothing to decide"):
        assert text in shown


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


def test_arrow_keys_go_from_state_to_state(browser: Chrome, explanation: Path) -> None:
    opened(browser, explanation)
    drawing = one(browser, "#query-0 .drawing")
    press(browser, drawing, "\ue014", "\ue014")  # ArrowRight, twice: past the start
    assert tip(browser) == "Request R"
    press(browser, drawing, "\ue010")  # End
    assert tip(browser) == "Travel T\na trend may end here"
    assert one(browser, "#live").get_attribute("textContent") == "Travel T, a trend may end here"
