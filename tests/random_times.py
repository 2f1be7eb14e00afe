"""Random queries over times as values, beside the oracle."""

from __future__ import annotations

import datetime
import random
from typing import Any

import hamlet
from hamlet.errors import DataError, OutputError, WorkloadError
from hamlet.language.parser import parse
from hamlet.oracle import evaluate
from tests.comparison import difference, in_any_order

EPOCH = datetime.datetime(1970, 1, 1)
_SECOND = 1_000_000


class Writer:
    """Writes expressions of a type; some of them have no value by the rules."""

    def __init__(self, chance: random.Random, *, dated: bool, results: bool, wrong: int) -> None:
        self.chance = chance
        self.dated = dated
        self.results = results
        self.wrong = wrong
        self.pair = False

    def pick(self, *choices: str) -> str:
        return self.chance.choice(choices)

    def event(self) -> str:
        if self.pair:
            return self.pick("B", "PREV(A)")
        return "B"

    def instant(self, depth: int) -> str:
        if depth > 0 and self.chance.random() < 0.5:
            sign = self.pick("+", "-")
            return f"({self.instant(depth - 1)} {sign} {self.length(depth - 1)})"
        name = self.pick("time", "at") if self.dated else "at"
        if self.results:
            return f"{self.pick('MIN', 'MAX', 'AVG')}({self.pick('', '', 'EVENTS ')}{self.pick('A', 'B')}.{name})"
        return f"{self.event()}.{name}"

    def length(self, depth: int) -> str:
        choice = self.chance.randrange(10)
        if self.wrong and self.chance.randrange(100) < self.wrong:
            return self.pick(self.number(0), self.instant(0), f"({self.instant(0)} * 2)")
        if depth > 0 and choice < 4:
            return f"({self.instant(depth - 1)} - {self.instant(depth - 1)})"
        if depth > 0 and choice < 6:
            return f"({self.length(depth - 1)} {self.pick('+', '-')} {self.length(depth - 1)})"
        if depth > 0 and choice < 8:
            by = f"{self.pick('*', '/')} {self.number(depth - 1)}"
            return self.pick(
                f"({self.length(depth - 1)} {by})", f"({self.number(depth - 1)} * {self.length(depth - 1)})"
            )
        if choice == 8:
            return f"-{self.length(0)}" if depth > 0 else self.length(1)
        if self.chance.random() < 0.4:
            return (
                self.pick("1 s", "2.5 s", "3 ms", "1 min", "0.001 ms")
                if self.dated
                else self.pick("1 s", "4 s", "1 min")
            )
        if self.results:
            return f"{self.pick('MIN', 'MAX', 'AVG', 'SUM')}({self.pick('', '', 'EVENTS ')}{self.pick('A', 'B')}.d)"
        return f"{self.event()}.d"

    def number(self, depth: int) -> str:
        if depth > 0 and self.chance.random() < 0.4:
            return f"({self.length(depth - 1)} / {self.length(depth - 1)})"
        if self.chance.random() < 0.5:
            return self.pick("2", "3", "0.1", "1.5", "-7", "0", "0.0", "0.3333")
        return f"{self.pick('SUM', 'MIN')}(B.v)" if self.results else f"{self.event()}.v"

    def comparison(self) -> str:
        sign = self.pick("<", "<=", ">", ">=", "=", "<>")
        kind = self.pick("instant", "length", "number", "text", "null")
        if kind == "text":
            text = self.pick("1970-01-01 00:00:03", "1970-01-01T00:00:04.500001", "1970-01-02")
            return f"{self.instant(1)} {sign} '{text}'"
        if kind == "null":
            return f"{self.length(2)} IS {self.pick('', 'NOT ')}NULL"
        one = getattr(self, kind)
        if self.chance.random() < 0.2:
            return f"{one(1)} {self.pick('', 'NOT ')}BETWEEN {one(1)} AND {one(1)}"
        return f"{one(2)} {sign} {one(1)}"


