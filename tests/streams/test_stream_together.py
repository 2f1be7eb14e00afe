"""Several specifications as one program: each gets the rows that it has alone, and equal streams are shared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from hamlet.errors import DataError
from hamlet.streams import Monitor, Specification, run
from hamlet.streams.check.analysis import Checked
from hamlet.streams.program.together import Together, can_run_together
from hamlet.streams.results import RowForm
from tests.stream_specifications import case
from tests.streams.stream_runs import _dicts
from tests.streams.test_stream_columns import Drawing, trace

AVERAGE = "input a: Float64\noutput mean @1Hz := a.aggregate(over: 5s, using: avg).defaults(to: 0.0)\n"


def parsed(texts: Sequence[str]) -> list[Specification]:
    return [Specification.parse(text) for text in texts]


def rows_together(specs: Sequence[Specification], events: Any) -> list[list[dict[str, Any]]]:
    """The rows of each specification, evaluated as one program."""
    common = Together([spec.program for spec in specs])
    monitor = Monitor(Specification(Checked(specs[0].checked.text, common.program, ())), values=True, time_unit="ns")
    found = [*monitor.push_batches(events), *monitor.close_batches()]
    return [
        RowForm(spec.program, True).dicts(
            [(time, numbers[row], key, value) for time, row, key, value in found if row in numbers],
            monitor.shown_clock,
            monitor.start_at or 0,
        )
        for spec, numbers in zip(specs, common.numbers, strict=True)
    ]


def compare(texts: Sequence[str], events: Any) -> None:
    """Fail unless every specification has the rows that it has alone, or one of them an error."""
    specs = parsed(texts)
    try:
        alone = [run(spec, events, values=True, time_unit="ns").rows() for spec in specs]
    except DataError:
        with pytest.raises(DataError):
            rows_together(specs, events)
        return
    for found, wanted in zip(rows_together(specs, events), alone, strict=True):
        assert sorted(map(repr, found)) == sorted(map(repr, wanted))
        assert [row["time"] for row in found] == [row["time"] for row in wanted]


@pytest.mark.parametrize("seed", range(12))
def test_two_different_specifications(seed: int) -> None:
    compare([Drawing(seed).text(), Drawing(seed + 100).text()], trace(seed))


@pytest.mark.parametrize("seed", range(25))
def test_a_specification_beside_itself_is_evaluated_once(seed: int) -> None:
    text, events = case(seed)
    compare([text, text], _dicts(events))
    common = Together([spec.program for spec in parsed([text, text])])
    assert common.shared == len(common.program.streams) - common.program.inputs


def test_equal_streams_are_shared_whatever_their_names() -> None:
    first = AVERAGE + 'trigger mean > 2.0 "high"'
    second = "input b: Int64\n" + AVERAGE.replace("mean", "m") + "output n @b := n.offset(by: -1).defaults(to: b) + 1"
    third = "input b: Int64\noutput k @b := k.offset(by: -1).defaults(to: b) + 1\noutput l @b := k * 2"
    common = Together([spec.program for spec in parsed([first, second, third])])
    assert [each.name for each in common.program.streams] == ["a", "b", "mean", "n", "l", "trigger 1"]
    assert common.shared == 2
    compare([first, second, third], [{"time": 0, "a": 3.0, "b": 1}, {"time": 3 * 10**9, "a": 1.0, "b": 2}])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "output n @a := n.offset(by: -1).defaults(to: 0.0) + 1.0",
            "output n @a := n.offset(by: -1).defaults(to: 1.0) + 1.0",
        ),
        ("output x @1Hz := a.hold(or: 0.0)", "output x @2Hz := a.hold(or: 0.0)"),
        ("output x := a + 0.0", "output x := a + -0.0"),
        ("output x @1Hz := a.aggregate(over: 2s, using: sum)", "output x @1Hz := a.aggregate(over: 3s, using: sum)"),
        ("output x := a  output y := x", "output x := a * 1.0  output y := x"),
    ],
)
def test_what_differs_is_not_shared(one: str, other: str) -> None:
    common = Together([spec.program for spec in parsed([f"input a: Float64\n{one}", f"input a: Float64\n{other}"])])
    assert common.shared == 0


def test_rows_keep_the_order_of_each_text() -> None:
    first = "input a: Int64\noutput x := a + 1\noutput y := a + 2"
    second = "input a: Int64\noutput y := a + 2\noutput x := a + 1"
    specs = parsed([first, second])
    events = [{"time": 0, "a": 1}, {"time": 0, "a": 2}]
    for found, spec in zip(rows_together(specs, events), specs, strict=True):
        assert found == run(spec, events, values=True, time_unit="ns").rows()


def test_periods_without_a_short_common_one_are_left_apart() -> None:
    texts = [
        f"input a: Int64\noutput n @{period} := a.aggregate(over: 1h, using: count)" for period in ("997s", "1009s")
    ]
    assert not can_run_together([spec.program for spec in parsed(texts)])
    assert can_run_together([spec.program for spec in parsed([texts[0], texts[0]])])
