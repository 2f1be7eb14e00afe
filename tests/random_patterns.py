"""Random row patterns over random tables: each as SQL, and as what the oracle takes.

``python -m tests.random_patterns --seeds 0:1000`` compares; the first case that differs is printed. With ``--pushed``
rows come one by one and values may be decimals; most of these cases need no host. With ``--mutated`` statements have
mistakes, and none may give a traceback or take a second. With ``--wild``
values lie around 2^31, 2^53 and 2^63 or are floats, times are over all of int64 with silences, and there may be 65 to
150 rows; each case is matched over a table and over files of other columns, and pushed in 1, 63 to 66 or 100,000 rows.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import hamlet
from hamlet.oracle import patterns as oracle
from hamlet.patterns.clause.tree import (
    Alternation,
    Anchor,
    Concatenation,
    Exclusion,
    Permutation,
    Quantified,
    RowPattern,
    Variable,
)

VARIABLES = ("a", "B", "c")
DIALECTS = ("duckdb", "trino", "oracle")  # whose lists keep NULL
DOUBLES = (0, 2**31 - 1, -(2**31), -(2**53), 2**40)  # which are themselves as doubles
CENTRES = (0, 2**31 - 1, -(2**31), 2**53 - 1, 2**53 + 1, -(2**53), 2**40, 2**61, -(2**61), 2**63 - 5, -(2**63))
AGGREGATES: dict[str, Callable[[list[Any]], Any]] = {
    "SUM": lambda values: sum(values) if values else None,
    "MIN": lambda values: min(values, default=None),
    "MAX": lambda values: max(values, default=None),
    "COUNT": len,
}


@dataclass
class Text:
    """An expression: SQL, and a function of a view."""

    sql: str
    value: Callable[[oracle.View], Any]


@dataclass
class Case:
    """A statement over a table, and the task of each partition."""

    sql: str
    rows: list[dict[str, Any]]
    columns: list[str]
    expected: Callable[[], list[tuple[Any, ...]]]
    notes: list[str] = field(default_factory=list)
    kind: str = "int64"

    @property
    def table(self) -> Any:
        """The rows as Arrow; values of v and w are of the kind."""
        import pyarrow as pa

        kind = pa.decimal128(8, 2) if self.kind == "decimal" else self.kind
        kinds = ("int64", "int64", "int64", kind, kind)  # of i, k, t, v, w
        return pa.Table.from_pylist(self.rows, pa.schema(list(zip(self.rows[0], kinds, strict=True))))

    def renamed(self, names: Mapping[str, str]) -> Case:
        """The same case with other names of columns."""
        sql = re.sub(rf"\b({'|'.join(names)})\b", lambda match: names[match[0]], self.sql)
        rows = [{names.get(name, name): value for name, value in row.items()} for row in self.rows]
        return replace(self, sql=sql, rows=rows)


class Generator:
    """One random case.

    Parameters
    ----------
    seed : int
    labels : bool
        Whether conditions may read labels.
    back : bool
        Whether all is about rows so far, so that a matcher takes rows one by one.
    wild : bool
        Whether values and times are at the edges of their types.
    kind : str
        The type of values: ``int64``, ``int32``, ``double`` or ``decimal``.
    """

    def __init__(
        self, seed: int, labels: bool = True, back: bool = False, wild: bool = False, kind: str = "int64"
    ) -> None:
        self.random = random.Random(seed)
        self.wild, self.kind = wild, kind
        self.centre, self.scale = 0, 1
        if wild:
            self.kind = self.random.choice(("int64", "int64", "double"))
            self.centre = self.random.choice(CENTRES if self.kind == "int64" else DOUBLES)
            self.scale = self.random.choice((1, 1, 7, 2**31, 2**53, 2**59))
        self.labels, self.back = labels and not back, back
        self.quarters = self.random.choice((1, 4)) if kind == "decimal" else 1
        self.members = {each.lower(): (each.lower(),) for each in VARIABLES}
        if self.chance(0.5):
            self.members["u"] = tuple(each.lower() for each in self.random.sample(VARIABLES, 2))

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    # Patterns.

    def pattern(self, depth: int, excluded: bool = False) -> tuple[str, RowPattern]:
        kind = self.random.random()
        if depth == 0 or kind < 0.25:
            name = self.random.choice(VARIABLES)
            return name, Variable(name.lower())
        if kind < 0.32:
            return ("^", Anchor(True)) if self.chance(0.5) else ("$", Anchor(False))
        if kind < 0.36:
            return "()", Concatenation(())
        if kind < 0.42 and not excluded and self.exclusions:
            sql, node = self.pattern(depth - 1, True)
            return f"{{- {sql} -}}", Exclusion(node)
        if kind < 0.47:
            parts = [self.pattern(depth - 1, excluded) for _ in range(self.random.choice((2, 2, 3)))]
            return f"PERMUTE({', '.join(sql for sql, _ in parts)})", Permutation(tuple(node for _, node in parts))
        if kind < 0.6:
            parts = [self.pattern(depth - 1, excluded) for _ in range(self.random.choice((2, 3)))]
            return f"({' | '.join(sql for sql, _ in parts)})", Alternation(tuple(node for _, node in parts))
        if kind < 0.8:
            parts = [self.pattern(depth - 1, excluded) for _ in range(self.random.choice((2, 2, 3)))]
            return f"({' '.join(sql for sql, _ in parts)})", Concatenation(tuple(node for _, node in parts))
        sql, node = self.pattern(depth - 1, excluded)
        text, low, high = self.random.choice(
            [
                ("*", 0, None),
                ("+", 1, None),
                ("?", 0, 1),
                ("{2}", 2, 2),
                ("{1,}", 1, None),
                ("{,2}", 0, 2),
                ("{1,3}", 1, 3),
            ]
        )
        greedy = self.chance(0.6)
        return f"({sql}){text}{'' if greedy else '?'}", Quantified(node, low, high, greedy)

    # Expressions.

    def name(self) -> str | None:
        return self.random.choice([None, *VARIABLES, *(["u"] if "u" in self.members else [])])

    def column(self) -> str:
        return self.random.choice(("v", "v", "w"))

    def written(self, name: str | None, column: str) -> str:
        """A column of a variable, or of none: alone, or behind the name of the table."""
        return f"{name or 't'}.{column}" if name or self.chance(0.1) else column

    def reading(self, define: str | None) -> Text:
        """A number read from the match."""
        kind = self.random.random()
        column = self.column()
        if define is not None and not (self.labels and self.chance(0.4)):
            if kind < 0.5:
                return Text(column, lambda view: self.at(view, view.place(True, None, 0, None), column))
            step = self.random.choice((-2, -1, -1 if self.back else 1, 0))
            function = "PREV" if step <= 0 else "NEXT"
            return Text(
                f"{function}({column}, {abs(step)})",
                lambda view: self.at(view, view.place(True, None, 0, None, step), column),
            )
        name = self.name()
        key = None if name is None else name.lower()
        written = self.written(name, column)
        mode = self.random.choice([None, None, "RUNNING", *(["FINAL"] if define is None else [])])
        prefix = f"{mode} " if mode else ""
        if kind < 0.2:
            return Text(written, lambda view: self.at(view, view.place(True, key, 0, None), column))
        last = self.chance(0.5)
        inwards = self.random.choice((0, 0, 1, 2))
        logical = f"{'LAST' if last else 'FIRST'}({written}{f', {inwards}' if inwards else ''})"
        if kind < 0.45:
            return Text(prefix + logical, lambda view: self.at(view, view.place(last, key, inwards, mode), column))
        if kind < 0.6:
            step = self.random.choice((-2, -1, *(() if self.back else (1, 2))))
            text = f"{'PREV' if step < 0 else 'NEXT'}({logical}, {abs(step)})"
            return Text(text, lambda view: self.at(view, view.place(last, key, inwards, None, step), column))
        if kind < 0.68:
            text = f"COUNT({'*' if name is None else name + '.*'})"
            return Text(prefix + text, lambda view: len(view.seen(key, mode)))
        if kind < 0.73:
            return Text("MATCH_NUMBER()", lambda view: view.number)
        function = self.random.choice(list(AGGREGATES))
        distinct = self.chance(0.2)

        def aggregate(view: oracle.View) -> Any:
            values = [view.rows[view.start + place][column] for place in view.seen(key, mode)]
            values = [each for each in values if each is not None]
            return AGGREGATES[function](sorted(set(values)) if distinct else values)

        return Text(f"{prefix}{function}({'DISTINCT ' if distinct else ''}{written})", aggregate)

    @staticmethod
    def at(view: oracle.View, row: int | None, column: str) -> Any:
        return None if row is None else view.rows[row][column]

    def number(self, define: str | None, depth: int = 1) -> Text:
        kind = self.random.random()
        if kind < 0.15 and define is not None:
            constant: Any = self.random.randrange(4) + self.random.choice((0, self.centre)) * self.wild
            if self.kind == "decimal" and self.chance(0.6):
                constant = self.random.choice(("0.5", "1.25", "2.0", "0.375"))
                return Text(constant, lambda view: Decimal(constant))
            return Text(str(constant), lambda view: constant)
        if depth and kind < 0.3:
            left, right = self.number(define, 0), self.number(define, 0)
            sign = self.random.choice("+-")

            def combined(view: oracle.View) -> Any:
                one, other = left.value(view), right.value(view)
                return None if one is None or other is None else one + (other if sign == "+" else -other)

            return Text(f"({left.sql} {sign} {right.sql})", combined)
        if depth and kind < 0.4:
            inner = self.number(define, 0)
            return Text(f"coalesce({inner.sql}, 1)", lambda view: _default(inner.value(view), 1))
        return self.reading(define)

    def condition(self, define: str, depth: int = 1) -> Text:
        kind = self.random.random()
        if depth and kind < 0.3:
            left, right = self.condition(define, 0), self.condition(define, 0)
            if self.chance(0.5):
                return Text(f"({left.sql} AND {right.sql})", lambda view: _and(left.value(view), right.value(view)))
            return Text(f"({left.sql} OR {right.sql})", lambda view: _or(left.value(view), right.value(view)))
        if kind < 0.38:
            inner = self.number(define)
            return Text(f"{inner.sql} IS NULL", lambda view: inner.value(view) is None)
        if kind < 0.45 and self.labels:
            label = self.random.choice(VARIABLES)
            text, value = self.classifier()
            return Text(f"{text} = '{label}'", lambda view: _compare("=", value(view), label))
        left, right = self.number(define), self.number(define)
        sign = self.random.choice(("=", "<", "<=", ">", ">=", "<>"))
        return Text(f"{left.sql} {sign} {right.sql}", lambda view: _compare(sign, left.value(view), right.value(view)))

    def classifier(self) -> tuple[str, Callable[[oracle.View], Any]]:
        name = self.name()
        key = None if name is None else name.lower()
        inner = f"CLASSIFIER({name or ''})"
        known = {each.lower(): each for each in VARIABLES}
        step = self.random.choice((0, 0, -1, 0 if self.back else 1))
        text = inner if step == 0 else f"{'PREV' if step < 0 else 'NEXT'}({inner})"

        def value(view: oracle.View) -> Any:
            label = view.label_at(view.place(True, key, 0, None, step))
            return None if label is None else known[label]

        return text, value

    def measure(self) -> Text:
        kind = self.random.random()
        if kind < 0.15:
            return Text(*self.classifier())
        if kind < 0.3:
            name = self.name()
            key = None if name is None else name.lower()
            column = self.column()
            distinct = self.chance(0.4)

            def listed(view: oracle.View) -> Any:
                values = [view.rows[view.start + place][column] for place in view.seen(key, None)]
                return (list(dict.fromkeys(values)) if distinct else values) or None

            written = self.written(name, column)
            return Text(f"ARRAY_AGG({'DISTINCT ' if distinct else ''}{written})", listed)
        return self.number(None)

    # Cases.

    def case(self) -> Case:
        per_match = self.random.choice(("one", "one", "show", "omit", "one" if self.back else "unmatched"))
        self.exclusions = per_match != "unmatched"
        pattern, tree = self.pattern(self.random.choice((1, 2, 3)))
        used = {node.name for node in _nodes(tree) if isinstance(node, Variable)}
        while not used >= {each.lower() for each in VARIABLES}:
            missing = next(each for each in VARIABLES if each.lower() not in used)
            pattern, tree = f"({pattern} | {missing})", Alternation((tree, Variable(missing.lower())))
            used.add(missing.lower())
        definitions = {each: self.condition(each) for each in VARIABLES if self.chance(0.8)}
        definitions = definitions or {"a": Text("true", lambda view: True)}
        measures = [self.measure() for _ in range(3)]
        skip, skip_to = self.random.choice(
            [("past", None), ("past", None), ("next", None), ("first", "B"), ("last", "c"), ("last", "u")]
        )
        if skip_to == "u" and "u" not in self.members:
            skip_to = "a"
        within = self.random.choice((None, None, 0, 1, 3))
        within = None if within is None else within * self.scale
        rows = self.table()
        partitioned = self.chance(0.6) or len(rows) > 8
        sections = [
            "PARTITION BY k" * partitioned,
            "ORDER BY t, i",
            "MEASURES " + ", ".join(f"{each.sql} AS m{place}" for place, each in enumerate(measures)),
            {
                "one": "",
                "show": "ALL ROWS PER MATCH",
                "omit": "ALL ROWS PER MATCH OMIT EMPTY MATCHES",
                "unmatched": "ALL ROWS PER MATCH WITH UNMATCHED ROWS",
            }[per_match],
            {
                "past": "",
                "next": "AFTER MATCH SKIP TO NEXT ROW",
                "first": f"AFTER MATCH SKIP TO FIRST {skip_to}",
                "last": f"AFTER MATCH SKIP TO LAST {skip_to}",
            }[skip],
            f"PATTERN ({pattern})",
            "" if within is None else f"WITHIN {within}",
            f"SUBSET u = ({', '.join(self.members['u'])})" if "u" in self.members else "",
            "DEFINE " + ", ".join(f"{name} AS {each.sql}" for name, each in definitions.items()),
        ]
        sql = "SELECT * FROM t MATCH_RECOGNIZE (\n" + "\n".join(filter(None, sections)) + "\n)"
        conditions = {name.lower(): each.value for name, each in definitions.items()}

        def expected() -> list[tuple[Any, ...]]:
            found = []
            keys = sorted({row["k"] for row in rows}, key=lambda key: (key is None, key)) if partitioned else [None]
            for key in keys:
                part = [row for row in rows if not partitioned or row["k"] == key]
                part.sort(key=lambda row: (row["t"], row["i"]))
                task = oracle.Task(
                    tree,
                    part,
                    conditions,
                    self.members,
                    lambda start, row, part=part: within is None or part[row]["t"] - part[start]["t"] <= within,
                    skip,
                    None if skip_to is None else skip_to.lower(),
                )
                for shown, view in oracle.output(task, per_match, oracle.matches(task)):
                    values = [None if view is None else each.value(view) for each in measures]
                    row = part[shown]
                    if per_match == "one":
                        found.append((*([key] * partitioned), *values))
                    else:
                        head = [key] * partitioned
                        rest = [row[each] for each in row if each not in ("t", "i", *(["k"] * partitioned))]
                        found.append((*head, row["t"], row["i"], *values, *rest))
            return found

        return Case(sql, rows, [], expected, kind=self.kind)

    def table(self) -> list[dict[str, Any]]:
        rows = self.plain_table(self.random.randrange(1, 9))
        if self.kind == "decimal":
            for row in rows:
                row |= {each: None if row[each] is None else Decimal(row[each]) / self.quarters for each in "vw"}
        return self.at_the_edges(rows) if self.wild else rows

    def at_the_edges(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The rows, or many of them, with values around another number and times of another scale."""
        if self.chance(0.3):
            rows = self.plain_table(self.random.randint(65, 150))
            for row in rows:
                row["k"] = self.random.randrange(len(rows) // 2)
        half = 0.5 if self.kind == "double" else 0
        for row in rows:
            for name in "vw":
                if row[name] is not None:
                    row[name] = row[name] + half * self.random.randrange(2) + self.centre * self.chance(0.8)
            row["t"] *= self.scale
        if self.chance(0.3):  # a silence
            edge, gap = self.random.choice([row["t"] for row in rows]), self.random.choice((2**20, 2**53, 2**60))
            for row in rows:
                row["t"] += gap * (row["t"] >= edge)
        base = self.random.choice((0, 0, -(2**63), -(2**53), 2**31 - 1, 2**53, 2**63))
        lowest, highest = min(row["t"] for row in rows), max(row["t"] for row in rows)
        shift = min(max(base, -(2**63) - lowest), 2**63 - 1 - highest)
        for row in rows:
            row["t"] += shift
        return rows

    def plain_table(self, count: int) -> list[dict[str, Any]]:
        return [
            {
                "i": place,
                "k": self.random.choice((1, 2, None)),
                "t": self.random.randrange(6),
                "v": self.random.choice((None, 0, 1, 2, 3, 1, 2)),
                "w": self.random.choice((0, 1, 2, None)),
            }
            for place in range(count)
        ]


def _nodes(tree: RowPattern) -> list[RowPattern]:
    from hamlet.patterns.clause.tree import nodes

    return list(nodes(tree))


def _default(value: Any, other: Any) -> Any:
    return other if value is None else value


def _and(left: Any, right: Any) -> Any:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def _or(left: Any, right: Any) -> Any:
    if left is True or right is True:
        return True
    return None if left is None or right is None else False


def _compare(sign: str, left: Any, right: Any) -> Any:
    if left is None or right is None:
        return None
    return {
        "=": left == right,
        "<>": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }[sign]


KEYWORDS = ({"v": "value", "w": "name"}, {"v": "year", "w": "row"}, {"v": "last", "w": "match"})


def outcome(case: Case, dialect: str = "duckdb") -> tuple[Any, Any]:
    """What the engine and the oracle give: rows, or that matching could not go on."""
    try:
        expected: Any = case.expected()
    except oracle.CannotSkip:
        expected = "cannot skip"
    try:
        found: Any = [tuple(row.values()) for row in hamlet.sql(case.sql, {"t": case.table}, dialect=dialect).rows()]
    except (hamlet.DataError, hamlet.WorkloadError) as error:
        found = "cannot skip" if "AFTER MATCH SKIP" in str(error) else str(error)
    return found, expected


def pushed(case: Case, seed: int, sizes: Sequence[int] = (1, 1, 2, 3)) -> tuple[Any, Any]:
    """What the rows give that come in batches of any size, late and saved in between, and what they give at once."""
    from hamlet.matching import Matcher

    dice = random.Random(seed)
    schema = case.table.schema
    try:
        expected = hamlet.sql(case.sql, {"t": case.table}).rows()
    except hamlet.DataError:
        return [], []
    late = dice.choice((0, 0, 2, 10))
    rows = sorted(case.rows, key=lambda row: row["t"] + (dice.randrange(late) if late else 0))
    matcher = Matcher(case.sql, schema, lateness=late)
    found, place = [], 0
    while place < len(rows):
        count = dice.choice(sizes)
        found += matcher.push(rows[place : place + count])
        place += count
        if dice.random() < 0.3:
            matcher = Matcher.restore(case.sql, matcher.save())
        if dice.random() < 0.3 and place < len(rows):
            time = min(row["t"] for row in rows[place:])
            found += matcher.advance(time) if abs(time) < 2**61 else []  # no promise goes further
    found += matcher.close()
    return sorted(repr(tuple(row.values())) for row in found), sorted(repr(tuple(row.values())) for row in expected)


def in_files(case: Case, dice: random.Random, folder: Path) -> list[tuple[Any, ...]]:
    """The rows of a run over one to three files whose columns stand in another order; empty ones are left out."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table, ending = case.table, dice.choice(("parquet", "parquet", "jsonl"))
    whole = [name for name in table.column_names if ending == "jsonl" and table[name].null_count == len(table)]
    if whole:  # JSON lines say nothing of the type of such a column
        ending = "parquet"
    of = [dice.randrange(3) for _ in range(len(table))]
    paths = []
    for place in sorted(set(of)):
        part = table.filter(pa.array([each == place for each in of]))
        part = part.select(dice.sample(part.column_names, 5))
        empty = [name for name in part.column_names if part[name].null_count == len(part) < len(table)]
        others = [name for name in empty if table[name].null_count < len(table)]
        part = part.drop_columns(others)
        path = folder / f"{place}.{ending}"
        if ending == "parquet":
            pq.write_table(part, path)
        else:
            path.write_text("".join(json.dumps(each) + "\n" for each in part.to_pylist()))
        paths.append(str(path))
    found = hamlet.sql(case.sql, {"t": paths}, missing_columns="null")
    return [tuple(row.values()) for row in found.rows()]


def compare_wild(seed: int, folder: Path) -> str:
    """Compare one seed: 'equal', or 'refused' where a number is beyond what the host computes with."""
    case = Generator(seed, labels=seed % 3 > 0, back=seed % 2 > 0, wild=True).case()
    found, expected = outcome(case)
    if isinstance(found, str) and re.search("[Oo]verflow|[Oo]ut of [Rr]ange|out of range", found):
        return "refused"
    said = f"seed {seed}\n{case.sql}\n{case.rows}\n"
    assert found == expected, f"{said}found    {found}\nexpected {expected}"
    if expected == "cannot skip":
        return "equal"
    dice = random.Random(seed)
    if "ALL ROWS" not in case.sql:  # the order of columns is that of the table
        several = in_files(case, dice, folder)
        assert several == expected, f"{said}files    {several}\nexpected {expected}"
    if "$" not in case.sql:
        try:
            rows, wanted = pushed(case, seed, (1, 63, 64, 65, 66, 100_000))
        except hamlet.DataError as error:
            if "needs more than 64 bits" in str(error):
                return "refused"
            raise
        assert rows == wanted, f"{said}pushed   {rows}\nexpected {wanted}"
    return "equal"


def compare_pushed(seed: int) -> bool | None:
    """Compare one seed's rows one by one with a run over all of them: whether they need no host; None for no case."""
    from hamlet.matching import Matcher

    case = Generator(seed, kind=("int64", "decimal", "double", "decimal", "int32")[seed % 5]).case()
    if "$" in case.sql:
        return None
    found, expected = pushed(case, seed)
    assert found == expected, f"seed {seed}\n{case.sql}\n{case.rows}\nfound    {found}\nexpected {expected}"
    return Matcher(case.sql, case.table.schema).goes_directly


MORE = """( ) , ; * + ? | {- -} {2} ^ $ . .. :: -> [ ] PREV( FIRST( LAST( NEXT( SUM( COUNT(*) CLASSIFIER() RUNNING FINAL
    MATCH_NUMBER() PATTERN DEFINE MEASURES SUBSET WITHIN WITH UNMATCHED ROWS SELECT FROM WHERE ORDER BY AS x u.v a.b.c 1
    -1 0.5 1e3 'text' "q NULL true NOT IN AND OR IS CASE WHEN END OVER DISTINCT CAST( AS DATE) é -- /* $$ {1,99}"""


def mutated(seed: int) -> tuple[str, Case]:
    """A statement of which some tokens were left out, doubled, swapped or put in."""
    dice = random.Random(seed)
    case = Generator(seed).case()
    tokens = re.findall(r"\s+|\w+|.", case.sql)
    for _ in range(dice.choice((1, 1, 2, 3, 6))):
        place, other = dice.randrange(len(tokens)), dice.randrange(len(tokens))
        kind = dice.randrange(5)
        if kind == 0 and len(tokens) > 5:
            del tokens[place : place + dice.choice((1, 1, 2, 5))]
        elif kind == 1:
            tokens.insert(place, tokens[other])
        elif kind == 2:
            tokens[place], tokens[other] = tokens[other], tokens[place]
        else:
            tokens.insert(place, f" {dice.choice(MORE.split())} ")
    return "".join(tokens), case


def check_mutated(seed: int) -> str:
    """Run one: 'rows', or 'refused' by an error with its places and without names of this project, within a second."""
    from hamlet.matching import Matcher

    text, case = mutated(seed)
    began, said = time.process_time(), None
    try:
        if seed % 3:
            hamlet.sql(text, {"t": case.table})
        else:
            Matcher(text, case.table.schema).close()
    except hamlet.HamletError as error:
        said = error
    took = time.process_time() - began
    assert took < 1, f"seed {seed} took {took:.1f} s\n{text}"
    if said is None:
        return "rows"
    assert "__hamlet" not in str(said), f"seed {seed}\n{text}\n{said}"
    for each in getattr(said, "diagnostics", ()):
        assert 0 <= each.span.start <= each.span.end <= len(text), f"seed {seed}\n{text}\n{said}"
    return "refused"


def _main_mutated(low: int, high: int) -> None:
    counts: Counter[str] = Counter()
    for seed in range(low, high):
        try:
            counts[check_mutated(seed)] += 1
        except BaseException as error:
            counts["failed"] += 1
            sys.stdout.write(f"seed {seed}: {type(error).__name__}: {error}\n{mutated(seed)[0]}\n")
    sys.stdout.write(f"{dict(counts)}\n")


def _main_pushed(low: int, high: int) -> None:
    counts = Counter(compare_pushed(seed) for seed in range(low, high))
    sys.stdout.write(f"{counts[True] + counts[False]} cases agree, {counts[True]} of them without the host\n")


def _main_wild(low: int, high: int) -> None:
    counts: Counter[str] = Counter()
    for seed in range(low, high):
        with tempfile.TemporaryDirectory() as folder:
            counts[compare_wild(seed, Path(folder))] += 1
    sys.stdout.write(f"{dict(counts)}\n")


def on_spark(case: Case, session: Any, dialect: str = "spark") -> tuple[Any, Any]:
    """The rows of a job on Spark, and those of the oracle, as texts.

    ARRAY_AGG of Spark leaves NULL out and gives an empty list for no value, in any order where it is DISTINCT.
    """
    from pyspark.errors import PythonException

    def plain(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return sorted(each for each in value if each is not None) or None
        return value

    try:
        expected: Any = sorted(repr([plain(each) for each in row]) for row in case.expected())
    except oracle.CannotSkip:
        expected = "cannot skip"
    frame = session.createDataFrame(case.table)
    try:
        rows = hamlet.spark.sql(case.sql, {"t": frame}, dialect=dialect).toArrow().to_pylist()
        found: Any = sorted(repr([plain(each) for each in row.values()]) for row in rows)
    except (PythonException, hamlet.HamletError) as error:
        found = "cannot skip" if "AFTER MATCH SKIP" in str(error) else str(error)
    return found, expected


def spark_session() -> Any:
    """A session for small tables."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").config("spark.sql.shuffle.partitions", "2")
    for name, value in (("spark.ui.enabled", "false"), ("spark.log.level", "OFF")):
        builder = builder.config(name, value)
    return builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", default="0:1000")
    parser.add_argument("--wild", action="store_true", help="values and times at the edges of their types")
    parser.add_argument("--mutated", action="store_true", help="run statements with mistakes: none gives a traceback")
    parser.add_argument("--pushed", action="store_true", help="compare rows that come one by one with a run")
    parser.add_argument("--spark", action="store_true", help="compare jobs on Spark with the oracle")
    given = parser.parse_args()
    low, high = map(int, given.seeds.split(":"))
    if given.wild:
        _main_wild(low, high)
        return
    if given.mutated:
        _main_mutated(low, high)
        return
    if given.pushed:
        _main_pushed(low, high)
        return
    session = spark_session() if given.spark else None
    nonempty = 0
    for seed in range(low, high):
        case = Generator(seed, labels=seed % 3 > 0).case()
        dialect = DIALECTS[seed // 2 % len(DIALECTS)]
        if seed % 2:
            case = case.renamed(KEYWORDS[seed // 6 % len(KEYWORDS)])
        try:
            found, expected = on_spark(case, session, dialect) if session else outcome(case, dialect)
        except Exception as error:
            sys.stdout.write(f"seed {seed}\n{case.sql}\n{case.rows}\n")
            raise SystemExit(f"{type(error).__name__}: {error}") from error
        nonempty += bool(expected) and expected != "cannot skip"
        if found != expected:
            sys.stdout.write(f"seed {seed}\n{case.sql}\n{case.rows}\nfound    {found}\nexpected {expected}\n")
            raise SystemExit(1)
    sys.stdout.write(f"{high - low} cases agree, {nonempty} of them with rows\n")


if __name__ == "__main__":
    main()
