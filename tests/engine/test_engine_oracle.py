"""Compares the engine with the golden cases and with the oracle, over random workloads, streams and batch splits."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hamlet
from tests.case_files import PENDING, Case, cases
from tests.compare_random import FEATURES, compare, push, run
from tests.comparison import difference
from tests.effort import share_of
from tests.strategies import CORE, DEFAULT, case_strategy, random_case

GOLDEN = [case for case in cases() if case.feature not in PENDING]

quick = settings(max_examples=120, suppress_health_check=list(HealthCheck))


def by_name(case: Case) -> str:
    return case.name


@pytest.mark.parametrize("case", GOLDEN, ids=by_name)
def test_golden_case_in_one_run(case: Case) -> None:
    assert difference(run((case.text, case.events, case.options), {}), case.expected) is None


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("case", GOLDEN, ids=by_name)
def test_golden_case_in_pieces(case: Case, seed: int) -> None:
    assert difference(push((case.text, case.events, case.options), {}, seed), case.expected) is None


@pytest.mark.parametrize("case", GOLDEN, ids=by_name)
def test_golden_case_as_a_table(case: Case) -> None:
    columns = list(dict.fromkeys(name for event in case.events for name in event))
    table = pa.table({name: [event.get(name) for event in case.events] for name in columns})
    rows = hamlet.run(hamlet.Workload.parse(case.text), table, **case.options).rows()
    assert difference(rows, case.expected) is None


@quick
@given(case=case_strategy(DEFAULT), seed=st.integers(0, 1000))
def test_oracle_random_workloads(case: tuple, seed: int) -> None:
    report = compare(case, {}, seed)
    assert report is None, report


@quick
@given(case=case_strategy(CORE), seed=st.integers(0, 1000))
def test_oracle_random_patterns(case: tuple, seed: int) -> None:
    report = compare(case, {}, seed)
    assert report is None, report


@pytest.mark.parametrize("features", ["default", "core", "sharing", "adjacent", "negation", "large"])
def test_oracle_seeded_workloads(features: str) -> None:
    for seed in range(share_of(150)):
        report = compare(random_case(seed, FEATURES[features]), {}, seed)
        assert report is None, f"seed {seed}: {report}"
