"""Slices give the rows of one process, whoever owns what; shares, placement and pruning by worked examples."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hamlet
from hamlet.language.schema import Schema
from hamlet.output.partial import SCHEMA
from hamlet.output.query_part import query_results
from hamlet.parallel.routing.owners import Grid, GridOwner, KeyOwner, Owner, TimeOwner, hashed
from hamlet.parallel.routing.placement import Balance, balanced, key_tests, placed, plain
from hamlet.parallel.routing.possible import presence
from hamlet.parallel.routing.routes import routes
from hamlet.parallel.routing.routing import Ownership, Router, Slicing, ValueBytes
from hamlet.parallel.routing.semijoin import KeyFilter, hashes_of
from hamlet.parallel.routing.shares import Relation, best_shares, grids, load
from hamlet.parallel.routing.statistics import (
    BUCKETS,
    KEY,
    ClassStatistics,
    Summary,
    batch_of,
    gathered,
    reduced,
    rows_of,
)
from hamlet.planner.compile import window
from hamlet.planner.compiled import CompiledClass
from hamlet.spark import packets, tasks
from hamlet.spark.rows import Presenter
from hamlet.spark.tasks import Kernel, Shipment, columns_of, with_places
from tests.comparison import difference
from tests.effort import share_of
from tests.spark.test_partial_rows import pieces, shipment_of, table_of
from tests.strategies import Case, Features, random_case

SLICES = (1, 2, 3, 7, 16)

# ---------------------------------------------------------------------------------------------- random owners


class RandomOwners:
    """Any owner that can be: tables, grids, heavy values and cuts without sense."""

    def __init__(self, chance: random.Random, table: pa.Table, slices: int) -> None:
        self._chance = chance
        self._table = table
        self._slices = slices

    def owner(self, compiled: CompiledClass, schema: Schema) -> Owner:
        """One for a class of queries."""
        kinds = [self._by_time, self._by_grid, self._by_key, self._by_key]
        if any(query.reach is not None and not query.reach.stays for query in compiled.queries):
            kinds = kinds[1:]  # trends reach over the edges of windows
        return self._chance.choice(kinds)(compiled, schema)

    def _any(self, count: int) -> list[int]:
        return [self._chance.randrange(self._slices) for _ in range(count)]

    def _by_key(self, compiled: CompiledClass, schema: Schema) -> KeyOwner:
        size = len(compiled.attributes)
        places = tuple(sorted(self._chance.sample(range(size), self._chance.randint(0, size))))
        keys = [
            b"".join(values)
            for values in zip(*(self._values(compiled, place, schema) for place in places), strict=True)
        ]
        heavy = {key: self._any(1)[0] for key in keys if self._chance.random() < 0.4}
        return KeyOwner(places, self._any(self._chance.randint(1, 9)), heavy)

    def _by_grid(self, compiled: CompiledClass, schema: Schema) -> GridOwner:
        size = len(compiled.attributes)
        heavy = [
            frozenset(value for value in self._values(compiled, place, schema) if self._chance.random() < 0.3)
            for place in range(size)
        ]
        some = [place for place in range(size) if heavy[place]]
        found = {}
        for held in chain.from_iterable(combinations(some, count) for count in range(len(some) + 1)):
            shares = tuple(self._chance.randint(1, 3) for _ in range(size))
            found[held] = Grid(shares, self._any(int(np.prod(shares, initial=1))))
        return GridOwner(found, heavy)

    def _by_time(self, compiled: CompiledClass, schema: Schema) -> TimeOwner:
        times = [time for time in self._table.column(schema.clock.column).to_pylist() if time is not None]
        count = self._chance.randint(0, 4)
        cuts = sorted(self._chance.randint(min(times) - 5, max(times) + 5) for _ in range(count))
        return TimeOwner(cuts, self._any(count + 1), [window(query.analysed, schema) for query in compiled.queries])

    def _values(self, compiled: CompiledClass, place: int, schema: Schema) -> list[bytes]:
        name = compiled.attributes[place]
        if name not in self._table.column_names:
            return []
        values = [None if value != value else value for value in self._table.column(name).to_pylist()]
        return [ValueBytes(compiled.attributes, schema).of((place,), [value])[0] for value in values]


# ----------------------------------------------------------------------------------------- slices in process


def sent(shipment: Shipment, slicing: Slicing, table: pa.Table, chance: random.Random) -> list[pa.Table]:
    """What every slice gets, in the order of time."""
    workload = shipment.workload
    compiled = shipment.compiled()
    router = Router(compiled, slicing, range(len(compiled.classes)))
    columns = columns_of(routes(workload, compiled), compiled.schema)
    wanted = with_places(pa.schema([shipment.events.field(name) for name in columns]))
    parts: list[list[pa.Table]] = [[] for _ in range(slicing.slices)]
    shuffled = table.take(chance.sample(range(len(table)), len(table)))
    for batch in pieces(shuffled, chance):
        batch = batch.select(list(columns))
        routed = router.route(batch)
        assert len({*zip(routed.rows.tolist(), routed.slices.tolist(), strict=True)}) == len(routed.rows)
        for slice in range(slicing.slices):
            mine = np.nonzero(routed.slices == slice)[0]
            events = batch.take(pa.array(routed.rows[mine]))
            head = [pa.array(routed.slices[mine]), pa.array(routed.masks[mine])]
            parts[slice].append(pa.Table.from_arrays([*head, *events.columns], schema=wanted))
    schema = compiled.schema
    order = [(name, "ascending") for name in (schema.clock.column, schema.order_column) if name is not None]
    return [pa.concat_tables(part).sort_by(order) for part in parts]


def summed(shipment: Shipment, table: pa.Table, chance: random.Random) -> list[ClassStatistics]:
    """Statistics of a table, made in two parts."""
    compiled = shipment.compiled()
    known = routes(shipment.workload, compiled)
    rows = []
    cut = chance.randint(0, len(table))
    for part in (table.slice(0, cut), table.slice(cut)):
        summary = Summary(compiled, known)
        for batch in pieces(part, chance):
            summary.add(batch)
        rows += rows_of(batch_of(summary.rows()))
    parts = [[row for row in rows if row[3][-1:] < b"\x02"], [row for row in rows if row[3][-1:] >= b"\x02"]]
    return gathered(known, [row for part in parts for row in reduced(compiled, known, part)])


def slicing_of(shipment: Shipment, table: pa.Table, slices: int, chance: random.Random) -> Slicing:
    """Owners without sense, by hash, from the stream's own statistics, or from those of another stream."""
    compiled = shipment.compiled()
    known = routes(shipment.workload, compiled)
    kind = chance.randrange(5)
    if kind < 2:
        owners = RandomOwners(chance, table, slices)
        return Slicing(tuple(owners.owner(each, compiled.schema) for each in compiled.classes), slices)
    if kind == 2:
        return plain(compiled, known, slices)
    if kind == 3:
        return balanced(compiled, known, slices, summed(shipment, table, chance), prune=True)
    rows = [chance.randrange(len(table)) for _ in range(chance.randint(0, len(table)))]
    stale = table.take(pa.array(rows, pa.int64()))
    return balanced(compiled, known, slices, summed(shipment, stale, chance))


