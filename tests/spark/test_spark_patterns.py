"""Row patterns on Spark: the rows of `hamlet.sql` whatever stands around a clause, and the files of `submit`."""

from __future__ import annotations

import datetime
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hamlet
from hamlet.cli import main
from hamlet.errors import DataError, OptionError, WorkloadError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RISES = "PATTERN (a up+) DEFINE up AS price > PREV(price)"
RISING = f"ORDER BY ts, price MEASURES FIRST(ts) AS since, COUNT(*) AS n {RISES}"
BY_SYMBOL = f"PARTITION BY symbol ORDER BY ts MEASURES FIRST(ts) AS since, COUNT(*) AS n {RISES}"
STATEMENTS = (
    f"SELECT * FROM ticks MATCH_RECOGNIZE ({BY_SYMBOL})",
    f"SELECT * FROM ticks MATCH_RECOGNIZE (ORDER BY ts, symbol MEASURES FIRST(ts) AS since, LAST(price) AS p {RISES})",
    "SELECT * FROM ticks MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY ts DESC MEASURES CLASSIFIER() AS c, "
    "MATCH_NUMBER() AS m, SUM(price) AS s ALL ROWS PER MATCH PATTERN (a | b c*) DEFINE a AS price > 7, c AS price < 5)",
    "SELECT * FROM ticks MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY ts MEASURES CLASSIFIER() AS c "
    "ALL ROWS PER MATCH WITH UNMATCHED ROWS PATTERN (a b) DEFINE b AS price > 2 * PREV(price))",
    "SELECT * FROM ticks MATCH_RECOGNIZE (PARTITION BY ts % 3 ORDER BY ts MEASURES COUNT() AS n, LAST(symbol) AS s "
    "PATTERN (a b{2}) DEFINE b AS price <> LAST(a.price) AND symbol <> LAST(a.symbol))",
    "SELECT * FROM ticks MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY ts MEASURES LAST(ts) - FIRST(ts) AS took, "
    "FIRST(at) AS since AFTER MATCH SKIP TO NEXT ROW PATTERN (a+ b) WITHIN 4 DEFINE a AS price < 8, b AS price > 4)",
    f"SELECT name, m.n, count(*) AS times FROM ticks MATCH_RECOGNIZE ({BY_SYMBOL}) AS m JOIN names ON "
    "m.symbol = names.symbol WHERE m.n > 1 GROUP BY name, m.n",
    f"WITH some AS (SELECT * FROM ticks WHERE price > 2) SELECT x.symbol, x.since, y.n FROM some MATCH_RECOGNIZE "
    f"({BY_SYMBOL}) x JOIN ticks MATCH_RECOGNIZE ({BY_SYMBOL}) y ON x.symbol = y.symbol AND x.since = y.since",
    f"SELECT * FROM (SELECT symbol, since AS ts, n AS price FROM ticks MATCH_RECOGNIZE ({BY_SYMBOL})) "
    "MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY ts MEASURES SUM(price) AS s PATTERN (a+) DEFINE a AS price > 1)",
    "SELECT * FROM ticks MATCH_RECOGNIZE (PARTITION BY symbol MEASURES FIRST(ts) AS f, ARRAY_AGG(price) AS ps "
    "PATTERN (PERMUTE(a, b) {- c -}?) DEFINE a AS price > 6, b AS price < 6)",
    f"CREATE OR REPLACE TEMP VIEW dear AS SELECT * FROM ticks MATCH_RECOGNIZE ({BY_SYMBOL}); "
    "SELECT symbol, max(n) AS longest FROM dear GROUP BY symbol",
    *(
        text.format(f"(SELECT * FROM ticks WHERE ticks.symbol <=> u.symbol AND ts >= least) MATCH_RECOGNIZE ({RISING})")
        for text in (
            "SELECT u.symbol, u.least, m.* FROM few AS u, LATERAL {} m",
            "SELECT * FROM few AS u LEFT JOIN LATERAL {} m ON true",
            "SELECT * FROM few AS u WHERE least > 2 AND EXISTS (SELECT 1 FROM {} WHERE n > 2)",
            "WITH x AS (SELECT * FROM few) SELECT least, (SELECT max(n) FROM {}) AS n FROM x AS u",
            "SELECT u.symbol, m.price, m.c FROM few AS u, LATERAL (SELECT * FROM ticks WHERE price >= u.least / 4) "
            "MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY ts, price MEASURES CLASSIFIER() AS c ALL ROWS PER MATCH "
            "PATTERN (a b+) DEFINE b AS price < LAST(price, 1)) m",
            f"SELECT u.*, q.n FROM few AS u, LATERAL (SELECT n FROM ticks MATCH_RECOGNIZE ({BY_SYMBOL}) AS m "
            "WHERE m.symbol = u.symbol AND n > 2) AS q",
            "SELECT names.name, m.n FROM names, LATERAL (SELECT m.n FROM few AS u, LATERAL {} m "
            "WHERE u.symbol = names.symbol) m",
        )
    ),
)
FEW = pa.table({"symbol": ["x", "y", None, "x", "x", "q"], "least": [0, 3, 5, 20, 0, 1]})


