"""What a specification keeps, by hand-computed bounds, and the graph in all its forms."""

from __future__ import annotations

import json
import re
from random import Random

import pytest

from hamlet.errors import MemoryLimitError, WorkloadError
from hamlet.streams.explain import explain
from hamlet.streams.memory import Kept, Memory, memory
from hamlet.streams.monitor import Monitor
from hamlet.streams.page import page
from hamlet.streams.specification import Specification

# Differences and their sum, three ways: event by event, at given rates, and over a window of a stream of unknown rate.
OFFSETS = """input a: Float64, b: Float64
output diff := a - b
output acc := acc[-1].defaults(to: 0.0) + diff[-2].defaults(to: 0.0)"""
RATES = """input a: Float64, b: Float64
output diff @10Hz := a.hold(or: 0.0) - b.hold(or: 0.0)
output acc @1Hz := diff.aggregate(over: 5s, using: sum)"""
UNKNOWN = """input a: Float64, b: Float64
output diff := a - b
output acc @1Hz := diff.aggregate(over: 5s, using: sum)"""


def of(text: str) -> Memory:
    return memory(Specification.parse(text).program)


def kept(text: str, stream: str = "a") -> Kept:
    return next(each.values for each in of(text).streams if each.stream.name == stream)


def window(text: str, stream: str = "a") -> Kept:
    (found,) = next(each.windows for each in of(text).streams if each.stream.name == stream)
    return found[1]


def test_three_variants_of_a_sum_of_differences() -> None:
    assert kept(OFFSETS, "diff").count == 2
    assert kept(OFFSETS, "acc").count == 1
    assert of(OFFSETS).total == 3 * 8
    assert window(RATES, "diff").count == 5  # min(10, 1) * 5: panes
    assert (window(RATES, "diff").what, window(RATES, "diff").bytes) == ("panes", 40)
    assert of(RATES).total == 40 + 2 * 8  # and what diff holds of its inputs
    assert window(UNKNOWN, "diff").count == 5  # one pane for each second, whatever comes
    assert of(UNKNOWN).total == 40


@pytest.mark.parametrize(
    ("window_text", "what", "count"),
    [
        ("@1Hz := a.aggregate(over: 10s, using: avg).defaults(to: 0.0)", "panes", 10),
        ("@10Hz := a.aggregate(over: 10s, using: min).defaults(to: 0.0)", "panes", 100),
        ("@3s := a.aggregate(over: 10s, using: integral)", "panes", 8),  # 4 periods of which 10 s cut one in two
        ("@1Hz := slow.aggregate(over: 10s, using: sum)", "values with times", 5),
        ("@1Hz := fast.aggregate(over: 10s, using: sum)", "panes", 10),
        ("@100Hz := fast.aggregate(over: 10s, using: sum)", "values with times", 200),
        ("@1Hz := fast.aggregate(over: 10s, using: median).defaults(to: 0.0)", "values with times", 200),
    ],
)
def test_windows(window_text: str, what: str, count: int) -> None:
    text = f"""input a: Float64
    output slow @0.5Hz := a.hold(or: 0.0) output fast @20Hz := a.hold(or: 0.0) output w {window_text}"""
    found = [each for stream in of(text).streams for _, each in stream.windows]
    assert [(each.what, each.count) for each in found] == [(what, count)]


def test_what_nothing_bounds_says_what_would() -> None:
    median = window("input a: Float64 output m @1Hz := a.aggregate(over: 10s, using: median).defaults(to: 0.0)")
    assert median.count is None
    assert median.bytes is None
    assert "median needs all values of 10s" in median.unbounded
    assert "over_discrete" in median.unbounded
    ago = kept("input a: Float64 output b := a + a.offset(by: -2s).defaults(to: 0.0)")
    assert ago.count is None
    assert "holds a instead" in ago.unbounded
    bounded = "input a: Float64 output b @4Hz := a.hold(or: 0.0) output c @1Hz := b.offset(by: -2s).defaults(to: 0.0)"
    assert kept(bounded, "b").count == 9  # of 2 s and the one that was valid when they began
    assert of(bounded).total == 8 + 9 * 16


def test_values() -> None:
    assert kept("input a: Int64 output b := a").count == 0
    assert kept("input a: Int64 output b @a := a.hold(or: 1)").count == 1
    assert kept("input a: Int64 output b := a[-3].defaults(to: 1) + a[-2].defaults(to: 1)").count == 3
    assert kept('input a: String output b := a[-3].defaults(to: "")').bytes == 48
    assert kept("input a: (Int64, (Bool, String)) output b := a[-1].0.defaults(to: 1)").bytes == 32
    assert window("input a: Int64 output b := a.aggregate(over_discrete: 7, using: median).defaults(to: 0)").count == 7


def test_instances() -> None:
    text = """input user: String, amount: Int64
    output total(u) spawn with user eval when user = u with total(u)[-1].defaults(to: 0) + amount
    output closed(u) spawn with user eval @user with 1 close when amount < 0"""
    found = of(text)
    total, closed = found.streams[2:]
    assert total.never_closed
    assert not closed.never_closed
    assert (total.spawned, closed.closed) == ("spawn with user", "close when amount < 0")
    assert total.bytes == 8
    assert found.total is None
    said = explain(Specification.parse(text))
    assert "ends      never: warning: every new instance stays" in said
    assert "no total: total keeps 8 B for each instance" in said
    windows = of("input u: String output w(p) spawn with u eval @1Hz with u.aggregate(over: 5s, using: count)")
    assert windows.total is None