def through_slices(case: Case, slices: int, seed: int) -> list[dict[str, Any]]:
    """The rows of a case whose events are routed to slices, by owners without sense."""
    chance, table = random.Random(seed), table_of(case)
    shipment = shipment_of(case[0], table, **case[2])
    compiled = shipment.compiled()
    slicing = slicing_of(shipment, table, slices, chance)
    all_routes = routes(shipment.workload, compiled)
    partial: list[pa.RecordBatch] = []
    for events in sent(shipment, slicing, table, chance):
        partial += Kernel(shipment, all_routes, slicing).partial(pieces(events, chance))
    ordered = pa.Table.from_batches(partial, SCHEMA).sort_by([(name, "ascending") for name in SCHEMA.names[:3]])
    found = Presenter(shipment).rows(ordered.to_batches())
    clock = compiled.schema.clock
    return [row for _, rows in sorted(found, key=lambda pair: pair[0]) for row in query_results([rows], clock).rows()]


def test_packets_bring_what_was_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever order packets come in, a slice has its events in the order of time, with their masks."""
    monkeypatch.setattr(packets, "MOST_ROWS", 7)
    moved = 0
    for seed in range(20):
        chance, case = random.Random(seed), random_case(seed, FEATURES["broadcast"])
        table, slices = table_of(case), SLICES[seed % len(SLICES)]
        shipment = shipment_of(case[0], table, **case[2])
        compiled = shipment.compiled()
        slicing, known = slicing_of(shipment, table, slices, chance), routes(shipment.workload, compiled)
        events = table.select(list(columns_of(known, compiled.schema)))
        routed = tasks.routed(shipment, known, Router(compiled, slicing, range(len(known))), pieces(events, chance))
        rows = [row for batch in packets.packed(routed) for row in batch.to_pylist()]
        chance.shuffle(rows)
        for slice, wanted in enumerate(sent(shipment, slicing, table, chance)):
            mine = [row for row in rows if row["slice"] == slice]
            batches = [pa.RecordBatch.from_pylist(mine, packets.PACKETS)] if mine else []
            found = [row for batch in packets.unpacked(shipment, known, batches) for row in batch.to_pylist()]
            order = [(row["time"], row.get(compiled.schema.order_column or "", 0)) for row in found]
            assert order == sorted(order)
            assert sorted(map(repr, found)) == sorted(map(repr, wanted.to_pylist()))
            moved += len(found)
    assert moved > 200


FEATURES = {
    "many keys": Features(queries=6, adjacent=False),
    "broadcast": Features(queries=4, broadcast=True),
    "conjunction": Features(queries=3, conjunction=True, broadcast=True),
    "matching": Features(queries=4, semantics=True, span=True, session=True, distinct=True, broadcast=True),
}


PARTIAL = """
    EVENT Request(rider INT, v INT); EVENT Travel(rider INT, driver INT); EVENT Shift(driver INT); EVENT Closed(v INT);
    all: RETURN COUNT(*), SUM(Request.v) PATTERN SEQ(Request, Shift+, NOT Closed, Travel?) WHERE [rider, driver]
         WITHIN 12 s SLIDE 4 s;
    riders: RETURN rider, COUNT(*), MAX(Request.v) PATTERN SEQ(Request+, NOT Shift, Travel)
            WHERE [driver] GROUP-BY rider WITHIN 10 s;
    alone: RETURN rider, COUNT(*) PATTERN Request+ GROUP-BY rider WITHIN 6 s"""


def partial_case(seed: int) -> Case:
    """Types of one pattern that carry different keys: partitions form of events none of which names all of them."""
    chance = random.Random(seed)
    types = ["Request", "Request", "Shift", "Shift", "Travel", "Closed"]
    events = [
        {
            "time": time,
            "type": chance.choice(types),
            "rider": chance.choice([1, 2, 3, None]),
            "driver": chance.choice([1, 2, 3]),
            "v": chance.randint(-9, 9),
        }
        for time in sorted(chance.randint(-3, 25) for _ in range(14))
    ]
    return PARTIAL, events, {}


def drawn(features: str, seed: int) -> Case:
    return partial_case(seed) if features == "partial keys" else random_case(seed, FEATURES[features])


def differences(features: str, seeds: range) -> Iterator[str]:
    for seed in seeds:
        case = drawn(features, seed)
        expected = hamlet.run(hamlet.Workload.parse(case[0]), table_of(case), **case[2]).rows()
        slices = SLICES[seed % len(SLICES)]
        wrong = difference(through_slices(case, slices, seed), expected)
        if wrong is not None:
            yield f"seed {seed}, {slices} slices: {wrong}\n{case}"


@pytest.mark.parametrize("features", [*FEATURES, "partial keys"])
def test_slices_give_the_rows_of_one_process(features: str) -> None:
    wrong = next(differences(features, range(share_of(35))), None)
    assert wrong is None, wrong


def test_without_the_owner_filter_rows_come_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the filter at the join is for: partitions that meet in slices of others, windows of other ranges."""
    monkeypatch.setattr(Ownership, "owns", lambda self, key: True)
    assert any(differences("partial keys", range(20)))
    monkeypatch.undo()
    monkeypatch.setattr(Ownership, "keeps", lambda self, starts: np.ones(len(starts), bool))
    assert any(differences("many keys", range(100)))


