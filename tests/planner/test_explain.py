"""What `hamlet explain` says: golden text, DOT that parses, JSON whose keys stay. `test_memory` has the bounds."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

from hamlet.cli import cli
from hamlet.errors import OptionError, WorkloadError
from hamlet.explanation.views import READS, duration_text
from hamlet.language.query import AttributeType
from hamlet.language.schema import Clock, Schema
from hamlet.planner.explain import RENDERINGS, explain
from hamlet.planner.workload import Workload
from tests.case_files import PENDING, cases

ROOT = Path(__file__).resolve().parents[2]
WORKLOADS = sorted((ROOT / "workloads").glob("*.sase"))

TRIPS = """
slow: RETURN district, COUNT(*) PATTERN SEQ(Request R, Travel T+, NOT Pickup P)
    WHERE [driver] AND T.speed < 10 GROUP-BY district WITHIN 30 min SLIDE 10 min;
faster: RETURN COUNT(*) PATTERN SEQ(Pickup, Travel T{2,}) WHERE T.speed < NEXT(T).speed WITHIN 90 s
"""

TRIPS_TEXT = """\
2 queries in 2 partitionings
no input given: attributes without a declared type are taken for numbers
partitioning 1
    queries     slow
    by          district, driver
    pane        10 min
partitioning 2
    queries     faster
    by          none: all events together
    pane        90 s

sharing: no group
    costs       as shipped; hamlet calibrate measures those of this machine
    not shared  faster and slow do not share Travel+: their partition attributes differ

slow (partitioning 1)
    pattern     SEQ(Request R, Travel T+, NOT Pickup P)
    returns     district, COUNT(*)
    variables   R: Request
                T: Travel WHERE T.speed < 10
                P: Pickup (stands in NOT)
    partition   district, driver; a row per window and district, summed over driver
    window      30 min, a new one every 10 min; up to 3 are open at a time
    template    start -> 1 R
                1 R   -> 2 T
                2 T   -> 2 T
                2 T   -> end  if no Pickup P after
    granularity state-grained: one addition per event and transition
    operator    simd: queries side by side, one element of a vector each
                not pane_matrix: exact numbers: panes are matrices beyond 64 bits only, under short bursts
    memory      independent of the event rate
                exact: at most N bytes per partition + (68 + 0.469 x bits) bytes per open window
                float: at most N bytes per partition + 56 bytes per open window
                exact, counts of 1,000 bits: at most N bytes per partition
    parallel    along time: tasks of Spark (--products) can take a time range each

faster (partitioning 2)
    pattern     SEQ(Pickup, Travel T{2,})
    returns     COUNT(*)
    variables   Pickup
                T: Travel
    partition   none: all events together, one row per window
    window      90 s, one after the other
    template    start    -> 1 Pickup
                1 Pickup -> 2 T
                2 T      -> 3 T       if T.speed < NEXT(T).speed; searches the events kept
                3 T      -> 3 T       if T.speed < NEXT(T).speed; searches the events kept
                3 T      -> end
    granularity indexed: searches among sorted events because of T.speed < NEXT(T).speed (index)
    operator    event_store: the query by itself; it looks back at events that are kept
                not simd: it compares an event with earlier ones, which have to be kept
    memory      linear in the window's matched events, because of T.speed < NEXT(T).speed
                exact: at most N bytes per partition + (368 + 2.813 x bits) bytes per open window
                    + 328 bytes per kept event + (320 + 2.5 x bits) bytes per kept event and open window
                float: at most N bytes per partition + 296 bytes per open window
                    + 328 bytes per kept event + 256 bytes per kept event and open window
                exact, counts of 1,000 bits: at most N bytes per partition + 3,148 bytes per kept event
    parallel    not along time: query faster has an adjacent predicate, which looks back at single events

words
"""

PAIRS = """
EVENT Closure(road STRING);
both: RETURN driver, COUNT(*) PATTERN SEQ(A, NOT (SEQ(C, D) OR E), B+) AND SEQ(A, NOT Closure, B*)
    WHERE C.v < NEXT(D).v GROUP-BY driver WITHIN 1 h;
