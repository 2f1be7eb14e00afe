"""Verdicts of propositional policies: against the definition, in every mode, and what they hold."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hamlet import policies
from hamlet.cli import main
from hamlet.errors import UnsupportedError
from hamlet.policies import Monitor, Policy
from hamlet.policies.analysis.propositions import Node, Skeleton, skeleton
from hamlet.policies.logs.reader import LogFile
from hamlet.policies.syntax.parser import parse_formula
from hamlet.policies.syntax.signature import Signature
from hamlet.policies.verdicts._anchored import AnchoredFormula, AnchoredStream, fits
from hamlet.policies.verdicts._automaton import Automaton, Stream
from hamlet.policies.verdicts.automata import AnyStream, Verdicts
from hamlet.policies.verdicts.progression import Progression

MODES = ("all", "local", "global")
TAIL = 12  # time-points without events, far apart, that stand for the end of the input


def by_definition(nodes: tuple[Node, ...], times: list[int], atoms: list[int]) -> list[bool]:
    """The value of the last node at every time-point, by the semantics word by word."""
    far = max([bound for node in nodes for bound in (node.low, node.high) if bound is not None], default=0) + 1
    stamps = times + [times[-1] + far * step for step in range(1, TAIL + 1)]
    truths = atoms + [0] * TAIL
    values: list[list[bool]] = []
    for node in nodes:
        values.append([value_at(node, values, stamps, truths, point) for point in range(len(stamps))])
    return values[-1][: len(times)]


def value_at(node: Node, values: list[list[bool]], stamps: list[int], atoms: list[int], point: int) -> bool:
    def inside(one: int, other: int) -> bool:
        return node.low <= stamps[other] - stamps[one] and (
            node.high is None or stamps[other] - stamps[one] <= node.high
        )

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
        case "prev":
            return point > 0 and inside(point - 1, point) and values[node.first][point - 1]
        case "next":
            return point + 1 < len(stamps) and inside(point, point + 1) and values[node.first][point + 1]
        case "since":
            return any(
                inside(other, point) and values[node.second][other] and all(values[node.first][other + 1 : point + 1])
                for other in range(point + 1)
            )
    return any(
        inside(point, other) and values[node.second][other] and all(values[node.first][point:other])
        for other in range(point, len(stamps))
    )


def a_formula(chance: random.Random, depth: int) -> str:
    if depth == 0 or chance.random() < 0.15:
        return chance.choice(["p()", "q()", "r()", "TRUE", "FALSE"])
    low = chance.choice([0, 0, 0, 1, 2])
    past = f"[{low},{chance.choice(['*)', f'{low}]', f'{low + 3}]'])}"
    future = f"[{low},{low + chance.choice([0, 1, 3, 5])}]"
    one, other = a_formula(chance, depth - 1), a_formula(chance, depth - 1)
    return chance.choice(
        [
            f"(NOT {one})",
            f"({one} AND {other})",
            f"({one} OR {other})",
            f"({one} IMPLIES {other})",
            f"({one} EQUIV {other})",
            f"(PREV{past} {one})",
            f"(NEXT{past} {one})",
            f"({one} SINCE{past} {other})",
            f"({one} UNTIL{future} {other})",
            f"(ONCE{past} {one})",
            f"(EVENTUALLY{future} {one})",
            f"(HISTORICALLY{past} {one})",
            f"(ALWAYS{future} {one})",
        ]
    )


def skeleton_of(text: str) -> Skeleton:
    return skeleton(parse_formula(text, "<test>")[0])


@pytest.mark.parametrize("seed", range(60))
def test_random_formulas_come_out_as_defined(seed: int) -> None:
    chance = random.Random(seed)
    found = skeleton_of(a_formula(chance, chance.choice([1, 2, 3, 4])))
    gaps = chance.choice([[0, 0, 1, 1, 2, 3, 7], range(12), [0, 5, 1 << 40]])
    times = np.cumsum([chance.choice(gaps) for _ in range(chance.randrange(1, 25))]).tolist()
    atoms = [chance.randrange(1 << len(found.atoms)) for _ in times]
    offsets = [point - times.index(time) for point, time in enumerate(times)]
    places = {pair: point for point, pair in enumerate(zip(times, offsets, strict=True))}
    expected = by_definition(found.nodes, times, atoms)
    for mode, anchored in [(mode, anchored) for mode in MODES for anchored in (False, True)]:
        if anchored and not fits(found.nodes):
            continue
        rows = run(found, mode, times, atoms, chance, anchored)
        got: dict[int, bool] = {}
        for time, offset, verdict, *_ in rows:
            if verdict != 2:
                got[places[time, offset]] = bool(verdict)
        for time, offset, verdict, same_time, same_offset in sorted(rows):
            if verdict == 2:
                assert (same_time, same_offset) < (time, offset)
                assert mode == "global" or same_time == time
                got[places[time, offset]] = got[places[same_time, same_offset]]
        assert len(rows) == len(times)
        assert [got[point] for point in range(len(times))] == expected
        if mode == "all":
            assert [places[row[0], row[1]] for row in rows] == list(range(len(times)))


def new_stream(found: Skeleton, mode: Any, anchored: bool) -> AnyStream:
    if anchored:
        return AnchoredFormula(found.nodes, mode).stream()
    return Automaton(Progression(found, mode), len(found.atoms)).stream()


def run(
    found: Skeleton, mode: Any, times: list[int], atoms: list[int], chance: random.Random, anchored: bool
) -> list[list[int]]:
    """The rows of a stream that is read in random pieces, and copied or saved now and then."""
    stream = new_stream(found, mode, anchored)
    rows: list[list[int]] = []

    def take() -> None:
        columns = [column for column in stream.take() if column is not None]
        taken = [list(map(int, row)) for row in zip(*columns, strict=True)]
        rows.extend(row + [-1] * (5 - len(row)) for row in taken)

    place = 0
    while place < len(times):
        step = chance.randrange(1, 8)
        stream.feed(np.array(times[place : place + step]), np.array(atoms[place : place + step], np.int32))
        place += step
        take()
        if chance.random() < 0.2:
            stream = stream.copy()
        if isinstance(stream, AnchoredStream) and chance.random() < 0.2:
            numbers, pasts, entries = stream.saved()
            stream = AnchoredFormula(found.nodes, mode).stream()
            stream.load(numbers, pasts, entries)
    stream.finish()
    take()
    return rows


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("text", ["EVENTUALLY[0,{}] p()", "p() IMPLIES (ONCE[0,{}] q()) OR (EVENTUALLY[0,{}] r())"])
def test_verdicts_take_flat_memory_however_irregular_the_gaps(text: str, mode: Any) -> None:
    chance = np.random.default_rng(3)
    times = np.cumsum(chance.choice([0, 1, 2, 3, 5, 7, 11, 13, 50, 90], 200_000))
    atoms = (chance.random(len(times)) < 0.02).astype(np.int32) * chance.integers(1, 8, len(times)).astype(np.int32)
    for bound in (10, 1000):
        stream = new_stream(skeleton_of(text.replace("{}", str(bound))), mode, True)
        most = []
        for part in range(0, len(times), 1000):
            stream.feed(times[part : part + 1000], atoms[part : part + 1000])
            stream.take()
            most.append(stream.nbytes)
        assert max(most) < 10_000


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("mode", MODES)
def test_each_time_point_is_told_once_while_entries_move(mode: Any, seed: int) -> None:
    chance = np.random.default_rng(seed)
    times = np.cumsum(chance.choice([0, 1, 1, 1, 2, 5, 17, 101, 900, 1500], 60_000))
    atoms = (chance.random(len(times)) < 0.005).astype(np.int32)
    stream = new_stream(skeleton_of("EVENTUALLY[0,20000] p()"), mode, True)
    known: dict[tuple[int, int], Any] = {}
    for begin in range(0, len(times) + 1000, 1000):
        if begin < len(times):
            stream.feed(times[begin : begin + 1000], atoms[begin : begin + 1000])
        else:
            stream.finish()
        for time, offset, verdict, *same in zip(
            *(column.tolist() for column in stream.take() if column is not None), strict=True
        ):
            assert (time, offset) not in known
            known[time, offset] = tuple(same) if verdict == 2 else bool(verdict)
    holds = np.append(times[atoms == 1], 1 << 40)
    places = np.searchsorted(np.flatnonzero(atoms), np.arange(len(times)))
    expected = (holds[places] - times <= 20_000).tolist()
    found = []
    for key in sorted(known):
        value = known[key]
        while isinstance(value, tuple):
            value = known[value]
        found.append(value)
    assert found == expected


@pytest.mark.parametrize("sizes", [(1,), (63, 64, 65, 66), (100_000,)])
@pytest.mark.parametrize("mode", MODES)
def test_pushes_of_any_size_give_the_same_verdicts(mode: Any, sizes: tuple[int, ...]) -> None:
    found = skeleton_of("(p() SINCE[2,30] q()) IMPLIES (EVENTUALLY[1,300] r()) OR (NOT p() UNTIL[0,20] q())")
    chance = np.random.default_rng(4)
    count = 100_000 if len(sizes) == 1 and sizes[0] > 1 else 3000
    times = np.cumsum(chance.choice([0, 0, 1, 2, 9, 40], count))
    atoms = chance.integers(0, 8, count).astype(np.int32)
    atoms[chance.random(count) < 0.7] = 0
    results = []
    for pieces in (sizes, (1000,)):
        stream, at = new_stream(found, mode, True), 0
        rows: list[Any] = []
        while at < count:
            size = pieces[at % len(pieces)]
            stream.feed(times[at : at + size], atoms[at : at + size])
            rows += zip(*(column.tolist() for column in stream.take() if column is not None), strict=True)
            at += size
        stream.finish()
        rows += zip(*(column.tolist() for column in stream.take() if column is not None), strict=True)
        results.append(rows)
    assert len(results[0]) == count
    assert results[0] == results[1]


def test_states_of_an_automaton_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = Policy.parse("EVENTUALLY[0,60] (p() AND NEXT[0,9] q())", "p() q()")
    chance = random.Random(5)
    events: list[dict[str, Any]] = []
    time = 0
    for _ in range(2000):
        time += chance.choice([0, 1, 2, 5, 11])
        events.append({"time": time, "type": chance.choice("pqn")})
    rows, machines = [], set()
    for most in (100_000, 1 << 40):
        monkeypatch.setattr("hamlet.policies.verdicts.automata._MOST_STATES", most)
        monitor = Monitor(policy, verdicts="all")
        found = []
        for part in range(0, len(events), 50):
            found += monitor.push(events[part : part + 50])
            machines.add(id(monitor._runner.verdicts[0].machine))  # type: ignore[union-attr]
            assert most > 100_000 or monitor.stats["kept_bytes"] < 2_000_000
        rows.append(found + monitor.close())
    assert rows[0] == rows[1]
    assert len(machines) > 3


@pytest.mark.parametrize("mode", ["local", "global"])
@pytest.mark.parametrize("name", ["eventually", "until", "since_until", "response", "invariant"])
def test_what_is_held_does_not_depend_on_the_event_rate(name: str, mode: Any) -> None:
    text = (Path(__file__).resolve().parents[2] / "workloads" / f"mtl_{name}.mfotl").read_text()
    found = skeleton_of(text)
    held = []
    for rate in (100, 10_000):
        chance = np.random.default_rng(1)
        stream = Stream(Automaton(Progression(found, mode), len(found.atoms)))
        most = 0
        for stamp in range(30):
            atoms = np.zeros(rate, np.int32)
            atoms[chance.integers(0, rate, 3)] = chance.integers(0, 1 << len(found.atoms), 3)
            for begin in range(0, rate, 50):
                stream.feed(np.full(min(50, rate - begin), stamp), atoms[begin : begin + 50])
                stream.take()
                most = max(most, stream.nbytes)
        held.append(most)
    assert held[1] <= held[0] * 1.05


def test_negate_turns_the_verdicts_of_a_formula_and_not_of_a_rule() -> None:
    events = [{"time": time, "type": kind, "a": 1} for time, kind in ((1, "p"), (2, "other"), (3, "p"))]
    for text, turned in (("p(1)", True), ("ALWAYS p(1)", False), ("ALWAYS FORALL x. p(x) IMPLIES PREV p(x)", False)):
        policy = Policy.parse(text, "p(a: int)")
        plain, other = (policies.run(policy, events, verdicts="all", negate=negate).rows() for negate in (False, True))
        assert other == [row | {"verdict": row["verdict"] != turned} for row in plain]


def test_verdicts_that_need_no_future_are_given_at_once() -> None:
    found = skeleton_of("EVENTUALLY[0,5] p()")
    stream = Stream(Automaton(Progression(found, "local"), 1))
    stream.feed(np.array([3, 3]), np.array([0, 1], np.int32))
    times, offsets, verdicts, *_ = stream.take()
    assert (times.tolist(), offsets.tolist(), verdicts.tolist()) == ([3, 3], [0, 1], [1, 1])


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("first", "more"), [(65, 65), (100, 100), (300, 100), (100, 3800)])
@pytest.mark.parametrize("mode", MODES)
def test_rows_of_earlier_time_points_make_their_own_room(first: int, more: int, mode: Any) -> None:
    found = skeleton_of("EVENTUALLY[0,1000] p()")
    stream = Stream(Automaton(Progression(found, mode), 1))
    rows: list[Any] = []
    for begin, end in ((0, first), (first, first + more)):
        atoms = np.zeros(end - begin, np.int32)
        atoms[0] = begin > 0
        stream.feed(np.arange(begin, end), atoms)
        rows += np.asarray(stream.take()[2]).tolist()
    stream.finish()
    rows += np.asarray(stream.take()[2]).tolist()
    assert (rows.count(1), len(rows)) == (first + 1, first + more)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("s(u) AND (EXISTS u. ONCE s(u))", "here one binds no variable where the policy has u"),
        ("s(u) AND ONCE p()", "here one binds no variable where the policy has u"),
    ],
)
def test_what_is_not_propositional_is_refused(text: str, said: str) -> None:
    with pytest.raises(UnsupportedError, match=said):
        skeleton_of(text)


SIGNATURE = "p() q() s(u: string) t(u: string, a: int)"
KEYED = "ALWAYS FORALL u. s(u) IMPLIES EVENTUALLY[0,5] EXISTS a. t(u,a) AND a > 10"
LOG = '@0 p\n@7 p @7\n@8 s("a") @9 s(b) t(a,3) @10 t(a,30) @20 q'


def test_keys_are_streams_of_their_own_however_the_log_is_cut(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_text(LOG)
    signature = Signature.parse(SIGNATURE)
    types = {(each.name, each.arity): each.types for each in signature}
    formula = parse_formula(KEYED, "<test>")[0]
    results = []
    for chunk_bytes in (3, 11, 1000):
        verdicts = Verdicts(formula, signature, "all")
        rows = []
        for chunk in LogFile(tmp_path / "x.log", types, chunk_bytes=chunk_bytes).chunks():
            for batch in verdicts.feed(chunk, np_int64()):
                rows += batch.to_pylist()
        for batch in verdicts.close(np_int64()):
            rows += batch.to_pylist()
        results.append(sorted((row["time"], row["offset"], row["u"], row["verdict"]) for row in rows))
    assert results[0] == results[1] == results[2]
    assert [row for row in results[0] if not row[3]] == [(9, 0, "b", False)]
    assert len(results[0]) == 2 * 7


def np_int64() -> Any:
    import pyarrow as pa

    return pa.int64()


def test_the_command_line_gives_verdicts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.log").write_text("@0 p @0 @1 @9 p")
    (tmp_path / "x.sig").write_text(SIGNATURE)
    (tmp_path / "x.mfotl").write_text("EVENTUALLY[0,5] p()")
    arguments = ["monitor", str(tmp_path / "x.mfotl"), "--signature", str(tmp_path / "x.sig"), "-q"]
    arguments += ["--input", str(tmp_path / "x.log"), "--output", "-", "--output-format", "csv", "--verdicts"]
    assert main([*arguments, "all"]) == 0
    said = capsys.readouterr().out
    assert said == "policy,time,offset,verdict\nx,0,0,true\nx,0,1,false\nx,1,0,false\nx,9,0,true\n"
    assert main([*arguments, "equivalent", "--mode", "global"]) == 0
    said = capsys.readouterr().out
    assert said.splitlines()[0] == "policy,time,offset,verdict,same_as_time,same_as_offset"
    assert len(said.splitlines()) == 5
