"""Verdicts of propositional policies: time-points per second, and what is held at 100 and 100,000 events a time-stamp.

The formulas are those of `workloads/mtl_*.mfotl`, the logs random ones of 100 time-stamps, as in Basin, Bhatt, Traytel
(TACAS 2017), §6. Columns stand in memory; every contender reads them in pieces and takes all rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from bench import machine
from bench.answers import WrongAnswer
from bench.subject import Answer, Case, Contender
from hamlet.policies.analysis.propositions import Node, Skeleton, skeleton
from hamlet.policies.syntax.parser import parse_formula
from hamlet.policies.verdicts.automata import machine_of
from hamlet.policies.verdicts.modes import Mode

MODES: tuple[Mode, ...] = ("all", "local", "global")
NAMES = ("eventually", "until", "since_until", "response", "invariant")
STAMPS, PIECE, SHARE = 100, 65_536, 0.01
CHECKED = 400  # time-points that are compared with the definition


class VerdictRate:
    """One formula over a log of one event rate.

    Parameters
    ----------
    name : str
        Of the formula's file.
    rate : int
        Time-points of each time-stamp.
    """

    def __init__(self, name: str, rate: int) -> None:
        text = (machine.ROOT / "workloads" / f"mtl_{name}.mfotl").read_text(encoding="utf-8")
        self.skeleton = skeleton(parse_formula(text, name)[0])
        self.name, self.rate = name, rate
        random = np.random.default_rng(1)
        rows = STAMPS * rate
        self.times = np.repeat(np.arange(STAMPS), rate)
        self.atoms = np.zeros(rows, np.int32)
        for place in range(len(self.skeleton.atoms)):
            self.atoms |= (random.random(rows) < SHARE).astype(np.int32) << place

    def answer(self) -> Answer:
        """Compare the first time-points with the definition, whatever the mode."""
        step = max(1, len(self.times) // CHECKED)
        times = np.ascontiguousarray(self.times[::step][:CHECKED])
        atoms = np.ascontiguousarray(self.atoms[::step][:CHECKED])
        expected = by_definition(self.skeleton, times.tolist(), atoms.tolist())
        for mode in MODES:
            if verdicts(self.skeleton, mode, times, atoms) != expected:
                raise WrongAnswer(f"verdicts in mode {mode} differ from the definition")
        facts = {"formula": self.name, "events": len(self.times), "rate": self.rate, "atoms": len(self.skeleton.atoms)}
        return Answer([f"verdicts of {len(times)} time-points as defined, in {len(MODES)} modes"], facts)

    def contenders(self) -> Mapping[str, Contender]:
        """A stream in each mode."""
        return {
            mode: Contender(partial(self._run, mode), None, metrics=dict, question="rows are counted") for mode in MODES
        }

    def _run(self, mode: Mode) -> dict[str, float]:
        stream = machine_of(self.skeleton, mode).stream()
        held = rows = 0
        for begin in range(0, len(self.times), PIECE):
            stream.feed(self.times[begin : begin + PIECE], self.atoms[begin : begin + PIECE])
            rows += len(stream.take()[0])
            held = max(held, stream.nbytes)
        stream.finish()
        rows += len(stream.take()[0])
        if rows != len(self.times):
            raise WrongAnswer(f"{rows} rows for {len(self.times)} time-points")
        return {"held_bytes": held}


def verdicts(found: Skeleton, mode: Mode, times: npt.NDArray[np.int64], atoms: npt.NDArray[np.int32]) -> list[bool]:
    """The verdict of every time-point, those that are told to be the same looked up."""
    stream = machine_of(found, mode).stream()
    stream.feed(times, atoms)
    stream.finish()
    columns = [column.tolist() for column in stream.take() if column is not None]
    known: dict[tuple[int, int], Any] = {}
    for time, offset, verdict, *same in zip(*columns, strict=True):
        known[time, offset] = tuple(same) if verdict == 2 else bool(verdict)
    values = []
    for key in sorted(known):
        value = known[key]
        while isinstance(value, tuple):
            value = known[value]
        values.append(value)
    return values


def by_definition(found: Skeleton, times: list[int], atoms: list[int]) -> list[bool]:
    """The value of a formula at every time-point, from the semantics alone; at the end nothing more happens."""
    far = found.largest + 1
    stamps = [*times, *(times[-1] + far * step for step in range(1, 13))]
    truths = [*atoms, *([0] * 12)]
    values: list[list[bool]] = []
    for node in found.nodes:
        values.append([_value(node, values, stamps, truths, point) for point in range(len(stamps))])
    return values[-1][: len(times)]


def _value(node: Node, values: list[list[bool]], stamps: list[int], atoms: list[int], point: int) -> bool:
    def inside(delta: int) -> bool:
        return node.low <= delta and (node.high is None or delta <= node.high)

    match node.kind:
        case "atom":
            return bool(atoms[point] >> node.first & 1)
        case "true":
            return True
        case "not":
            return not values[node.first][point]
        case "and":
            return values[node.first][point] and values[node.second][point]
        case "or":
            return values[node.first][point] or values[node.second][point]
    step = -1 if node.kind == "since" else 1
    place = point
    while 0 <= place < len(stamps):
        if inside(abs(stamps[place] - stamps[point])) and values[node.second][place]:
            return True
        if not values[node.first][place]:
            return False
        place += step
    return False


def _points(rates: tuple[int, ...]) -> dict[str, Any]:
    return {f"{name}-{rate}": partial(VerdictRate, name, rate) for name in NAMES for rate in rates}


CASES = {
    "verdicts": Case(
        "verdicts of propositional policies at 100 to 100,000 time-points a time-stamp",
        _points((100, 1_000, 10_000, 100_000)),
        _points((100, 1_000)),
        seconds=(120, 20),
    )
}
