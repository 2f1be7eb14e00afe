"""Fuzzes the restore of saved engines: ``python fuzz/fuzz_restore.py -max_total_time=60``.

The input's first byte chooses between bytes taken as they are, a description and blobs behind a digest that is right,
and a save with a few mistakes (`tests.checkpoint.save_mutations`), also behind such a digest. What is restored
has to go on.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import driver

with driver.atheris.instrument_imports(include=["hamlet"]):
    import hamlet
    from hamlet.checkpoint import frame
    from tests.checkpoint.save_mutations import mutated, opened
    from tests.checkpoint.test_saving import RIDES, rides

WORKLOADS = [
    RIDES,
    "RETURN g, COUNT(*), SUM(B.w), AVG(B.v), MIN(B.t) PATTERN (SEQ(A+, NOT C, B+))+ GROUP-BY g WITHIN 20 s SLIDE 3 s",
    "RETURN k, LOG2(COUNT(*)), MAX(A.v) PATTERN SEQ(A, NOT SEQ(C, B), A+) WHERE [k] GROUP-BY k WITHIN 40 s;"
    "RETURN COUNT(*) PATTERN SEQ(A+, B) WHERE A.g < NEXT(A).g WITHIN 30 s SLIDE 10 s",
]
OPTIONS: list[dict[str, Any]] = [{}, {"numbers": "float"}, {"threads": 2, "lateness": "3 s", "sharing": "never"}]


class Bytes:
    """Decisions read from bytes, the lowest ones when they are used up."""

    def __init__(self, data: bytes) -> None:
        self.source = driver.atheris.FuzzedDataProvider(data)

    def below(self, end: int) -> int:
        """Any of ``0..end - 1``."""
        return int(self.source.ConsumeIntInRange(0, end - 1))


def saves() -> list[tuple[hamlet.Workload, bytes]]:
    """A save of every workload with every choice of options, half way through its events."""
    found = []
    for text in WORKLOADS:
        workload = hamlet.Workload.parse(text)
        for options in OPTIONS:
            engine = hamlet.Engine(workload, **options)
            engine.push(rides(1, 40))
            found.append((workload, engine.save()))
    return found


SAVES = saves()
EVENTS = rides(2, 90)[40:]


def check(data: bytes) -> None:
    """One input."""
    chance = Bytes(data[1:])
    workload, save = SAVES[chance.below(len(SAVES))]
    match data[:1]:
        case b"r":
            save = data[1:]
        case b"s":
            head, _, blobs = data[1:].partition(b"\n")
            save = frame.sealed(head, [blobs])
        case _:
            save = mutated(save, chance)
    try:
        engine = hamlet.Engine.restore(workload, save)
        engine.push(EVENTS)
        hamlet.Engine.restore(workload, engine.save()).close()
    except hamlet.HamletError:
        pass


def seeds() -> list[bytes]:
    """Saves as they are, saves taken apart, and bytes of every value."""
    found = [b"r" + save for _, save in SAVES[:2]]
    for _, save in SAVES:
        description, blobs = opened(save)
        found.append(b"s" + json.dumps(description, separators=(",", ":")).encode() + b"\n" + blobs)
    return [*found, b"", *(bytes([number]) + bytes(i * 37 % 256 for i in range(300)) for number in range(8))]


if __name__ == "__main__":
    driver.DEFAULTS["max_len"] = "16384"  # of a save and its description
    driver.run(Path(__file__).stem, check, seeds())
