"""What has changed from one save to the next: found, applied, damaged; states of continuous jobs in parts."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hamlet
from hamlet.checkpoint._delta import applied, encoded
from hamlet.errors import RestoreError
from hamlet.policies import Monitor, Policy
from hamlet.spark.cell_states import MOST_CHANGES, Writing, whole, writing
from hamlet.streams import Monitor as Values
from hamlet.streams import Specification


def changed(old: bytes, lot: random.Random) -> bytes:
    """Bytes put in, left out, replaced, or moved."""
    new = bytearray(old)
    for _ in range(lot.randrange(6)):
        place, fresh = lot.randrange(len(new) + 1), lot.randbytes(lot.randrange(20))
        kind = lot.choice(["replaced", "inserted", "deleted", "moved"])
        if kind == "replaced":
            new[place : place + len(fresh)] = fresh
        elif kind == "inserted":
            new[place:place] = fresh
        elif kind == "deleted":
            del new[place : place + len(fresh)]
        else:
            new = new[place:] + new[:place]
    return bytes(new * lot.choice((1, 1, 1, 2)))


def test_changes_lead_from_old_to_new() -> None:
    lot, found = random.Random(5), 0
    for _ in range(1500):
        alphabet = lot.choice((2, 256))
        old = bytes(lot.randrange(alphabet) for _ in range(lot.randrange(1, 900)))
        new = changed(old, lot)
        change = encoded(old, new)
        if change is not None:
            found += 1
            assert applied(old, change) == new
            assert len(change) <= len(new) // 2 + 64
    assert found > 1000
    assert encoded(b"", b"abc") is None
    assert encoded(lot.randbytes(5000), lot.randbytes(5000)) is None


def test_changes_that_are_damaged_are_refused() -> None:
    lot = random.Random(6)
    old = lot.randbytes(400)
    change = encoded(old, old[:200] + b"fresh" + old[210:])
    assert change is not None
    for place in range(len(change)):
        with pytest.raises(ValueError, match="a change of a state"):
            applied(old, change[:place])
        for _ in range(4):  # other bytes come out, or it is refused; nothing beyond both is read
            damaged = bytearray(change)
            damaged[place] ^= lot.randrange(1, 256)
            try:
                applied(old, bytes(damaged))
            except (ValueError, MemoryError):
                continue
    with pytest.raises(ValueError, match="another one"):
        applied(old[:100], change)
    with pytest.raises(RestoreError, match="the checkpoint is damaged"):
        whole([old, change[:-1]])


def test_a_thousand_states_in_parts() -> None:
    lot, parts, before = random.Random(7), list[bytes](), None
    written = longest = 0
    state = bytearray(lot.randbytes(20_000))
    for _ in range(1000):
        for place in lot.sample(range(2_500), 25):  # one word of a hundred
            state[8 * place] ^= 1
        step = writing(parts, before, bytes(state))
        assert isinstance(step, Writing)
        for _ in step.dropped:
            parts.pop()
        parts[step.part : step.part + 1] = [step.data]
        before = whole(parts)
        assert before == state
        written += len(step.data)
        longest = max(longest, len(parts))
    assert longest == MOST_CHANGES + 1
    assert written < 1000 * len(state) * 0.06


def _query(keys: Any, turn: int) -> dict[str, Any]:
    return {
        "time": np.full(len(keys), turn),
        "type": np.array(["A", "B"])[(keys + turn) % 2],
        "k": keys,
        "v": keys % 97,
    }


def _policy(keys: Any, turn: int) -> dict[str, Any]:
    return {"time": np.full(len(keys), turn), "type": ["A"] * len(keys), "x": keys + turn * 10**6, "y": keys % 7}


def _specification(keys: Any, turn: int) -> dict[str, Any]:
    return {"time": 10 * turn + np.arange(len(keys)) // 10_000, "k": keys, "v": keys % 97}


@pytest.mark.parametrize("notation", ["query", "policy", "specification"])
def test_a_hundredth_of_a_state_is_written_as_a_hundredth(notation: str) -> None:
    made: dict[str, tuple[Any, Any]] = {
        "query": (
            hamlet.Engine(
                hamlet.Workload.parse("RETURN k, COUNT(*), SUM(B.v) PATTERN SEQ(A, B+) GROUP-BY k WITHIN 1000 s")
            ),
            _query,
        ),
        "policy": (
            Monitor(Policy.parse("B(x,y) AND NOT ONCE A(x,y)", "A(x: int, y: int) B(x: int, y: int)")),
            _policy,
        ),
        "specification": (
            Values(
                Specification.parse(
                    "input k: Int64  input v: Int64\noutput n(p: Int64) spawn with k eval when p = k with "
                    "n(p).offset(by: -1).defaults(to: 0) + v\ntrigger v > 1000"
                )
            ),
            _specification,
        ),
    }
    monitor, events = made[notation]
    keys, lot = np.arange(50_000), np.random.default_rng(1)
    shares = []
    before = b""
    for turn in range(4):
        some = keys if turn < 1 else lot.choice(keys, len(keys) // 100, replace=False)
        monitor.push(pa.table(events(some, turn)))
        save = monitor.save()
        change = encoded(before, save) if turn > 1 else None  # the first events are still held in the first save
        if change is not None:
            assert applied(before, change) == save
            shares.append(len(change) / len(save))
        before = save
    assert len(shares) == 2
    assert max(shares) < 0.02