none: RETURN COUNT(*) PATTERN A AND B WITHIN 5 s SLIDE 7 s;
odd: RETURN COUNT(*) PATTERN SEQ("an ""odd"" \\ type" y, NOT SEQ(C, D), B) WITHIN 0.25 ms
"""


def as_json(text: str, schema: Schema | None = None) -> Any:
    return json.loads(explain(Workload.parse(text), schema, "json"))


# ------------------------------------------------------------------------------------------------------------ text


def test_golden_text() -> None:
    text = explain(Workload.parse(TRIPS))
    head, _, words = text.partition("\nwords\n")
    head = re.sub(r"at most [\d,]+ bytes per partition", "at most N bytes per partition", head)  # `test_memory`
    assert head + "\nwords\n" == TRIPS_TEXT
    for word in ("partition", "pane", "template", "if no C", "state-grained", "indexed", "bits", "bytes"):
        assert f"    {word:<16}" in words


def test_words_are_explained_where_they_are_used() -> None:
    words = explain(Workload.parse("RETURN COUNT(*) PATTERN SEQ(A, B+) WITHIN 10 s")).partition("\nwords\n")[2]
    assert "state-grained" in words
    assert "event-grained" not in words
    assert "indexed" not in words
    assert "if no C" not in words


def test_pairs_guards_and_broadcast_in_words() -> None:
    text = explain(Workload.parse(PAIRS))
    assert "template of the left pattern" in text
    assert "no trend can be in both" in text
    assert "if no (SEQ(C, D) OR E) and no Closure between" in text
    assert "Closure (stands in NOT) (has no driver: agrees with every value)" in text
    assert "because of C.v < NEXT(D).v in NOT (SEQ(C, D) OR E)" in " ".join(text.split())
    assert "the 2 s between two windows belong to none" in text
    assert "if no SEQ(C, D) between; adds several sums" in text


def test_a_large_template_is_cut_in_text_and_whole_in_json() -> None:
    text = "RETURN COUNT(*) PATTERN A{100} WITHIN 1 h"
    assert "... and 61 more; --format json shows them all" in explain(Workload.parse(text))
    assert len(as_json(text)["queries"][0]["templates"][0]["transitions"]) == 100


def test_durations_in_words() -> None:
    assert duration_text(86_400, 1) == "1 d"
    assert duration_text(5_400_000, 1_000) == "90 min"
    assert duration_text(1, 1_000_000_000) == "1 ns"
    assert "    pane        all time\n" in Workload.parse("q: RETURN COUNT(*) PATTERN A WITHIN ALL").explain()


def test_the_rung_follows_predicate_and_types() -> None:
    def rung(predicate: str, schema: Schema | None = None) -> str:
        text = f"RETURN COUNT(*) PATTERN SEQ(A, B+) WHERE {predicate} WITHIN 10 s"
        return str(as_json(text, schema)["queries"][0]["rung"]["name"])

    words = Schema({"v": AttributeType.STRING}, Clock("time", "s", pa.int64()))
    assert rung("B.v > 3") == "state-grained"
    assert rung("B.v < NEXT(B).v") == "indexed"
    assert rung("B.v <> NEXT(B).v AND B.w = NEXT(B).w") == "indexed"
    assert rung("(B.v < NEXT(B).v OR B.w = 1)") == "event-grained"
    assert rung("A.v < NEXT(B).v AND B.v + NEXT(B).v > 3") == "event-grained"
    assert rung("B.v < NEXT(B).v", words) == "event-grained"


def test_maps_follow_windows_predicates_and_keys() -> None:
    """Panes are mapped where many windows overlap and queries lie side by side; stretches where nothing looks back."""

    def maps(*queries: str) -> list[tuple[bool, str | None]]:
        found = as_json("; ".join(f"RETURN COUNT(*) PATTERN {query}" for query in queries))
        return [(each["maps"]["panes"], each["maps"]["refused"]) for each in found["queries"]]

    sliding, tumbling = "WITHIN 10 min SLIDE 10 s", "WITHIN 10 min"
    assert maps(f"SEQ(A, B+) {sliding}", f"SEQ(C, B+) {sliding}") == [(True, None)] * 2
    assert maps(f"SEQ(A, B+) {tumbling}", f"SEQ(C, B+) {tumbling}") == [(False, None)] * 2
    long = "query q1 has a negated pattern that is longer than one event"
    assert maps(f"SEQ(A, NOT SEQ(C, D), B+) {sliding}", f"SEQ(A, B+) {sliding}")[0] == (False, long)
    pair = "query q2 has an adjacent predicate, which looks back at single events"
    assert maps(f"B+ {tumbling}", f"B+ WHERE B.v < NEXT(B).v {tumbling}") == [(False, pair)] * 2


def test_another_rendering_is_an_error() -> None:
    with pytest.raises(OptionError, match="'text', 'dot' or 'json'"):
        explain(Workload.parse(TRIPS), None, "svg")


# ------------------------------------------------------------------------------------------------------------ JSON

QUERY = "name pattern returns class variables partition groups window templates rung operator memory maps matching"
KEYS = {
    "": "version time_unit classes sharing constants queries",
    "sharing": "groups left_out same apart",
    "constants": "model origin file measured_at costs",
    "constants.costs.indexed": "reads coefficient application snapshot event burst spread join",
    "classes[]": "attributes queries pane together bursts",
    "classes[].bursts[]": "type queries",
    "classes[].pane": "text ticks",
    "queries[]": QUERY,
    "queries[].variables[]": "name type negated conditions broadcast",
    "queries[].partition": "grouping equivalence",
    "queries[].window": "within slide offset timezone open_at_once",
    "queries[].window.within": "text ticks",
    "queries[].window.slide": "text ticks",
    "queries[].templates[]": "part states transitions guards",
    "queries[].templates[].states[]": "id variable type start final end_guards kleene",
    "queries[].templates[].transitions[]": "source target variable guards predicate reads",
    "queries[].templates[].guards[]": "pattern template",
    "queries[].rung": "name because",
    "queries[].rung.because[]": "predicate inside reads",
    "queries[].operator": "exact float",
    "queries[].operator.exact": "operator instead reason beyond",
    "queries[].maps": "panes refused",
    "queries[].memory": "class because kept_types exact float grows lane",
    "queries[].memory.exact": "partition window event event_window thread",
    "queries[].memory.exact.window": "constant per_bit",
}


def keys_of(value: Any, path: str = "") -> dict[str, set[str]]:
    """The keys of every object, by its path."""
    found: dict[str, set[str]] = {}
    if isinstance(value, dict):
        found[path] = set(value)
        for key, inner in value.items():
            for place, keys in keys_of(inner, f"{path}.{key}".lstrip(".")).items():
                found.setdefault(place, set()).update(keys)
    elif isinstance(value, list):
        for inner in value:
            for place, keys in keys_of(inner, f"{path}[]").items():
                found.setdefault(place, set()).update(keys)
    return found


def test_json_keys_are_stable() -> None:
    found = keys_of(as_json(f"{PAIRS}; more: RETURN COUNT(*) PATTERN SEQ(A, B) WITHIN 1 s"))
    for path, keys in KEYS.items():
        assert found[path] == set(keys.split()), path
    assert as_json(PAIRS)["version"] == 1


def test_json_of_a_query() -> None:
    document = as_json(TRIPS)
    slow, faster = document["queries"]
    assert [each["queries"] for each in document["classes"]] == [["slow"], ["faster"]]
    assert slow["partition"] == {"grouping": ["district"], "equivalence": ["driver"]}
    assert slow["window"]["within"] == {"text": "30 min", "ticks": None}
    assert slow["rung"] == {"name": "state-grained", "because": []}
    (template,) = slow["templates"]
    assert template["states"][2]["end_guards"] == ["Pickup P"]
    assert [state["kleene"] for state in template["states"]] == [False, False, True]
    assert [state["final"] for state in template["states"]] == [False, False, True]
    assert faster["rung"] == {
        "name": "indexed",
        "because": [{"predicate": "T.speed < NEXT(T).speed", "inside": None, "reads": "search"}],
    }
    reads = [step["reads"] for step in faster["templates"][0]["transitions"]]
    assert sorted(reads) == ["search", "search", "start", "sum"]
    assert set(reads) <= set(READS)


def test_json_of_pairs_and_broadcast() -> None:
    both, none, odd = as_json(PAIRS)["queries"]
    assert [template["part"] for template in both["templates"]] == ["left", "right", "both"]
    assert both["memory"]["kept_types"] == ["Closure"]
    assert both["memory"]["class"] == "linear in the window's matched events"
    assert both["rung"]["because"] == [{"predicate": "C.v < NEXT(D).v", "inside": "SEQ(C, D) OR E", "reads": "scan"}]
    guards = both["templates"][2]["guards"]
    assert [guard["pattern"] for guard in guards] == ["SEQ(C, D) OR E", "Closure"]
    assert {step["reads"] for step in guards[0]["template"]["transitions"]} == {"start", "scan"}
    assert [state["start"] for state in none["templates"][2]["states"]] == [True]
    assert {step["reads"] for step in odd["templates"][0]["transitions"]} == {"start", "sums"}


def test_a_schema_gives_ticks_and_types() -> None:
    columns = {"speed": AttributeType.DOUBLE, "type": AttributeType.STRING, "time": AttributeType.INT}
    schema = Schema(columns, Clock("time", "s", pa.int64()))
    text = "RETURN SUM(A.speed) PATTERN A+ WITHIN 1 min"
    known, unknown = as_json(text, schema), as_json(text)
    assert (known["time_unit"], unknown["time_unit"]) == ("s", None)
    assert known["queries"][0]["window"]["within"] == {"text": "1 min", "ticks": 60}
    # without a type the bound has room for exact sums of integers
    narrow, wide = (each["queries"][0]["memory"]["exact"]["window"] for each in (known, unknown))
    assert narrow["per_bit"] < wide["per_bit"]
    with pytest.raises(WorkloadError, match="speedy"):
        as_json("RETURN SUM(A.speedy) PATTERN A+ WITHIN 1 min", schema)


# ------------------------------------------------------------------------------------------------------------- DOT

TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|->|[A-Za-z_0-9.]+|[{}\[\]=;,])')


def check_dot(text: str) -> tuple[int, int]:
    """Parse what of DOT is used here; the numbers of nodes and edges. Edges join nodes that have been declared."""
    tokens, at = [], 0
    while text[at:].strip():
        match = TOKEN.match(text, at)
        assert match, f"no token at {text[at : at + 40]!r}"
        tokens.append(match[1])
        at = match.end()
    assert tokens[:3] == ["digraph", "workload", "{"]
    depth, edges, place = 1, 0, 3
    nodes: set[str] = set()
    while depth:
        if tokens[place] == "}":
            depth, place = depth - 1, place + 1
        elif tokens[place] == "subgraph":
            assert tokens[place + 1].startswith("cluster_")
            assert tokens[place + 2] == "{"
            depth, place = depth + 1, place + 3
        else:
            end = tokens.index(";", place)
            statement, place = tokens[place:end], end + 1
            if statement[1] == "->":
                assert {statement[0], statement[2]} <= nodes
                assert statement[3] == "["
                edges += 1
            elif statement[1] == "[" and statement[0] not in ("node", "edge", "graph"):
                assert statement[0] not in nodes
                nodes.add(statement[0])
            if "[" in statement:
                assert statement[-1] == "]"
                statement = statement[statement.index("[") + 1 : -1]
            assert list(statement[1::4]) == ["="] * len(statement[1::4])
    assert place == len(tokens)
    return len(nodes), edges


@pytest.mark.parametrize("text", [TRIPS, PAIRS], ids=["trips", "pairs"])
def test_dot_is_valid(text: str) -> None:
    dot = explain(Workload.parse(text), None, "dot")
    document = as_json(text)
    templates = [each for query in document["queries"] for each in query["templates"]]
    templates += [guard["template"] for each in templates for guard in each["guards"]]
    templates += [group["template"] for group in document["sharing"]["groups"]]
    assert check_dot(dot) == (
        sum(len(each["states"]) for each in templates),
        sum(len(each["transitions"]) for each in templates),
    )
    assert "Pickup P after" in dot or "not (SEQ(C, D) OR E)" in dot
    if shutil.which("dot"):
        subprocess.run(["dot", "-Tcanon"], input=dot, text=True, capture_output=True, check=True)


# ------------------------------------------------------------------------------------------- every workload there is


def check_rendering(text: str, shown_as: str) -> None:
    """Words, or JSON or DOT that parses."""
    assert text.strip()
    if shown_as == "json":
        json.loads(text)
    if shown_as == "dot":
        check_dot(text)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("path", WORKLOADS, ids=[path.stem for path in WORKLOADS])
def test_every_workload_is_explained(path: Path) -> None:
    for shown_as in RENDERINGS:
        result = CliRunner().invoke(cli, ["explain", str(path), "--format", shown_as])
        assert result.exit_code == 0, result.output
        check_rendering(result.stdout, shown_as)


def test_every_golden_case_is_explained() -> None:
    for case in (each for each in cases() if each.feature not in PENDING):
        for shown_as in RENDERINGS:
            check_rendering(explain(Workload.parse(case.text, case.name), None, shown_as), shown_as)


def test_the_workload_explains_itself_and_a_notebook_shows_a_table() -> None:
    workload = Workload.parse(
        "one: RETURN COUNT(*) PATTERN SEQ(A, B+) WHERE B.v = '<x>' WITHIN 1 s;"
        "two: RETURN COUNT(*) PATTERN SEQ(C, B+) WITHIN 1 s"
    )
    said = workload.explain([{"time": 1, "type": "A", "v": "y"}])
    assert said.startswith("2 queries in 1 partitioning\npartitioning 1")
    html = said._repr_html_()  # type: ignore[attr-defined]
    assert "<td>one</td><td>SEQ(A, B+)</td><td>1 s, one after the other</td><td>two</td>" in html
    assert "&lt;x&gt;" in html
    assert "<x>" not in html
