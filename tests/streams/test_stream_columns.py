"""Batches in columns give the rows, the errors and the state that events taken one by one give.

Random specifications whose streams read no own past, over traces that are long enough for columns: values are missing,
times stand still, integers overflow or divide by zero now and then.
"""

from __future__ import annotations

from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from hamlet.errors import DataError
from hamlet.streams import Monitor, Specification, run
from hamlet.streams.evaluate.compile import FEATURES

KINDS = {"a": "Int64", "b": "UInt64", "c": "Float64", "d": "Bool", "s": "String"}
NUMBERS = ("Int64", "UInt64", "Float64")
ONE_BY_ONE = ""
FUNCTIONS = ("count", "sum", "avg", "min", "max", "integral", "var", "median", "pctl80", "last")


class Drawing:
    """A random specification."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.streams = dict(KINDS)

    def text(self) -> str:
        """Inputs, outputs, windows and triggers."""
        lines = ["import math", *(f"input {name}: {kind}" for name, kind in KINDS.items())]
        for place in range(self.random.randint(1, 5)):
            kind = self.random.choice((*NUMBERS, "Bool"))
            pacing = self.random.choice(("@(a && b)", "@(a || c)", "@true", "@b", "@(a && b && c && d && s)"))
            value = self.expression(kind, 3, pacing)
            when = f"eval {pacing} when {self.expression('Bool', 2, pacing)} with {value}"
            clauses = self.random.choice((f"{pacing} := {value}", f"{pacing} := {value}", when))
            if self.random.random() < 0.2:
                clauses = f"{when} eval {pacing} with {self.expression(kind, 2, pacing)}"
            lines.append(f"output o{place}: {kind} {clauses}")
            self.streams[f"o{place}"] = kind
        for name, kind in list(self.streams.items()):
            if self.random.random() < 0.5:
                lines.append(f"output w_{name} @1Hz := {self.window(name, kind)}")
        if self.random.random() < 0.6:
            name = self.random.choice(list(self.streams))
            condition = self.expression("Bool", 1, "@true")
            lines.append(f'trigger eval @true when {condition} with "{{{{}}}}".format({self.read(name)})')
        if self.random.random() < 0.3:
            lines.append("output own @a := own.offset(by: -1).defaults(to: 0) + 1")
        return "\n".join(lines)

    def window(self, name: str, kind: str) -> str:
        """A window over a stream."""
        function = self.random.choice(FUNCTIONS if kind in NUMBERS else ("count", "last"))
        length = self.random.choice(("2s", "1500ms", "700ms", "5s"))
        plain = function in ("count", "sum", "integral")
        call = f"{name}.aggregate(over: {length}, using: {function})"
        if plain:
            return call
        float_only = function == "var" and kind != "Float64"
        return f"{name}.aggregate(over: {length}, using: count)" if float_only else f"{call}.defaults(to: {zero(kind)})"

    def read(self, name: str) -> str:
        """A value of a stream that has one at any event."""
        kind = self.streams[name]
        return self.random.choice(
            (f"{name}.hold(or: {zero(kind)})", f"{name}.get(or: {zero(kind)})", f"{name}.hold(or: {zero(kind)})")
        )

    def expression(self, kind: str, depth: int, pacing: str) -> str:
        """An expression of a type."""
        random = self.random
        names = [name for name, each in self.streams.items() if each == kind]
        if depth == 0 or random.random() < 0.2:
            inputs = [name for name in names if name in KINDS and "&&" in pacing and name in pacing]
            if inputs and random.random() < 0.6:
                name = random.choice(inputs)
                return random.choice((name, f"{name}.offset(by: -{random.randint(1, 3)}).defaults(to: {zero(kind)})"))
            if names and random.random() < 0.7:
                return self.read(random.choice(names))
            return literal(random, kind)
        part = [self.expression(kind, depth - 1, pacing) for _ in range(2)]
        if kind == "Bool":
            return self.condition(depth, pacing, part)
        if random.random() < 0.2:
            return f"(if {self.expression('Bool', depth - 1, pacing)} then {part[0]} else {part[1]})"
        if kind == "Float64" and random.random() < 0.2:
            return random.choice(
                (f"abs({part[0]})", f"round({part[0]}, 1)", f"sqrt(abs({part[0]}))", f"cos({part[0]})")
            )
        if random.random() < 0.1 and kind != "UInt64":
            other = "UInt64" if kind == "Float64" else "Float64"
            return f"cast<{other}, {kind}>({self.expression(other, depth - 1, pacing)})"
        if kind == "Float64" and random.random() < 0.1:
            return f"{part[0]} / {literal(random, kind)}"
        operator = random.choice("+-*+*" if kind != "UInt64" else "+*+|^")
        if random.random() < 0.1 and kind != "Float64":
            return (
                f"({part[0]} {random.choice('/%')} ({part[1]} | 1))"
                if random.random() < 0.9
                else f"({part[0]} / {part[1]})"
            )
        return f"({part[0]} {operator} {part[1]})"

    def condition(self, depth: int, pacing: str, part: list[str]) -> str:
        """A comparison, or what two conditions make."""
        random = self.random
        chance = random.random()
        if chance < 0.3:
            return f"({part[0]} {random.choice(('&&', '||'))} {part[1]})"
        if chance < 0.4:
            return f"!{part[0]}"
        if chance < 0.5:
            return f"{random.choice(list(self.streams))}.is_fresh()"
        if chance < 0.6:
            return f'(s.hold(or: "") {random.choice(("=", "!="))} "{random.choice("xyz")}")'
        kind = random.choice(NUMBERS)
        left, right = (self.expression(kind, depth - 1, pacing) for _ in range(2))
        return f"({left} {random.choice(('<', '<=', '=', '!=', '>', '>='))} {right})"


def zero(kind: str) -> str:
    """A literal of a type."""
    return {"Int64": "0", "UInt64": "0", "Float64": "0.0", "Bool": "false", "String": '""'}[kind]


def literal(random: Random, kind: str) -> str:
    """A random literal of a type."""
    if kind == "Bool":
        return random.choice(("true", "false"))
    return str(random.randint(0, 5)) + (".5" if kind == "Float64" else "")


def trace(seed: int, rows: int = 260) -> list[dict[str, Any]]:
    """Events with values for some of the inputs."""
    random = Random(seed)
    huge = random.random() < 0.15
    present = random.choice((0.3, 0.7, 1.0))
    time, events = 0, []
    for _ in range(rows):
        values: dict[str, Any] = {
            "a": random.randint(-5, 9) if not huge or random.random() < 0.9 else 2**62,
            "b": random.randint(0, 9),
            "c": random.randint(-20, 20) / 4,
            "d": random.random() < 0.5,
            "s": random.choice("xyz"),
        }
        events.append({"time": time, **{name: each for name, each in values.items() if random.random() < present}})
        time += random.choice((0, 0, 10**8, 10**8, 3 * 10**8, 10**9, 4 * 10**9 if random.random() < 0.2 else 0))
    return events


def outcome(text: str, events: list[dict[str, Any]], features: str | None) -> Any:
    """Rows and numbers of a run, or its error."""
    try:
        found = run(Specification.parse(text), events, values=True, time_unit="ns", features=features)
    except DataError as error:
        return str(error)
    return found.rows(), found.stats


@pytest.mark.parametrize("seed", range(30))
def test_columns_change_nothing(seed: int) -> None:
    text, events = Drawing(seed).text(), trace(seed)
    wanted = outcome(text, events, ONE_BY_ONE)
    assert outcome(text, events, None) == wanted
    assert outcome(text, events, "columns") == wanted


@pytest.mark.parametrize("seed", range(60, 72))
def test_columns_go_on_where_others_stopped(seed: int) -> None:
    text, events = Drawing(seed).text(), trace(seed)
    wanted = outcome(text, events, ONE_BY_ONE)
    assert pushed(text, events) == (wanted if isinstance(wanted, str) else wanted[0])


def pushed(text: str, events: list[dict[str, Any]]) -> Any:
    """What a monitor finds that gets events in pieces and is saved and restored in between."""
    monitor = Monitor(Specification.parse(text), values=True, time_unit="ns")
    rows: list[dict[str, Any]] = []
    try:
        for first in range(0, len(events), 100):  # the last piece is too short for columns
            rows += monitor.push(events[first : first + 100])
            monitor = Monitor.restore(monitor.spec, monitor.save())
        rows += monitor.close()
    except DataError as error:
        return str(error)
    return rows


def test_most_drawings_are_taken_in_segments_and_some_are_not() -> None:
    monitors = [Monitor(Specification.parse(Drawing(seed).text())) for seed in range(40)]
    segments = sum(each.evaluator.segments for each in monitors)
    assert 20 <= segments < 40
    assert set(FEATURES) == {"columns", "segments", "cells"}


@pytest.mark.parametrize(
    ("expression", "values", "said"),
    [
        ("a * a", [3] * 100 + [2**62], "beyond 64 bits"),
        ("10 / a", [5] * 90 + [0] * 3, "division by zero"),
        ("-a", [1] * 80 + [-(2**63)], "beyond 64 bits"),
        ("cast<Float64, Int64>(c)", [1.0] * 70 + [1e30], "does not fit"),
        ("sqrt(c)", [4.0] * 70 + [-1.0], "not a number"),
        ("c / c", [4.0] * 70 + [0.0], "not a number"),
    ],
)
def test_errors_name_the_first_event_that_has_one(expression: str, values: list[Any], said: str) -> None:
    name = "a" if isinstance(values[0], int) else "c"
    text = f"import math\ninput {name}: {KINDS[name]}\noutput o := {expression}"
    events = [{"time": place, name: each} for place, each in enumerate(values)]
    one, other = (str_of(text, events, features) for features in (None, ONE_BY_ONE))
    assert one == other
    assert said in one


def str_of(text: str, events: list[dict[str, Any]], features: str | None) -> str:
    """The error of a run."""
    with pytest.raises(DataError) as caught:
        run(Specification.parse(text), events, features=features)
    return str(caught.value)


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["x", None, "ü" * 9, "", "x"]),
        pa.array(["", "x", None, "ü" * 9, "", "x"]).slice(1),
        pa.array(["x", None, "ü" * 9, "", "x"], pa.large_string()),
        pa.array(["x", None, "ü" * 9, "", "x"], pa.string_view()),
        pa.array(["x", None, "ü" * 9, "", "x"]).dictionary_encode(),
        pa.DictionaryArray.from_arrays([0, 1, 2, 3, 0], pa.array(["x", None, "ü" * 9, ""])),
    ],
)
def test_texts_of_any_column(column: pa.Array) -> None:
    text = """input s: String
        output n(p: String) spawn with s eval when s = p with n(p).offset(by: -1).defaults(to: 0) + 1
        output before @s := s.offset(by: -1).defaults(to: "none")"""
    rows = run(Specification.parse(text), pa.table({"time": range(5), "s": column}), values=True).rows()
    assert [(row["p"], row["value"]) for row in rows if row["stream"] == "n"] == [
        ("x", 1),
        ("ü" * 9, 1),
        ("", 1),
        ("x", 2),
    ]
    assert [row["value"] for row in rows if row["stream"] == "before"] == ["none", "x", "ü" * 9, ""]


@pytest.mark.parametrize("values", [[2**53 + 1, 1.0], [Decimal(2**53 + 1), 1], [1, -(2.0**60)]])
def test_doubles_that_may_have_been_other_integers_are_refused(values: list[Any]) -> None:
    events = [{"time": place, "x": value} for place, value in enumerate(values)]
    with pytest.raises(DataError, match=r"column 'x'.* from 2\^53 on doubles do not tell integers apart"):
        run(Specification.parse("input x: Int64"), events)
    spec = Specification.parse("input x: Float64  output y := x")
    assert [row["value"] for row in run(spec, events, values=True).rows()] == [float(value) for value in values]


@pytest.mark.parametrize(("kind", "digits"), [(pa.float16(), 11), (pa.float32(), 24), (pa.float64(), 53)])
def test_integers_may_come_as_floats_of_any_width(kind: pa.DataType, digits: int) -> None:
    spec = Specification.parse("input x: Int64  output y := x + 1")

    def values(*given: float | None) -> list[int]:
        column = pa.array(given, pa.float64()).cast(kind)
        return [row["value"] for row in run(spec, pa.table({"time": range(len(given)), "x": column}), values=True)]

    assert values(1.0, None, -2.0, 2.0**digits - 1) == [2, -1, 2**digits]
    with pytest.raises(DataError, match=rf"in row 2 .* from 2\^{digits} on .* do not tell integers apart"):
        values(1.0, 2.0**digits)


def test_words_that_nothing_holds_are_forgotten() -> None:
    text = """input s: String
        output n(p: String) spawn with s eval when s = p with n(p).last(or: 0) + 1 close @s when s = p && n(p) = 2"""
    monitor = Monitor(Specification.parse(text), values=True)
    words = monitor.evaluator.store.words
    for first in range(0, 300_000, 50_000):
        names = [f"k{first + place // 2}" for place in range(50_000)]
        rows = monitor.push({"time": [first] * 50_000, "s": names})
        assert len(rows) == 50_000
        assert words.live < 140_000
    restored = Monitor.restore(monitor.spec, monitor.save())
    assert restored.push({"time": [10**6] * 2, "s": ["k0", "k0"]})[1]["value"] == 2


def test_many_streams_are_computed_for_fewer_events_at_a_time() -> None:
    outputs = [f"output o{place} := o{place - 1}.offset(by: -1).defaults(to: 1) + a" for place in range(1, 400)]
    text = "\n".join(
        ["input a: Int64", "output o0 := a", *outputs, 'trigger eval @a when o399 % 3 = -1 with "{{}}".format(a)']
    )
    events = {"time": list(range(12_000)), "a": [place * place % 11 - 5 for place in range(12_000)]}
    spec = Specification.parse(text)
    found, wanted = (run(spec, events, features=features).rows() for features in (None, ONE_BY_ONE))
    assert found == wanted
    assert len(found) > 100


def test_what_is_not_reached_is_no_error() -> None:
    text = "input a: Int64\noutput o := if a = 0 then 0 else 10 / a\noutput p eval when a != 0 with 10 % a"
    events = [{"time": place, "a": place % 3} for place in range(200)]
    rows = run(Specification.parse(text), events, values=True).rows()
    assert rows == run(Specification.parse(text), events, values=True, features=ONE_BY_ONE).rows()
    assert len(rows) > 300


def test_one_event_as_a_dict_is_taken_as_its_columns_are() -> None:
    text = """
    input a: Int64
    input b: Float64
    input c: String
    input d: Bool
    input e: UInt64
    output n := a.offset(by: -1).defaults(to: 0) + a
    output t := c
    trigger d "d"
    output m := b * 2.0
    output o := e
    """
    draw = Random(7)
    values = {
        "a": (0, -5, 1 << 40, None),
        "b": (0.5, -0.0, 1e300, 3, None),
        "c": ("", "\u00e9t\u00e9", "x", None),
        "d": (True, False, None),
        "e": (0, (1 << 63) - 1, None),
    }
    spec = Specification.parse(text)
    one, other = Monitor(spec, values=True), Monitor(spec, values=True)
    time = 0
    for _ in range(300):
        time += draw.choice([0, 1, 5])
        event = {"time": time, **{name: draw.choice(kinds) for name, kinds in values.items() if draw.random() < 0.8}}
        if draw.random() < 0.1:
            event["other"] = 1
        table = pa.table({name: [event.get(name)] for name in ("time", *values)}, _COLUMNS)
        assert one.push([event]) == other.push(table)
    assert one.close() == other.close()
    assert one.stats["events"] == other.stats["events"] == 300


_COLUMNS = pa.schema(
    [
        ("time", pa.int64()),
        ("a", pa.int64()),
        ("b", pa.float64()),
        ("c", pa.string()),
        ("d", pa.bool_()),
        ("e", pa.uint64()),
    ]
)