def case(seed: int, wrong: int = 0) -> tuple[str, list[dict[str, Any]], bool]:
    """Workload text, events and whether their times are timestamps."""
    chance = random.Random(seed)
    dated = chance.random() < 0.8
    micros = [chance.randrange(0, 8 * _SECOND) if dated else chance.randrange(8) for _ in range(chance.randrange(2, 8))]
    events: list[dict[str, Any]] = []
    for tick in sorted(micros):
        event: dict[str, Any] = {"time": tick, "type": chance.choice("AB"), "k": chance.randrange(2)}
        event["v"] = chance.choice([None, 0, 1, 2, -3])
        event["at"] = chance.choice([None, EPOCH + datetime.timedelta(microseconds=chance.randrange(8 * _SECOND))])
        event["d"] = chance.choice([None, datetime.timedelta(microseconds=chance.randrange(-_SECOND, 3 * _SECOND))])
        events.append(event)
    if chance.random() < 0.3:  # of what type an attribute is, the first events do not say
        for event in events[: chance.randrange(len(events))]:
            del event[chance.choice(["at", "d"])]
    where = Writer(chance, dated=dated, results=False, wrong=wrong)
    results = Writer(chance, dated=dated, results=True, wrong=wrong)
    conditions = [where.comparison()] * (chance.random() < 0.5)
    where.pair = True
    conditions += [where.comparison() for _ in range(chance.choice([0, 0, 1, 2]))]
    items = [
        getattr(results, chance.choice(["instant", "length", "number"]))(chance.choice([0, 1, 2])) for _ in range(2)
    ]
    listed = ", ".join(f"{item} AS x{place}" for place, item in enumerate(items))
    lines = [
        f"RETURN k, COUNT(*) AS n, {listed}",
        f"PATTERN {chance.choice(['SEQ(A, B)', 'SEQ(A+, B)', 'SEQ(A, B+)'])}",
    ]
    lines += [f"SEMANTICS {chance.choice(['NEXT', 'ANY', 'CONTIGUOUS'])}"] * (chance.random() < 0.3)
    lines += [f"WHERE {' AND '.join(conditions)}"] * bool(conditions)
    lines += [f"GROUP-BY {chance.choice(['k', 'k', 'k, FIRST(A.at)', 'k, LAST(B.d)', 'k, d'])}"]
    lines += [f"HAVING {results.comparison()}"] * (chance.random() < 0.5)
    lines += [f"TOP 1 BY {results.length(1)}"] * (chance.random() < 0.3)
    lines += [chance.choice(["WITHIN ALL", "WITHIN 5 s", "SPAN 4 s WITHIN ALL", "WITHIN 6 s SLIDE 2 s"])]
    text = "\n".join(lines)
    if chance.random() < 0.5:  # beside a query that asks something else of the same events
        where.pair = False
        text += f";\nRETURN COUNT(*) AS n PATTERN {chance.choice(['B', 'B+'])} WHERE {where.comparison()} WITHIN 5 s"
    return text, events, dated


def compare(seed: int, wrong: int = 0, **options: Any) -> str | None:
    """What differs; None where nothing does, "refused" where the text is refused before any event."""
    text, ticks, dated = case(seed, wrong)
    events = (
        [{**each, "time": EPOCH + datetime.timedelta(microseconds=each["time"])} for each in ticks] if dated else ticks
    )
    try:
        workload = hamlet.Workload.parse(text)
        hamlet.run(workload, events[:0])
    except WorkloadError:
        return "refused"
    expected: list[dict[str, Any]] | None
    try:
        expected = evaluate(parse(text), ticks, ticks_per_second=_SECOND if dated else 1, timestamps=dated)
    except DataError:
        expected = None
    if expected is not None and dated:
        for row in expected:
            for name in ("window_start", "window_end"):
                if row[name] is not None:
                    row[name] = EPOCH + datetime.timedelta(microseconds=row[name])
    chance = random.Random(seed)
    found: list[list[dict[str, Any]] | str] = []
    for way in ("run", "push"):
        try:
            if way == "run":
                found.append(hamlet.run(workload, events, **options).rows())
                continue
            engine = hamlet.Engine(workload, **options)
            rows, place = [], 0
            while place < len(events):
                size = chance.randrange(1, 4)
                rows += engine.push(events[place : place + size])
                place += size
                if chance.random() < 0.2:
                    engine = hamlet.Engine.restore(workload, engine.save())
            found.append(rows + engine.close())
        except WorkloadError:
            return "refused"
        except (DataError, OutputError) as error:
            if ", for the event" in str(error) and expected is not None:
                return "refused"  # a condition is asked of every event, which the oracle need not come to
            found.append(str(error))
    for rows_found in found:
        if expected is None or isinstance(rows_found, str):
            if expected is not None or not isinstance(rows_found, str):
                return f"{text}\n{events}\n{rows_found}\ninstead of {expected or 'an error'}"
            continue
        floats = options.get("numbers") == "float"
        wrong_rows = difference(in_any_order(rows_found), in_any_order(expected), floats=floats)
        if wrong_rows is not None:
            return f"{text}\n{events}\n{wrong_rows}\n{rows_found}\n{expected}"
    return None
