"""`explain` and the report agree on what is shared: a run shares what explain says can be shared, and no more."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import hamlet
from hamlet.input.events import open_events
from hamlet.planner.explain import explain, view

# Queries of which every pair that can share a burst does so on the stream below; the pairs, by number.
WORKLOADS: dict[str, tuple[str, set[str]]] = {
    "Figure 3": ("SEQ(A, B+) WITHIN 20 s; SEQ(C, B+) WITHIN 10 s", {"12"}),
    "predicates that overlap": ("SEQ(A, B+) WHERE B.x > 3 WITHIN 20 s; SEQ(C, B+) WHERE B.x < 5 WITHIN 20 s", {"12"}),
    "no Kleene part": ("SEQ(A, B) WITHIN 20 s; SEQ(C, B) WITHIN 20 s", {"12"}),
    "another partition": ("SEQ(A, B+) WHERE [k] WITHIN 20 s; SEQ(C, B+) WITHIN 20 s", set()),
    "rolled up": ("SEQ(A, B+) WHERE [k] GROUP-BY k WITHIN 20 s; SEQ(C, B+) WHERE [k] WITHIN 20 s", {"12"}),
    "several states": ("SEQ(A, B{2,}) WITHIN 20 s; SEQ(C, B+) WITHIN 20 s", set()),
    "a comparison": ("SEQ(C, B+) WHERE B.x < NEXT(B).x WITHIN 20 s; SEQ(A, B+) WITHIN 20 s", set()),
    "a negated type": ("SEQ(A, NOT B, D) WITHIN 20 s; SEQ(C, B+) WITHIN 20 s; SEQ(D, B+) WITHIN 20 s", {"13", "23"}),
    "a cycle": ("(SEQ(A, B))+ WITHIN 20 s; SEQ(C, (SEQ(A, B))+) WITHIN 20 s", {"12"}),
    "windows that overlap": ("SEQ(A, B+) WITHIN 20 s SLIDE 7 s; SEQ(C, B+) WITHIN 30 s SLIDE 11 s", {"12"}),
    "the same query": ("SEQ(A, B+) WITHIN 20 s; SEQ(A, B+) WITHIN 20 s; SEQ(D, C) WITHIN 20 s", {"12"}),
    "three types": ("SEQ(A, B+) WITHIN 20 s; SEQ(A, D+) WITHIN 20 s; SEQ(C, D+) WITHIN 20 s", {"12", "23"}),
    "two partitions": (
        "SEQ(A, B+) WITHIN 20 s; SEQ(C, B+) WITHIN 20 s; "
        "SEQ(A, B+) WHERE [k] WITHIN 20 s; SEQ(C, B) WHERE [k] WITHIN 9 s",
        {"12", "34"},
    ),
    "skip till next match": ("skip-till-next-match SEQ(A, B+) WITHIN 20 s; SEQ(C, B+) WITHIN 20 s", set()),
    "sides of AND": ("SEQ(A, B+) AND SEQ(C, B+) WITHIN 20 s; SEQ(D, B+) WITHIN 20 s", {"12"}),
}


def workload_of(text: str) -> hamlet.Workload:
    queries = []
    for number, part in enumerate(text.split("; "), 1):
        pattern = part.removeprefix("skip-till-next-match ")
        semantics = "" if pattern == part else " SEMANTICS skip-till-next-match"
        head, within = pattern.split(" WITHIN ")
        queries.append(f"q{number}: RETURN COUNT(*) PATTERN {head}{semantics} WITHIN {within}")
    return hamlet.Workload.parse("; ".join(queries))


def stream() -> dict[str, Any]:
    """Bursts of one to eleven events, no two at one time."""
    generator = np.random.default_rng(5)
    types: list[str] = []
    while len(types) < 2_000:
        types += [str(generator.choice(list("ABCD")))] * int(generator.integers(1, 12))
    places = np.arange(2_000)
    keys, values = generator.integers(0, 2, 2_000), generator.integers(0, 9, 2_000)
    return {"time": places, "type": np.array(types[:2_000]), "k": keys, "x": values}


def pairs(sets: list[list[str]]) -> set[str]:
    return {f"{one[1:]}{other[1:]}" for names in sets for one, other in combinations(sorted(set(names)), 2)}


def explained(workload: hamlet.Workload) -> set[str]:
    shown = view(workload, open_events(stream()).schema)
    return pairs([shown.names(places) for places in shown.sharing_sets])


def shared(workload: hamlet.Workload, place: Path, **options: Any) -> set[str]:
    hamlet.run(workload, stream(), trace=place, **options)
    return pairs([names for names in pq.read_table(place).column("queries").to_pylist() if names])


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_run_shares_what_explain_says(name: str, tmp_path: Path) -> None:
    text, expected = WORKLOADS[name]
    workload = workload_of(text)
    assert explained(workload) == expected
    assert shared(workload, tmp_path / "static.parquet", sharing="static") == expected
    for options in ({}, {"benefit": "paper"}, {"numbers": "float"}):
        assert shared(workload, tmp_path / "other.parquet", **options) <= expected  # what pays, of what can be


def test_the_page_of_the_run_and_that_before_it_say_the_same(tmp_path: Path) -> None:
    """Without a Kleene sub-pattern in common, too: bursts of B are shared, and both pages say by whom."""
    workload = workload_of(WORKLOADS["no Kleene part"][0])
    hamlet.run(workload, stream(), report=tmp_path / "r.html", sharing="static")
    data = (tmp_path / "r.html").read_text().split('id="data">', 1)[1].split("</script>", 1)[0]
    assert ["q1", "q2"] in json.loads(data)["decisions"]["sets"]
    said = explain(workload)
    assert "can share   bursts of B: q1, q2" in said
    assert "sharing: no group" in said
    (partitioning,) = json.loads(explain(workload, None, "json"))["classes"]
    assert partitioning["bursts"] == [{"type": "B", "queries": ["q1", "q2"]}]


def test_a_group_names_those_that_share_no_burst() -> None:
    said = explain(workload_of(WORKLOADS["several states"][0]))
    assert "no burst is shared with q1, q2: there a B fits several states, or is compared with others" in " ".join(
        said.split()
    )
