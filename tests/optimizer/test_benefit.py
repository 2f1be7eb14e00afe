"""The benefit model: the paper's numbers out of the shipped formula, and what the constants of `measured` say."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimizer.benefit import MEASURED, PAPER, BurstStats, Costs, benefit, non_shared_cost, shared_cost, shares_from

# Two queries SEQ(A, B+) and SEQ(C, B+): each has two types, and their graphlets are of B.
OPENED = BurstStats(b=4, n=7, g=4, k=2, t=2, s_p=1, s_c=1)  # the first burst of b opens a shared graphlet
EXTENDED = BurstStats(b=4, n=11, g=8, k=2, t=2, s_p=2, s_c=1)  # the next one adds an event-level snapshot: split
MERGED = BurstStats(b=4, n=15, g=4, k=2, t=2, s_p=1, s_c=1)  # a later one opens a graphlet anew: merge


@pytest.mark.parametrize(
    ("burst", "shared", "unshared", "saved"),
    [(OPENED, 44, 56, 12), (EXTENDED, 120, 88, -32), (MERGED, 76, 120, 44)],
    ids=["Eq. 8", "Eq. 9", "Eq. 10"],
)
def test_the_numbers_of_the_paper(burst: BurstStats, shared: float, unshared: float, saved: float) -> None:
    assert shared_cost(burst) == shared
    assert non_shared_cost(burst) == unshared
    assert benefit(burst) == saved


counts = st.integers(0, 10**6)
bursts = st.builds(BurstStats, b=counts, n=counts, g=counts, k=counts, t=counts, s_p=counts, s_c=counts)


@given(bursts)
def test_paper_is_equation_7(burst: BurstStats) -> None:
    b, n, g, k, t, s_p, s_c = burst.b, burst.n, burst.g, burst.k, burst.t, burst.s_p, burst.s_c
    assert shared_cost(burst, PAPER) == pytest.approx(b * n * s_p + s_c * k * g * t)
    assert non_shared_cost(burst, PAPER) == pytest.approx(k * b * n)


@pytest.mark.parametrize("rung", MEASURED)
def test_measured_shares_long_bursts_of_many_queries_and_not_single_events_of_two(rung: str) -> None:
    many = BurstStats(b=64, n=640, g=64, k=50, t=1, s_p=1, s_c=1)
    assert benefit(many, MEASURED[rung]) > 0
    two = BurstStats(b=1, n=1, g=1, k=2, t=2, s_p=1, s_c=1)
    assert benefit(two, MEASURED[rung]) < 0


def test_measured_says_what_closed_forms_cost() -> None:
    """A burst of 64 and a value, 50 queries, as the engine was timed on one core: 3.84 us shared, 9.02 us alone."""
    burst = BurstStats(b=64, n=64, g=64, k=50, t=2, s_p=1, s_c=1)
    assert shared_cost(burst, MEASURED["burst-grained"]) == pytest.approx(3842)
    assert non_shared_cost(burst, MEASURED["burst-grained"]) == pytest.approx(9020)
    assert shares_from(replace(burst, k=2), MEASURED["burst-grained"]) == pytest.approx(5)
    assert shares_from(replace(burst, k=4), MEASURED["burst-grained"]) == 0


def test_only_some_rungs_read_the_window() -> None:
    short = BurstStats(b=8, n=100, g=8, k=4, t=1, s_p=1, s_c=1)
    long = replace(short, n=1_000_000)
    for rung, grows in (("state-grained", 1.0), ("burst-grained", 1.0), ("indexed", 2.993), ("event-grained", 1e4)):
        ratio = non_shared_cost(long, MEASURED[rung]) / non_shared_cost(short, MEASURED[rung])
        assert ratio == pytest.approx(grows, rel=1e-3)


def test_wide_numbers_make_all_dearer_but_the_coefficients() -> None:
    costs = Costs("one", coefficient=1, application=2, snapshot=3, event=4, burst=5)
    assert costs.widened(10) == Costs("one", coefficient=1, application=20, snapshot=30, event=40, burst=50)


@given(
    st.builds(
        BurstStats,
        b=st.integers(0, 99),
        n=st.integers(1, 99),
        g=st.integers(1, 99),
        k=st.integers(2, 99),
        t=st.integers(1, 5),
        s_p=st.integers(1, 9),
        s_c=st.integers(0, 9),
    ),
    st.sampled_from([PAPER, *MEASURED.values()]),
)
def test_one_length_says_which_bursts_gain(burst: BurstStats, costs: Costs) -> None:
    least = shares_from(burst, costs)
    if burst.b > least + 1e-6:
        assert benefit(burst, costs) > 0
    elif burst.b < least - 1e-6:
        assert benefit(burst, costs) <= 1e-6


@pytest.mark.parametrize("wrong", [{"reads": "some"}, {"event": -1.0}, {"snapshot": float("nan")}])
def test_impossible_prices_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"reads is one of|not negative"):
        replace(PAPER, **wrong)  # type: ignore[arg-type]
