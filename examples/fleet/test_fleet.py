"""The queries on small streams, and the monitor around them."""

from __future__ import annotations

from pathlib import Path

import pytest
from fleet import WORKLOAD, Alarm, Monitor

from hamlet.testing import Case, assert_trends, cases

STREAM = """
time type    driver district speed
0    Request 1      Soho     -
10   Travel  1      Soho     5.0
20   Travel  1      Soho     7.0
30   Travel  1      Soho     20.0
40   Travel  1      Soho     6.0
"""


def test_three_slow_reports_have_four_trends() -> None:
    assert_trends(WORKLOAD, STREAM, "query district count mean_speed\ncrawl Soho 4 6.0")


def test_a_pickup_calls_it_off() -> None:
    assert_trends(WORKLOAD, STREAM + "50 Pickup 1 Soho -\n", "none")


@pytest.mark.parametrize("case", cases(Path(__file__).parent / "cases"), ids=str)
def test_case(case: Case) -> None:
    case.check()


def test_alarms_come_when_the_window_closes() -> None:
    monitor = Monitor(least=2)
    slow = [{"time": time, "type": "Travel", "driver": 1, "district": "Soho", "speed": 4.0} for time in (10, 20, 30)]
    assert monitor.events([{"time": 0, "type": "Request", "driver": 1, "district": "Soho"}, *slow]) == []
    assert monitor.events([{"time": 700, "type": "Pickup", "driver": 2, "district": "Soho"}]) == [Alarm("Soho", 4, 4.0)]
    assert monitor.end() == []
