"""The choice of the queries that share a burst, against all plans of the search space."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import optimizer.benefit
import optimizer.choose
from optimizer.benefit import MEASURED, PAPER, BurstStats, Costs, non_shared_cost, shared_cost
from optimizer.choose import Candidate, choose
from optimizer.search_space import plans

MODELS = {"paper": PAPER, **MEASURED}


def burst_of(b: int, n: int, g: int, t: int, k: int = 0, s_p: int = 0, s_c: int = 0) -> BurstStats:
    return BurstStats(b=b, n=n, g=g, k=k, t=t, s_p=s_p, s_c=s_c)


def price(shared: tuple[int, ...], candidates: list[Candidate], burst: BurstStats, carried: int, costs: Costs) -> float:
    """The price of a plan; `shared` holds queries, numbered through all candidates."""
    owner = [place for place, each in enumerate(candidates) for _ in range(each.queries)]
    b, n, g, t = burst.b, burst.n, burst.g, burst.t
    alone = non_shared_cost(burst_of(b, n, g, t, k=len(owner) - len(shared)), costs)
    if not shared:
        return alone
    sigma = sum(candidates[place].sigma for place in {owner[query] for query in shared})
    s_p, s_c = (carried or 1) + sigma, sigma + (carried == 0)
    return shared_cost(burst_of(b, n, g, t, len(shared), s_p, s_c), costs) + alone


def test_the_twelve_plans_for_four_queries() -> None:
    """Figure 7: everything alone, six pairs, four triples, all four."""
    found = list(plans(["q1", "q2", "q3", "q4"]))
    assert [len(plan) for plan in found] == [0] + 6 * [2] + 4 * [3] + [4]
    assert ("q1", "q3", "q4") in found
    for queries in range(8):
        assert len(list(plans(range(queries)))) == 2**queries - queries


candidate = st.builds(Candidate, queries=st.integers(1, 4), sigma=st.integers(0, 6))
candidates = st.lists(candidate, max_size=6).filter(lambda found: sum(each.queries for each in found) <= 8)
singles = st.lists(st.builds(Candidate, queries=st.just(1), sigma=st.integers(0, 6)), max_size=8)
small = st.integers(1, 40)
bursts = st.builds(burst_of, b=small, n=small, g=small, t=st.integers(1, 4))
costs = st.sampled_from(sorted(MODELS)).map(MODELS.__getitem__) | st.builds(
    Costs,
    st.sampled_from(["one", "logarithm", "all"]),
    *[st.integers(0, 5).map(float) for _ in range(5)],
)


@given(candidates | singles, bursts, st.integers(0, 3), costs)
@example([Candidate(1, 0)] * 3, burst_of(2, 2, 2, 2), 0, PAPER)
@example([Candidate(1, 1), Candidate(2, 1), Candidate(3, 4)], burst_of(30, 30, 1, 1), 0, PAPER)
@example([Candidate(1, 0), Candidate(2, 9), Candidate(1, 3)], burst_of(8, 8, 8, 1), 1, Costs("one", 0, 0, 0, 1))
def test_the_choice_is_the_cheapest_of_all_plans(
    candidates: list[Candidate], burst: BurstStats, carried: int, costs: Costs
) -> None:
    found = choose(candidates, burst, carried, costs)
    queries = sum(each.queries for each in candidates)
    cheapest = min(price(plan, candidates, burst, carried, costs) for plan in plans(range(queries)))
    assert found.cost == pytest.approx(cheapest)
    assert found.unshared == price((), candidates, burst, carried, costs)
    owner = [place for place, each in enumerate(candidates) for _ in range(each.queries)]
    chosen = tuple(query for query, place in enumerate(owner) if found.shared[place])
    assert len(chosen) == found.queries != 1
    assert price(chosen, candidates, burst, carried, costs) == pytest.approx(found.cost)
    if chosen:
        sigma = sum(each.sigma for each, shared in zip(candidates, found.shared, strict=True) if shared)
        assert (found.s_p, found.s_c) == ((carried or 1) + sigma, sigma + (carried == 0))
        assert found.cost < found.unshared


def test_the_decisions_of_the_paper() -> None:
    """Section 4.2: share when a burst opens a graphlet (Eq. 8), split (Eq. 9), merge again (Eq. 10)."""
    agree, differ = [Candidate(2, 0)], [Candidate(1, 0), Candidate(1, 1)]
    opened = choose(agree, burst_of(4, 7, 4, 2))
    assert (opened.shared, opened.cost, opened.unshared) == ((True,), 44, 56)
    split = choose(differ, burst_of(4, 11, 8, 2), carried=1)
    assert (split.shared, split.cost, split.unshared) == ((False, False), 88, 88)
    merged = choose(agree, burst_of(4, 15, 4, 2))
    assert (merged.shared, merged.cost, merged.unshared) == ((True,), 76, 120)


def test_queries_without_snapshots_need_not_share() -> None:
    """Theorems 4.3 and 4.5 say that queries which add no snapshot always share; Eq. 7 prices the graphlet's own.

    Here three of them cost 16 shared and 12 on their own, so the theorems fail as printed.
    """
    burst = burst_of(2, 2, 2, 2)
    assert shared_cost(burst_of(2, 2, 2, 2, k=3, s_p=1, s_c=1)) == 16
    found = choose([Candidate(3, 0)], burst)
    assert (found.queries, found.cost, found.unshared) == (0, 12, 12)


def test_a_large_candidate_with_snapshots_beats_small_ones() -> None:
    """No prefix in the order of sigma is the best plan here, which is what the knapsack is for."""
    candidates = [Candidate(1, 0), Candidate(1, 1), Candidate(1, 1), Candidate(20, 3)]
    found = choose(candidates, burst_of(100, 100, 1, 1), carried=1)
    assert found.shared == (True, False, False, True)


def test_sharing_never_pays_with_as_many_snapshots_as_queries() -> None:
    found = choose([Candidate(1, 1)] * 10, burst_of(1000, 1000, 1, 1))
    assert found.queries == 0


def test_a_thousand_queries() -> None:
    mixed = [Candidate(1 + place % 3, place % 7) for place in range(1000)]
    found = choose(mixed, burst_of(1000, 1000, 10, 1))
    assert found.queries >= sum(each.queries for each in mixed if each.sigma == 0)
    assert found.cost < found.unshared


def test_compiled_callers_find_the_same_functions() -> None:
    """What a kernel cimports: no second copy of a formula."""
    assert {"price_shared", "price_unshared"} <= set(optimizer.benefit.__pyx_capi__)  # type: ignore[attr-defined]
    assert "choose_shared" in optimizer.choose.__pyx_capi__  # type: ignore[attr-defined]


def test_nobody_shares_with_nobody() -> None:
    for few in ([], [Candidate(1, 0)]):
        found = choose(few, burst_of(5, 5, 5, 1), costs=Costs("one", 0, 0, 0, 1))
        assert (found.queries, found.s_p, found.s_c) == (0, 0, 0)
        assert found.shared == (False,) * len(few)


@pytest.mark.parametrize("wrong", [Candidate(0, 1), Candidate(1, -1)])
def test_impossible_candidates_are_refused(wrong: Candidate) -> None:
    with pytest.raises(ValueError, match="at least one query"):
        choose([wrong], burst_of(1, 1, 1, 1))