@pytest.mark.parametrize(
    "text",
    [
        OFFSETS,
        RATES,
        UNKNOWN,
        "input a: Float64 output w @1Hz := a.aggregate(over: 10s, using: avg).defaults(to: 0.0)",
        "input a: Float64 output w @3s := a.aggregate(over: 10s, using: integral)",
        "input a: Float64 output w @2s := a.aggregate(over: 500ms, using: sum)",
        "input a: Float64 output b @20Hz := a.hold(or: 0.0) output w @1Hz := b.aggregate(over: 2s, using: median)"
        ".defaults(to: 0.0)",
        "input a: Float64 output b @4Hz := a.hold(or: 0.0) output c @1Hz := b.offset(by: -2s).defaults(to: 0.0)",
        "input a: Float64 output w := a.aggregate(over_discrete: 7, using: var).defaults(to: 0.0) "
        "+ a[-3].defaults(to: 0.0)",
    ],
)
def test_a_run_never_holds_more_than_was_said(text: str) -> None:
    specification = Specification.parse(text)
    total = memory(specification.program).total
    assert total is not None
    monitor = Monitor(specification, time_unit="ms")
    random, time, held = Random(1), 0, []
    for _ in range(600):
        time += random.choice([0, 1, 30, 250, 1000, 4000])
        event = {name: random.random() for name in "ab"[: 1 + ("b: Float64" in text)]}
        monitor.push({"time": time, **event})
        held.append(monitor.stats["bytes"])
    assert max(held) <= total
    assert max(held) > total / 3  # the bound is no guess


def test_the_graph_in_all_forms() -> None:
    specification = Specification.parse(
        """input a: Int64, go: Bool
        output b spawn when go eval @1Hz with a.aggregate(over_exactly: 5s, using: pctl90).defaults(to: 0)
        output c(p) spawn with a eval @a with a[-2].defaults(to: 0) + b.hold(or: 0) close when a = 3
        output d @a := c.aggregate(over_instances: all, using: sum) + (if go.is_fresh() then 1 else c(2).get(or: 0))
        trigger a.offset(by: -1500ms).defaults(to: 0) > a "<b>" """,
        "graph.lola",
    )
    facts = json.loads(explain(specification, "json"))
    edges = [(each["from"], each["to"], each["clause"], each["access"]) for each in facts["edges"]]
    assert edges == [
        ("b", "go", "spawn", "now"),
        ("b", "a", "eval", "pctl90 over exactly 5s"),
        ("c", "a", "spawn", "now"),
        ("c", "a", "eval", "-2"),
        ("c", "b", "eval", "hold"),
        ("c", "a", "close", "now"),
        ("d", "c", "eval", "sum over all instances"),
        ("d", "go", "eval", "is_fresh"),
        ("d", "c", "eval", "get"),
        ("trigger 1", "a", "eval", "-1500ms"),
        ("trigger 1", "a", "eval", "now"),
    ]
    assert facts["total_bytes"] is None
    by_name = {each["name"]: each for each in facts["streams"]}
    assert by_name["b"]["pacing"] == "@Local(1Hz)"
    assert by_name["a"]["windows"][0]["count"] is None
    drawn = explain(specification, "dot")
    assert drawn.startswith("digraph")
    assert '"c" -> "a" [label="close: now", style=dashed];' in drawn
    said = explain(specification)
    assert "output c(p: Int64): Int64  @a" in said
    assert "reads     go (now in spawn), a (pctl90 over exactly 5s)" in said
    html = page(specification)
    graph = json.loads(html.split('id="data">', 1)[1].split("</script>", 1)[0])["graphs"][0]
    assert [each["title"] for each in graph["states"]] == [each["name"] for each in facts["streams"]]
    drawn_edges = {
        (graph["states"][each["source"]]["title"], graph["states"][each["target"]]["title"]) for each in graph["arrows"]
    }
    assert drawn_edges == {(reader, target) for reader, target, _, _ in edges}
    assert not re.search(r"<b>(?!\d|no|[a-z]+(\(p: Int64\))?( 1)?</b>)", html)


def test_a_long_chain_is_listed_and_not_drawn() -> None:
    text = "input s0: Int64 " + " ".join(f"output s{number} := s{number - 1}" for number in range(1, 300))
    assert "too many to draw" in page(Specification.parse(text))
    assert explain(Specification.parse(text)).count("\noutput") == 299


def test_offsets_that_pass_the_limit_are_refused_before_any_event() -> None:
    spec = Specification.parse("input x: Int64\noutput y := x.offset(by: -2000000).defaults(to: 0)")
    with pytest.raises(MemoryLimitError, match=r"of x the last 2,000,001 values are kept, which take 15.3 MiB"):
        Monitor(spec, max_memory="8 MiB")
    with pytest.raises(WorkloadError, match=r"1:41: this offset goes too far back: 14.9 GiB would be kept for it"):
        Specification.parse("input x: Int64 output y := x.offset(by: -2000000000).defaults(to: 0)")
