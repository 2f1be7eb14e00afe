"""The count type ``auto``: numbers are numbers, so the largest count is the largest in other programs, too."""

from __future__ import annotations

import random
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import hamlet
from hamlet.cli import main
from hamlet.output.components import Values
from hamlet.output.files import write
from hamlet.output.fitting import fitted_types, holding, largest_of
from hamlet.output.numbers import Integers

WORKLOAD = hamlet.Workload.parse(
    "RETURN k, COUNT(*), SUM(A.v) AS total, SUM(A.x) AS real PATTERN A+ GROUP-BY k WITHIN 5000 s"
)


def stream(*bits: int) -> list[dict[str, Any]]:
    """One group per number n, with 2^n - 1 trends."""
    return [{"time": time, "type": "A", "k": f"{n}", "v": -3, "x": 0.5} for n in bits for time in range(n)]


@pytest.mark.parametrize(
    ("bits", "kind"),
    [
        ((9, 10), pa.int64()),
        ((9, 63), pa.int64()),
        ((9, 64), pa.decimal128(38, 0)),
        ((9, 126), pa.decimal128(38, 0)),
        ((9, 127), pa.decimal256(76, 0)),
        ((9, 252), pa.decimal256(76, 0)),
        ((9, 253), pa.string()),
    ],
)
def test_the_narrowest_type_that_holds_a_column(bits: tuple[int, ...], kind: pa.DataType) -> None:
    results = hamlet.run(WORKLOAD, stream(*bits))
    table = results.table("q1")
    assert table.schema.field("count").type == kind
    assert [int(each) for each in table.column("count").to_pylist()] == [row["count"] for row in results.rows()]
    assert {int(value) for value in table.column("count").to_pylist()} == {2**n - 1 for n in bits}
    assert [int(each) for each in table.column("total").to_pylist()] == [row["total"] for row in results.rows()]
    assert table.schema.field("real").type == pa.float64()
    noted = [note for note in results.warnings if note.startswith("q1.count is ")]
    assert bool(noted) == (kind != pa.int64())
    assert results.numpy("q1")["count"].tolist() == [row["count"] for row in results.rows()]


def test_the_edges_of_int64() -> None:
    workload = hamlet.Workload.parse("RETURN SUM(A.v) AS s PATTERN A WITHIN 1000 s")
    for value, kind in ((2**63 - 1, pa.int64()), (1 - 2**63, pa.int64()), (-(2**63), pa.decimal128(38, 0))):
        table = hamlet.run(workload, [{"time": 1, "type": "A", "v": value}]).table()
        assert table.schema.field("s").type == kind
        assert int(table.column("s")[0].as_py()) == value


def test_no_rows_and_nulls_are_int64() -> None:
    table = hamlet.run(WORKLOAD, [{"time": 1, "type": "B", "k": "x", "v": 1, "x": 0.5}]).table()
    assert table.schema.field("count").type == pa.int64()
    workload = hamlet.Workload.parse("RETURN SUM(A.v) AS s PATTERN A WITHIN 1000 s")
    events = pa.table({"time": [1], "type": ["A"], "v": pa.array([None], pa.int64())})
    assert hamlet.run(workload, events).table().column("s").to_pylist() == [None]


def test_floats() -> None:
    for bits, kind in ((20, pa.int64()), (100, pa.decimal128(38, 0)), (2000, pa.string())):
        results = hamlet.run(WORKLOAD, stream(bits), numbers="float")
        column = results.table("q1").column("count")
        assert column.type == kind
        assert abs(Decimal(column[0].as_py()) / (Decimal(2) ** bits - 1) - 1) < Decimal("1e-9")
    real = hamlet.run(WORKLOAD, stream(2000)).table("q1").column("real")
    assert real.type == pa.string()
    assert real[0].as_py().endswith(("e+604", "e+605"))


def test_one_table_of_all_queries_has_the_widest_type() -> None:
    text = "a: RETURN COUNT(*) PATTERN A WITHIN 1000 s; b: RETURN COUNT(*) PATTERN A+ WITHIN 1000 s"
    results = hamlet.run(hamlet.Workload.parse(text), stream(70))
    assert results.table("a").schema.field("count").type == pa.int64()
    assert results.table().schema.field("count").type == pa.decimal128(38, 0)
    assert results.table().column("count").to_pylist() == [70, 2**70 - 1]


# ------------------------------------------------------------------------------------- max(count) elsewhere

LARGEST = [(9, 10), (9, 80)]  # as text, "511" and "1023" sort the wrong way round