# --------------------------------------------------------------------------------------------------- shares


@pytest.mark.parametrize(
    ("slices", "expected"), [(1, (1, 1, 1)), (8, (2, 2, 2)), (27, (3, 3, 3)), (63, (3, 4, 5)), (64, (4, 4, 4))]
)
def test_shares_of_a_triangle(slices: int, expected: tuple[int, ...]) -> None:
    """Chu et al. §4: rounding the real shares of 63 slices down would leave 3 x 3 x 3 = 27 of them at work."""
    relations = [Relation((0, 1), 1.0), Relation((1, 2), 1.0), Relation((0, 2), 1.0)]
    assert best_shares(relations, 3, slices) == expected


def test_shares_follow_the_sizes() -> None:
    """Request carries the rider, Travel both, Shift the driver only (attributes: driver, rider)."""
    shift, travel, request = (0,), (0, 1), (1,)
    even = [Relation(shift, 10.0), Relation(travel, 10.0), Relation(request, 10.0)]
    assert best_shares(even, 2, 16) == (4, 4)
    many_requests = [Relation(shift, 1.0), Relation(travel, 10.0), Relation(request, 100.0)]
    assert best_shares(many_requests, 2, 16) == (1, 16)
    assert load(many_requests, (1, 16)) == 1 + 10 / 16 + 100 / 16
    assert best_shares([Relation(travel, 10.0), Relation(shift, 1.0)], 2, 16) == (16, 1)
    assert best_shares([Relation((), 10.0)], 0, 16) == ()


