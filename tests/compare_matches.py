"""Evidence of random row patterns, and mutants of it, against the checker: ``python -m tests.compare_matches``."""

from __future__ import annotations

import copy
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

import hamlet
from hamlet.checker import EvidenceError, check
from tests.comparison import by_seeds
from tests.random_patterns import Generator

SCHEMA = pa.schema([(name, pa.int64()) for name in ("i", "k", "t", "v", "w")])


def mutants(data: Mapping[str, Any], dice: random.Random) -> Iterator[dict[str, Any]]:
    """Evidence with one thing changed, which then is not true."""
    for place in range(len(data["rows"])):
        found: dict[str, Any] = copy.deepcopy(dict(data))
        found["rows"][place]["at"] += dice.choice((-1, 1))
        yield found
        found = copy.deepcopy(dict(data))
        found["rows"][place]["label"] += "x"
        yield found
        for name, value in data["conditions"][place].items():
            found = copy.deepcopy(dict(data))
            found["conditions"][place][name] = 12345 if value != 12345 else None
            yield found
        found = copy.deepcopy(dict(data))
        del found["rows"][place], found["conditions"][place]
        yield found
    if data["holds"] and "skipped_to" in data and data["rows"]:
        yield {**data, "skipped_to": -5}
    yield {**data, "holds": not data["holds"], "taken": False}


def compare(seed: int) -> Counter[str]:
    """Give evidence for some rows of one random statement, and for some rows of its table; check it, and mutate it."""
    case = Generator(seed, labels=seed % 3 > 0).case()
    tables = {"t": pa.Table.from_pylist(case.rows, SCHEMA)}
    counts: Counter[str] = Counter()
    try:
        results = hamlet.sql(case.sql, tables)
    except hamlet.DataError:
        return Counter(refused=1)
    rows, dice = results.rows(), random.Random(seed)
    given: list[dict[str, Any]] = [row for row in rows if rows.count(row) == 1][:3]
    given += [{"at": at} for at in range(min(3, tables["t"].num_rows))]
    for row in given:
        data = results.why(row).data
        where = f"seed {seed}\n{case.sql}\n{case.rows}\n{row}\n{data}"
        assert data["holds"] or "at" in row, where
        try:
            check(case.sql, tables, data)
        except EvidenceError as error:
            raise AssertionError(f"{error}\n{where}") from error
        counts["rows" if "at" not in row else "places"] += 1
        counts["absent"] += not data["holds"]
        if data.get("unmatched") or not data["rows"]:
            continue
        for mutant in mutants(data, dice):
            try:
                check(case.sql, tables, mutant)
            except EvidenceError:
                counts["rejected"] += 1
                continue
            raise AssertionError(f"accepted {mutant}\n{where}")
    return counts


def main() -> None:
    """Compare a range of seeds."""
    by_seeds(lambda seed, _: compare(seed), "0:200")


if __name__ == "__main__":
    main()