@pytest.mark.parametrize("bits", LARGEST, ids=str)
def test_the_largest_count_in_duckdb(bits: tuple[int, int], tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    found = hamlet.run(WORKLOAD, stream(*bits))
    connection = duckdb.connect()
    connection.register("found", found.table())
    assert int(connection.sql("SELECT max(count) FROM found").fetchall()[0][0]) == 2 ** bits[1] - 1
    file = tmp_path / "found.parquet"
    pq.write_table(found.table(), file)
    assert int(connection.sql(f"SELECT max(count) FROM '{file}'").fetchall()[0][0]) == 2 ** bits[1] - 1


@pytest.mark.parametrize("bits", LARGEST, ids=str)
def test_the_largest_count_in_polars(bits: tuple[int, int]) -> None:
    polars = pytest.importorskip("polars")
    found = hamlet.run(WORKLOAD, stream(*bits))
    assert int(polars.DataFrame(found)["count"].max()) == 2 ** bits[1] - 1


@pytest.mark.parametrize("bits", LARGEST, ids=str)
def test_the_largest_count_in_pandas(bits: tuple[int, int], tmp_path: Path) -> None:
    """As another program reads a result file: pandas is none of this project's packages."""
    file = tmp_path / "found.parquet"
    pq.write_table(hamlet.run(WORKLOAD, stream(*bits)).table(), file)
    script = (
        "import importlib.util, sys\n"
        "if importlib.util.find_spec('pandas') is None: sys.exit(77)\n"
        "import pandas\n"
        "print(int(pandas.read_parquet(sys.argv[1])['count'].max()))\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(file)], capture_output=True, text=True, check=False)
    if done.returncode == 77:
        pytest.skip("pandas is not installed")
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == 2 ** bits[1] - 1


def test_files_and_the_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events, workload, out = tmp_path / "e.parquet", tmp_path / "w.sase", tmp_path / "out"
    pq.write_table(pa.Table.from_pylist(stream(9, 64)), events)
    workload.write_text(str(WORKLOAD))
    assert main(["run", str(workload), "--input", str(events), "--output", str(out)]) == 0
    assert "note: q1.count is decimal(38, 0) in tables and Parquet, for some value does not fit int64" in (
        capsys.readouterr().err
    )
    table = pq.read_table(out / "query=q1" / "part-00000.parquet", partitioning=None)
    assert pc.max(table.column("count")).as_py() == 2**64 - 1


def test_the_widest_of_many_pieces() -> None:
    engine = hamlet.Engine(hamlet.Workload.parse("RETURN COUNT(*) PATTERN A+ WITHIN 100 s"))
    pieces = [
        *engine.push_batches([{"time": time, "type": "A"} for time in range(70)]),
        *engine.push_batches([{"time": 150, "type": "A"}]),
        *engine.close_batches(),
    ]
    assert [fitted_types(each) for each in pieces] == [("decimal",), ("int64",)]
    pieces[0].extend(pieces[1])
    assert fitted_types(pieces[0]) == ("decimal",)


def test_a_quotient_beyond_doubles_is_text(tmp_path: Path) -> None:
    workload = hamlet.Workload.parse("RETURN k, COUNT(*) / 3 AS third PATTERN A+ GROUP-BY k WITHIN 5000 s")
    for numbers in ("exact", "float"):
        results = hamlet.run(workload, stream(3, 1100), numbers=numbers)
        table = results.table("q1")
        assert table.schema.field("third").type == pa.string()
        small, large = sorted(map(Decimal, table.column("third").to_pylist()))
        assert float(small) == 7 / 3
        assert abs(large / (Decimal(2**1100 - 1) / 3) - 1) < Decimal("1e-9")
        assert any("q1.third is text" in note for note in results.warnings)
        write(results, tmp_path / numbers, "parquet")
        assert pq.read_table(tmp_path / numbers / "query=q1", partitioning=None).schema.field("third").type == "string"
        with pytest.raises(hamlet.OutputError, match="auto makes it text"):
            hamlet.run(workload, stream(3, 1100), numbers=numbers, count_type="string").table("q1")
        infinite = hamlet.run(workload, stream(3, 1100), numbers=numbers, count_type="double").table("q1")
        assert float("inf") in infinite.column("third").to_pylist()
    table = hamlet.run(workload, stream(3)).table("q1")
    assert table.schema.field("third").type == pa.float64()


@pytest.mark.parametrize("limit", [2**63 - 1, 10**38 - 1, 10**76 - 1])
def test_the_largest_of_integers_with_limbs_to_spare(limit: int) -> None:
    """Rows of one window are as wide as the widest of them: limbs do not tell which is the largest."""
    draw = random.Random(limit)
    for _ in range(200):
        most = limit + draw.choice((-1, 0, 1, 10**20, -(10**15)))
        values = [draw.choice((1, -1)) * draw.randrange(1 << draw.randrange(1, most.bit_length())) for _ in range(5)]
        values.insert(draw.randrange(6), draw.choice((1, -1)) * most)
        size = (most.bit_length() >> 6) + 1 + draw.randrange(3)
        raw = b"".join(value.to_bytes(8 * size, "little", signed=True) for value in values)
        starts = np.arange(6) * size
        column = Values(Integers(np.frombuffer(raw, np.uint64), starts, np.full(6, size)), None)
        assert holding(largest_of(column) or 0) == holding(most)
    huge = [1, 3**2000, -(3**1900), 3**1999]
    assert largest_of(Values(Integers.of(huge), None)) == 3**2000
    assert (largest_of(Values(Integers.of([-(3**1900), 5]), None)) or 0) == 3**1900