def test_a_heavy_value_has_a_grid_of_its_own() -> None:
    """A driver with most of the events: hashing drivers would leave them in one row, so riders are spread instead."""
    sizes = {((0, 1), ()): 400.0, ((0, 1), (0,)): 600.0, ((1,), ()): 50.0, ((0,), ()): 50.0, ((0,), (0,)): 5.0}
    found = grids(sizes, 2, (True, False), 16)
    assert found == {(): (4, 4), (0,): (1, 16)}
    assert grids(sizes, 2, (False, False), 16).keys() == {()}
    assert grids({}, 2, (True, True), 16).keys() == {(), (0,), (1,), (0, 1)}


TRIANGLE, APART = [(0, 1), (1, 2), (0, 2)], [(0,), (1,)]


@pytest.mark.parametrize(
    ("carried", "events", "slices", "expected"),
    [
        (TRIANGLE, [1.0, 1.0, 1.0], 65, (4, 4, 4)),
        (TRIANGLE, [1.0, 1.0, 1.0], 512, (8, 8, 8)),
        (APART, [1.0, 1.0], 256, (16, 16)),
        (APART, [100.0, 400.0], 1024, (16, 64)),
        ([(0,)], [100.0], 1, (1,)),
    ],
)
def test_shares_of_examples_of_the_authors(
    carried: list[tuple[int, ...]], events: list[float], slices: int, expected: tuple[int, ...]
) -> None:
    """What the authors' own implementation is tested with: the Scalable Online Monitoring Project (ETH Zürich),
    package ch.ethz.infsec.slicer, HypercubeSlicerTest."""
    relations = [Relation(places, number) for places, number in zip(carried, events, strict=True)]
    assert best_shares(relations, len(expected), slices) == expected


def test_grids_of_examples_of_the_authors() -> None:
    """p(x, y), q(x), q(y) of 100 events each, 1024 slices; heavy values in x, then in both (source as above)."""
    sizes = {
        (carried, held): 100.0
        for carried in ((0, 1), (0,), (1,))
        for size in range(len(carried) + 1)
        for held in combinations(carried, size)
    }
    assert grids(sizes, 2, (False, False), 1024) == {(): (32, 32)}
    assert grids(sizes, 2, (True, False), 1024) == {(): (32, 32), (0,): (1, 1024)}
    assert grids(sizes, 2, (True, True), 1024) == {(): (32, 32), (0,): (1, 1024), (1,): (1024, 1), (0, 1): (1, 1)}


def test_partial_keys_meet_in_every_grid_that_may_hold_them() -> None:
    """p(x) and q(y), where some x are heavy: whatever x and y are, they come together in the slice of (x, y)."""
    values = [value.to_bytes(2) for value in range(40)]
    shares = {(): (4, 8), (0,): (1, 2)}
    owner = GridOwner(
        {held: Grid(each, tuple(range(each[0] * each[1]))) for held, each in shares.items()},
        [frozenset(values[:3]), frozenset()],
    )
    for x in values:
        for y in values:
            both = set(owner.targets((0,), [x])) & set(owner.targets((1,), [y]))
            assert owner.owner([x, y]) in both
            assert owner.targets((0, 1), [x, y]) == (owner.owner([x, y]),)


