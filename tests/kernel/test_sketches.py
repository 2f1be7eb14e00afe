"""Approximate distinct counts beside the sketches of Apache DataSketches: the same registers, both ways as bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import hamlet
from hamlet.engine.executor import END_OF_TIME
from hamlet.engine.inside import executor_of
from hamlet.output.distinct import estimates
from hamlet.output.sketches import from_sketch, to_sketch

datasketches = pytest.importorskip("datasketches", reason="the package datasketches is not installed")
VALUES: dict[str, list[Any]] = {
    "int": list(range(-2_000, 3_000)),
    "double": [number / 8 + 0.01 for number in range(5_000)],
    "text": [f"wert {number} ä" for number in range(5_000)],
}


def registers_of(values: list[Any]) -> npt.NDArray[np.uint8]:
    """The registers of a run over events with these values."""
    engine = hamlet.Engine(hamlet.Workload.parse("RETURN APPROX_COUNT_DISTINCT(A.v) PATTERN A WITHIN 1 d"))
    engine.push([{"time": place, "type": "A", "v": value} for place, value in enumerate(values)])
    engine.advance(len(values))
    executor = executor_of(engine)
    executor.advance(END_OF_TIME)
    (closed,) = executor.drain_closed(0)
    (registers,) = [each for each in closed.components if isinstance(each, np.ndarray) and each.dtype == np.uint8]
    found: npt.NDArray[np.uint8] = registers[0]
    return found


def theirs(values: list[Any]) -> Any:
    """A sketch of these values."""
    sketch = datasketches.hll_sketch(12, datasketches.tgt_hll_type.HLL_8, True)
    for value in values:
        sketch.update(value)
    return sketch


@pytest.mark.parametrize("kind", VALUES)
def test_the_registers_are_theirs(kind: str) -> None:
    values = VALUES[kind]
    registers = registers_of(values)
    assert (from_sketch(theirs(values).serialize_compact()) == registers).all()
    read = datasketches.hll_sketch.deserialize(to_sketch(registers))
    assert abs(read.get_estimate() - estimates(registers[None])[0]) < 0.01 * len(values)
    assert read.get_lower_bound(3) < len(values) < read.get_upper_bound(3)


def test_both_sides_together() -> None:
    union = datasketches.hll_union(12)
    union.update(datasketches.hll_sketch.deserialize(to_sketch(registers_of(list(range(3_000))))))
    union.update(theirs(list(range(2_000, 6_000))))
    merged = from_sketch(union.get_result(datasketches.tgt_hll_type.HLL_8).serialize_updatable())
    assert (merged == registers_of(list(range(6_000)))).all()


def test_what_is_no_sketch() -> None:
    few = datasketches.hll_sketch(12, datasketches.tgt_hll_type.HLL_8)
    few.update(1)
    with pytest.raises(ValueError, match=r"no HyperLogLog sketch of Apache DataSketches that has registers|too few"):
        from_sketch(few.serialize_compact())
    other = datasketches.hll_sketch(11, datasketches.tgt_hll_type.HLL_4, True)
    with pytest.raises(ValueError, match=r"HLL_4 with 2.11"):
        from_sketch(other.serialize_compact())
    with pytest.raises(ValueError, match="too few"):
        from_sketch(b"")
