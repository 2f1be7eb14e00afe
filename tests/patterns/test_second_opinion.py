"""Random row patterns in another system: DuckDB's own MATCH_RECOGNIZE, where the installed DuckDB has it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import duckdb
import pytest

import hamlet
from tests.random_patterns import Case, Generator

Rows = list[tuple[Any, ...]]
Answer = Callable[[Case], Rows]  # raises LacksError and CannotSkipError


class LacksError(Exception):
    """The other system has not what a statement says."""


class CannotSkipError(Exception):
    """Matching cannot go on behind a match."""


def compare(case: Case, answer: Answer) -> str:
    """Compare what another system answers with the rows of `hamlet.sql`; 'equal' or 'lacks'."""
    try:
        other: Any = _sorted(case, answer(case))
    except LacksError:
        return "lacks"
    except CannotSkipError:
        other = "cannot skip"
    try:
        own: Any = _sorted(case, _own(case))
    except CannotSkipError:
        own = "cannot skip"
    assert own == other, f"{case.sql}\n{case.rows}\nhamlet {own}\nother  {other}"
    return "equal"


def _sorted(case: Case, rows: Rows) -> Rows:
    """Rows in an order of their own; the values of ARRAY_AGG(DISTINCT ...) have none."""

    def plain(value: Any) -> Any:
        if isinstance(value, list) and "ARRAY_AGG(DISTINCT" in case.sql:
            return sorted(value, key=repr)
        return int(value) if isinstance(value, Decimal) else value

    return sorted((tuple(plain(each) for each in row) for row in rows), key=repr)


def _own(case: Case) -> Rows:
    try:
        return [tuple(row.values()) for row in hamlet.sql(case.sql, {"t": case.table}).rows()]
    except hamlet.DataError as error:
        if "AFTER MATCH SKIP" not in str(error):
            raise
        raise CannotSkipError from error


def _in_duckdb(case: Case) -> Rows:
    with duckdb.connect() as connection:
        connection.register("t", case.table)
        try:
            return connection.execute(case.sql).fetchall()
        except (duckdb.NotImplementedException, duckdb.BinderException, duckdb.ParserException) as error:
            raise LacksError(str(error)) from error
        except duckdb.InvalidInputException as error:
            raise CannotSkipError(str(error)) from error


def cases() -> Iterator[Case]:
    """Cases of what DuckDB has: it has no WITHIN."""
    for seed in range(150):
        case = Generator(seed, labels=seed % 3 > 0).case()
        if "WITHIN" not in case.sql:
            yield case


def test_duckdb_gives_the_same_rows() -> None:
    try:
        duckdb.sql("FROM range(2) t(x) MATCH_RECOGNIZE (MEASURES COUNT(*) AS n PATTERN (a) DEFINE a AS true)")
    except duckdb.ParserException as error:
        reason = str(error).splitlines()[0]
        pytest.skip(f"DuckDB {duckdb.__version__} has no MATCH_RECOGNIZE: {reason}")
    counts = Counter(compare(case, _in_duckdb) for case in cases())
    assert counts["equal"] > counts.total() / 2, counts


def test_the_comparison_can_fail() -> None:
    some = [case for case, _ in zip(cases(), range(12), strict=False)]

    def wrong(case: Case) -> Rows:
        return [*_own(case), (0,)]

    def lacking(case: Case) -> Rows:
        raise LacksError(case.sql)

    assert {compare(case, _own) for case in some} == {"equal"}
    assert {compare(case, lacking) for case in some} == {"lacks"}
    for case in some:
        try:
            _own(case)
        except CannotSkipError:
            continue
        with pytest.raises(AssertionError, match="MATCH_RECOGNIZE"):
            compare(case, wrong)