# ------------------------------------------------------------------------------------------------- placement


def zipf(exponent: float, keys: int = 10_000, events: int = 10_000_000) -> list[int]:
    """Events of each key."""
    weights = np.arange(1, keys + 1) ** -exponent
    return [int(each) for each in np.round(weights / weights.sum() * events)]


def skewed(counts: list[int]) -> tuple[Shipment, list[ClassStatistics], list[bytes]]:
    """A workload of one class, the statistics of a stream with so many events per key, and the keys' bytes."""
    table = pa.table({"time": [1], "type": ["A"], "k": pa.array([1], pa.int64())})
    shipment = shipment_of("RETURN k, COUNT(*) PATTERN SEQ(A, B+) GROUP-BY k WITHIN 10 s", table)
    compiled = shipment.compiled()
    known = routes(shipment.workload, compiled)
    bytes_of = ValueBytes(("k",), compiled.schema)
    encoded = [bytes_of.of((0,), (number,))[0] for number in range(len(counts))]
    both = (1 << len(presence(compiled.classes[0], known[0]).roles)) - 1
    rows = [(0, KEY, hashed(key) % BUCKETS, key, events, both, 0) for key, events in zip(encoded, counts, strict=True)]
    return shipment, gathered(known, reduced(compiled, known, rows)), encoded


def balance(slicing: Slicing, keys: list[bytes], counts: list[int]) -> Balance:
    loads = [0] * slicing.slices
    (owner,) = slicing.owners
    assert isinstance(owner, KeyOwner)
    for key, events in zip(keys, counts, strict=True):
        loads[owner.owner([key])] += events
    return Balance(tuple(loads), sum(counts))


@pytest.mark.parametrize("exponent", [0.6, 1.2])
def test_heavy_keys_spoil_no_balance(exponent: float) -> None:
    """16 slices, 10,000 keys, 10 M events: what is no key's fault is even."""
    counts, slices = zipf(exponent), 16
    shipment, statistics, keys = skewed(counts)
    compiled = shipment.compiled()
    known = routes(shipment.workload, compiled)
    slicing = balanced(compiled, known, slices, statistics)
    found, by_hash = balance(slicing, keys, counts), balance(plain(compiled, known, slices), keys, counts)
    assert found.replication == 1.0
    assert sum(found.loads) == sum(counts)
    assert by_hash.max_over_mean > 1.1
    (owner,) = slicing.owners
    left, alone = sum(counts), []
    while counts[len(alone)] * (slices - len(alone)) > left:
        left -= counts[len(alone)]
        alone.append(len(alone))
    assert len(alone) == (0 if exponent == 0.6 else 3)
    for number in alone:
        assert found.loads[owner.owner([keys[number]])] == counts[number]
    others = [load for slice, load in enumerate(found.loads) if slice not in {owner.owner([keys[n]]) for n in alone}]
    assert max(others) * len(others) <= 1.05 * sum(others)


def test_loads_and_replication() -> None:
    balance = Balance((6, 2, 4), 8)
    assert balance.max_over_mean == 1.5
    assert balance.replication == 1.5
    assert (Balance((), 0).max_over_mean, Balance((0,), 0).replication) == (1.0, 1.0)
    assert placed({"a": 3, "b": 3, "c": 2}, 2, [0, 2]) == {"a": 0, "b": 1, "c": 0}


# --------------------------------------------------------------------------------------------------- pruning

TWO = "RETURN COUNT(*) PATTERN {} WHERE [k] {} WITHIN 10 s"