def ticks(seed: int) -> pa.Table:
    """Rows of a few symbols, NULL among them, times with ties."""
    random.seed(seed)
    start = datetime.datetime(2024, 3, 5)
    rows = []
    for _ in range(60):
        price = random.choice([*range(10), None])
        rows.append((random.choice(["x", "y", "z", None]), random.randrange(30), price))
    symbol, ts, price = zip(*rows, strict=True)
    at = [start + datetime.timedelta(minutes=each) for each in ts]
    return pa.table({"symbol": symbol, "ts": ts, "price": price, "at": pa.array(at, pa.timestamp("us"))})


NAMES = pa.table({"symbol": ["x", "y"], "name": ["ex", "why"]})


def values(rows: list[dict[str, Any]]) -> list[str]:
    """Rows in an order of their own; an interval as its length."""

    def plain(value: Any) -> Any:
        if isinstance(value, pa.MonthDayNano):
            return datetime.timedelta(days=value.days, microseconds=value.nanoseconds // 1000)
        if isinstance(value, datetime.datetime):
            return value.replace(tzinfo=None)  # Spark's times are instants; the session's zone is UTC
        return int(value) if hasattr(value, "as_tuple") and not isinstance(value, tuple) else value

    return sorted(str({name: plain(value) for name, value in row.items()}) for row in rows)


@pytest.fixture(scope="module")
def frames(spark: SparkSession) -> dict[str, DataFrame]:
    return {
        "ticks": spark.createDataFrame(ticks(1)),
        "names": spark.createDataFrame(NAMES),
        "few": spark.createDataFrame(FEW),
    }


@pytest.mark.sampled(4)
@pytest.mark.parametrize("text", STATEMENTS, ids=range(len(STATEMENTS)))
def test_rows_are_those_in_process(frames: dict[str, DataFrame], text: str) -> None:
    expected = hamlet.sql(text, {"ticks": ticks(1), "names": NAMES, "few": FEW}, dialect="spark").rows()
    found = hamlet.spark.sql(text, frames).toArrow()
    assert expected
    assert values(found.to_pylist()) == values(expected)


@pytest.mark.parametrize("dialect", ["duckdb", "trino"])
def test_keywords_behind_a_variable_stay_columns_in_each_dialect(spark: SparkSession, dialect: str) -> None:
    table = pa.table({"i": [1, 2, 3], "value": [5, 3, 7], "name": ["x", "y", "Y"], "größe": [1, 2, 3]})
    text = """SELECT * FROM t MATCH_RECOGNIZE (ORDER BY i MEASURES b.name AS n, SUM(b.value) AS s, MAX(größe) AS größtes
    PATTERN (a b+) DEFINE b AS name_of = 'y' AND b.value <> a.value AND b."value" + 1 > PREV(b.value) - 9)"""
    text = text.replace("name_of", "b.name COLLATE NOCASE" if dialect == "duckdb" else "LOWER(b.name)")
    frame = hamlet.spark.sql(text, {"t": spark.createDataFrame(table)}, dialect=dialect)
    assert [tuple(row) for row in frame.collect()] == [("Y", 10, 3)]


def test_names_of_the_session(spark: SparkSession, frames: dict[str, DataFrame]) -> None:
    """A name that no table has is the session's; a view that a table hides comes back."""
    frames["names"].createOrReplaceTempView("ticks")
    frames["ticks"].createOrReplaceTempView("quotes")
    text = STATEMENTS[0].replace("ticks", "quotes")
    found = hamlet.spark.sql(text).toArrow().to_pylist()
    assert values(found) == values(hamlet.spark.sql(STATEMENTS[0], frames).toArrow().to_pylist())
    assert spark.table("ticks").columns == ["symbol", "name"]
    for name in ("ticks", "quotes"):
        spark.catalog.dropTempView(name)
    assert [each.name for each in spark.catalog.listTables() if each.isTemporary] == []


def test_mistakes_have_their_places_before_a_job(frames: dict[str, DataFrame]) -> None:
    for text, said in (
        ("SELECT * FROM ticks MATCH_RECOGNIZE (ALL ROWS PER MATCH PATTERN (a) DEFINE a AS prise > 1)", "1:81"),
        (
            "SELECT * FROM ticks MATCH_RECOGNIZE (MEASURES MAX(at)::TIME AS t PATTERN (a) DEFINE a AS true)",
            "time is not supported",
        ),
        ("SELECT many FROM ticks MATCH_RECOGNIZE (MEASURES COUNT(*) AS n PATTERN (a) DEFINE a AS true)", "1:8"),
        ("SELECT * FROM tocks MATCH_RECOGNIZE (MEASURES COUNT(*) AS n PATTERN (a) DEFINE a AS true)", "1:15"),
        ("SELECT * FROM ticks MATCH_RECOGNIZE (MEASURES COUNT(*) AS n PATTERN (a)", "match"),
        (
            "SELECT * FROM ticks MATCH_RECOGNIZE (ALL ROWS PER MATCH PATTERN (a) DEFINE a AS symbol COLLATE nope > '')",
            "1:81",
        ),
    ):
        with pytest.raises(WorkloadError) as error:
            hamlet.spark.sql(text, frames)
        assert said in str(error.value).lower()
    with pytest.raises(OptionError, match="2 queries"):
        hamlet.spark.sql(f"{STATEMENTS[0]}; {STATEMENTS[1]}", frames)


def test_submit_writes_the_rows_of_each_query(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(ticks(2), tmp_path / "ticks.parquet")
    (tmp_path / "q.sql").write_text(f"{STATEMENTS[0]};\n{STATEMENTS[2]};\n")
    call = ["submit", str(tmp_path / "q.sql"), "--output", str(tmp_path / "out"), "--input"]
    assert main([*call, str(tmp_path / "ticks.parquet")]) == 0
    assert main([*call, f"ticks={tmp_path / 'ticks.parquet'}"]) != 0
    assert main([*call, f"ticks={tmp_path / 'ticks.parquet'}", "--overwrite"]) == 0
    for number, text in ((1, STATEMENTS[0]), (2, STATEMENTS[2])):
        folder = tmp_path / "out" / f"query=q{number}"
        assert all(path.name.startswith("part-") for path in folder.iterdir())
        found = [row for path in sorted(folder.iterdir()) for row in pq.ParquetFile(path).read().to_pylist()]
        assert values(found) == values(hamlet.sql(text, {"ticks": ticks(2)}, dialect="spark").rows())
    assert main([*call, str(tmp_path / "ticks.parquet"), "--stream"]) != 0
    assert main([*call, str(tmp_path / "ticks.parquet"), "--overwrite", "--where", "price > 1"]) != 0


@pytest.mark.usefixtures("spark")
def test_fields_of_csv_are_separated_as_is_said(tmp_path: Path) -> None:
    (tmp_path / "ticks.csv").write_text("ts;price\n1;2\n2;3\n3;1\n")
    text = f"SELECT * FROM ticks MATCH_RECOGNIZE (ORDER BY ts MEASURES COUNT(*) AS n {RISES})"
    places = [str(tmp_path / "ticks.csv")], str(tmp_path / "out")
    assert hamlet.spark.submit(text, *places, delimiter=";") == {"rows": 1, "notes": []}
    with pytest.raises(OptionError, match="bad_rows='drop'"):
        hamlet.spark.submit(text, *places, delimiter=";", bad_rows="drop", overwrite=True)
    with pytest.raises(DataError, match=r"no such file: .*no\*\.csv"):
        hamlet.spark.submit(text, str(tmp_path / "no*.csv"), places[1], overwrite=True)


@pytest.mark.usefixtures("spark")
def test_text_that_is_bad_is_told_as_in_process(tmp_path: Path) -> None:
    """Spark by itself gives NULL for what it cannot read, of which nobody hears."""
    text = f"SELECT * FROM ticks MATCH_RECOGNIZE (ORDER BY ts MEASURES COUNT(*) AS n {RISES})"
    for name, lines, said in (
        ("a.jsonl", '{"ts": 1, "price": 2}\n{"ts": 2, "price"\n', r"a\.jsonl:2: the line is no JSON"),
        ("b.jsonl", '{"ts": 1, "price": 2}\n{"ts": 2, "price": "x"}\n', r"b\.jsonl:2: attribute 'price' is \"x\""),
        ("c.jsonl", f'{{"ts": 1, "price": {2**64}}}\n', r"c\.jsonl:1: attribute 'price' holds an integer of 65 bits"),
        ("d.csv", "ts,price\n1,2\n2,3,4\n", r"d\.csv:3: 3 fields in place of 2, '2,3,4'$"),
        ("e.csv", "ts,price\n1,2\n2\n", r"e\.csv:3: 1 field in place of 2, '2'$"),
    ):
        (tmp_path / name).write_text(lines)
        with pytest.raises(DataError, match=said):
            hamlet.sql(text, {"ticks": tmp_path / name}, dialect="spark")
        with pytest.raises(DataError, match=said):
            hamlet.spark.submit(text, str(tmp_path / name), str(tmp_path / "out"))
    (tmp_path / "b.jsonl").write_text('{"ts": 1, "price": "x"}\n')
    (tmp_path / "a.jsonl").write_text('{"ts": 1, "price": 2}\n')
    with pytest.raises(DataError, match=r"column 'price' is .*; one column must have one type"):
        hamlet.spark.submit(text, str(tmp_path / "[ab].jsonl"), str(tmp_path / "out"))


FILES = {
    "numbers, some of them missing": {"a.csv": "ts,a,b,c\n1,inf,NA,2024-01-02\n2,1.5,+3,NA\n"},
    "columns in another order": {"a/1.csv": "ts,a\n1,2\n", "a/2.csv": "a,ts\n1.5,3\n"},
    "nested": {"a.jsonl": '{"ts": 1, "s": {"a": 1}, "l": [1, 2]}\n{"ts": 2, "s": {"a": 2}, "l": []}\n'},
    "types that widen": {"a/1.parquet": {"ts": [1], "a": [1]}, "a/2.parquet": {"ts": [2], "a": [2.5]}},
    "a name that is a pattern": {"a[1].parquet": {"ts": [1], "a": [1]}},
}


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("case", FILES)
def test_files_are_read_as_in_process(case: str, tmp_path: Path) -> None:
    text = "SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts ALL ROWS PER MATCH PATTERN (x+) DEFINE x AS TRUE)"
    for name, content in FILES[case].items():
        place = tmp_path / "in" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            place.write_text(content)
        else:
            pq.write_table(pa.table(content), place)
    (given,) = (tmp_path / "in").iterdir()
    expected = hamlet.sql(text, {"t": given}, dialect="spark").rows()
    hamlet.spark.submit(text, str(given), str(tmp_path / "out"))
    assert pq.read_table(tmp_path / "out", partitioning=None).to_pylist() == expected
    assert expected


@pytest.mark.usefixtures("spark")
def test_values_of_csv_are_those_in_process(tmp_path: Path) -> None:
    times = [datetime.datetime(2024, 3, 5, 10, minute) for minute in range(3)]
    names = ['"a ""b"";\nc"', '"d\\"', "e"]
    rows = "".join(f"{n};{name};{time}\n" for n, (name, time) in enumerate(zip(names, times, strict=True)))
    (tmp_path / "ticks.csv").write_text(f"ts;name;at\n{rows}")
    text = (
        "SELECT * FROM ticks MATCH_RECOGNIZE (ORDER BY ts MEASURES u.name AS n, u.at AS at PATTERN (u) "
        "DEFINE u AS ts >= 0 AND at > '2024-03-05')"
    )
    expected = hamlet.sql(text, {"ticks": tmp_path / "ticks.csv"}).table().to_pylist()
    assert [tuple(row.values()) for row in expected] == list(zip(['a "b";\nc', "d\\", "e"], times, strict=True))
    places = [str(tmp_path / "ticks.csv")], str(tmp_path / "out")
    assert hamlet.spark.submit(text, *places)["rows"] == 3
    [path] = tmp_path.glob("out/*/*.parquet")
    assert pq.read_table(path).to_pylist() == expected


def test_statements_of_one_table_and_order_share_an_exchange(spark: SparkSession, frames: dict[str, DataFrame]) -> None:
    from hamlet.spark.patterns import _Text

    asked = [STATEMENTS[place] for place in (0, 3, 5)]
    text = _Text("; ".join([*asked, STATEMENTS[2]]), "spark", "<sql>", 10_000, spark, shares=True)
    given = text.frames(frames)
    for frame, statement in zip(given, [*asked, STATEMENTS[2]], strict=True):
        rows = frame.toArrow().to_pylist()
        expected = hamlet.sql(statement, {"ticks": ticks(1)}, dialect="spark").rows()
        assert values(rows) == values(expected)
        plan: str = frame._jdf.queryExecution().executedPlan().toString()
        own = plan.split("InMemoryRelation")[0]
        assert ("InMemoryTableScan" in plan) == (statement in asked)
        assert ("Exchange" in own or "Sort [" in own) == (statement not in asked)
    text.forget()
    assert not any(each.name.endswith("_kept") for each in spark.catalog.listTables())


def test_neighbours_are_compared_without_a_window(spark: SparkSession) -> None:
    """Where Arrow does it as Spark: NaN is the greatest, NULL is unknown, beyond a partition's end is NULL."""
    draw = random.Random(5)
    rows = [
        {"k": draw.choice(["x", "y", None]), "i": place, "v": draw.choice([0.0, -0.0, 1.5, float("nan"), None])}
        for place in range(90)
    ]
    table = pa.Table.from_pylist([{**row, "n": draw.choice([1, 2, None]), "s": draw.choice("abä")} for row in rows])
    frame = spark.createDataFrame(table)
    clause = """SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY i MEASURES CLASSIFIER() AS c, FIRST(i) AS f
        ALL ROWS PER MATCH PATTERN (a | b | c | d | e+) DEFINE a AS v > PREV(v) AND NOT n + 1 = NEXT(n, 2),
        b AS PREV(s) < s OR v = 1.5e0 * NEXT(v), c AS PREV(i) IS NULL, d AS PREV(n) BETWEEN n AND 2, e AS {})"""
    for condition, windowed in (("v <> NEXT(v)", False), ("n - PREV(n) > 0", True)):
        found = hamlet.spark.sql(clause.format(condition), {"t": frame})
        expected = hamlet.sql(clause.format(condition), {"t": table}, dialect="spark").rows()
        assert values(found.toArrow().to_pylist()) == values(expected)
        assert len({row["c"] for row in expected}) == 5
        plan: str = found._jdf.queryExecution().executedPlan().toString()  # type: ignore[operator]
        assert ("Window [" in plan) == windowed


def test_a_skip_that_gets_nowhere_is_said_with_its_row(frames: dict[str, DataFrame]) -> None:
    from pyspark.errors import PythonException

    clause = "ORDER BY ts MEASURES 1 AS x AFTER MATCH SKIP TO a PATTERN (a b) DEFINE b AS true"
    text = f"SELECT * FROM ticks MATCH_RECOGNIZE ({clause})"
    with pytest.raises(PythonException, match="SKIP TO LAST a: in the match that begins at row 1, a is the match's"):
        hamlet.spark.sql(text, frames).collect()