@pytest.mark.parametrize(
    ("pattern", "where", "types", "possible"),
    [
        ("SEQ(A, B+)", "", "A", False),
        ("SEQ(A, B+)", "", "AB", True),
        ("SEQ(A, B*)", "", "A", True),
        ("SEQ(A, B?)", "", "B", False),
        ("SEQ(A, (B OR C))", "", "AC", True),
        ("SEQ(A, (B OR C))", "", "A", False),
        ("SEQ(A, NOT B, C)", "", "AC", True),
        ("SEQ(A, NOT B, C)", "", "AB", False),
        ("A AND B", "", "A", False),
        ("A AND B", "", "AB", True),
        ("SEQ(A x, A y+)", "AND x.v > 0 AND y.v < 0", "A", False),
    ],
)
def test_groups_that_can_have_no_trend(pattern: str, where: str, types: str, possible: bool) -> None:
    """Only what every word needs is needed: nothing in NOT, nothing optional, no one of several alternatives."""
    events = pa.table({"time": range(len(types)), "type": list(types), "k": [1] * len(types), "v": [1] * len(types)})
    shipment = shipment_of(TWO.format(pattern, where), events)
    (found,) = summed(shipment, events, random.Random(1))
    everything = len(found.heavy) + len(found.buckets)
    assert bool(everything) == possible
    assert found.events > 0
    slicing = balanced(shipment.compiled(), routes(shipment.workload, shipment.compiled()), 3, [found], prune=True)
    routed = Router(shipment.compiled(), slicing, [0]).route(events.to_batches()[0])
    if not possible and found.passing is not None:
        assert len(routed.rows) == 0


# --------------------------------------------------------------------------------------------------- semijoins


def test_equal_keys_have_equal_hashes() -> None:
    table = pa.table({
        "n": pa.array([1, 1, None, -(2**63)], pa.int64()),
        "t": pa.array(["x", "", None, "a longer text, \N{SNOWMAN}"]),
        "r": pa.array([0.0, -0.0, None, float("nan")]),
        "b": pa.array([True, False, None, True]),
        "d": pa.array([1, 2, None, 3], pa.timestamp("us")),
        "e": pa.array([1, 2, None, 3], pa.date32()),
    })  # fmt: skip
    (batch,) = table.to_batches()
    for name in table.schema.names:
        found = hashes_of(batch, [name])
        single = np.concatenate([hashes_of(batch.slice(row, 1), [name]) for row in range(4)])
        assert found.tolist() == single.tolist()
        places = pa.array([3, 2, 1, 0])
        assert hashes_of(batch.take(places), [name]).tolist() == found[::-1].tolist()
    texts = pa.RecordBatch.from_arrays([batch.column("t").dictionary_encode()], ["t"])
    assert hashes_of(texts, ["t"]).tolist() == hashes_of(batch, ["t"]).tolist()
    zero, minus, null, nan = hashes_of(batch, ["r"]).tolist()
    assert (zero == minus, null == nan, zero == null) == (True, True, False)
    assert len({*hashes_of(batch, ["n", "t"]).tolist(), *hashes_of(batch, ["t", "n"]).tolist()}) == 7  # NULLs


@pytest.mark.parametrize("keys", [0, 1, 100, 70_000])
def test_a_filter_lets_all_its_keys_pass(keys: int) -> None:
    batch = pa.RecordBatch.from_arrays([pa.array(range(keys + 50_000), pa.int64())], ["k"])
    hashes = hashes_of(batch, ["k"])
    found = KeyFilter.of(hashes[:keys], len(hashes)).passed(hashes)
    assert found[:keys].all()
    assert found[keys:].mean() < 0.01


def test_events_of_keys_without_a_trend_stay_behind() -> None:
    """No ceiling on keys: more of them than a list held, and one in ten with both types."""
    keys = 80_000
    table = pa.table({
        "time": np.zeros(2 * keys, np.int64), "k": np.tile(np.arange(keys), 2),
        "type": ["A"] * keys + ["A", *["B" if key % 10 == 0 else "A" for key in range(1, keys)]],
    })  # fmt: skip
    shipment = shipment_of(TWO.format("SEQ(A, B)", ""), table)
    compiled = shipment.compiled()
    known = routes(shipment.workload, compiled)
    summary = Summary(compiled, known, balance=False)
    for batch in table.to_batches(max_chunksize=30_000):
        summary.add(batch)
    (found,) = gathered(known, reduced(compiled, known, summary.rows()))
    assert found.passing is not None
    assert (found.passing.keys, found.passing.possible, found.heavy) == (keys, keys // 10 - 1, {})
    slicing = replace(plain(compiled, known, 3), filters=key_tests(compiled, known, [found]))
    router = Router(compiled, slicing, [0])
    for batch in table.to_batches(max_chunksize=30_000):
        router.route(batch)
    assert router.needed.tolist() == [2 * keys]
    assert router.sent + router.behind == 2 * keys
    assert 0.2 * keys - 2 <= router.sent < 0.22 * keys
