"""What a specification may say: accepted and refused texts by rule, types and pacing that are found out, order."""

from __future__ import annotations

from fractions import Fraction

import pytest

import hamlet.streams
from hamlet.errors import WorkloadError
from hamlet.streams.check.analysis import analyse
from hamlet.streams.program.ir import ANY_EVENT, EventPacing, PeriodicPacing, Program

SHOP = "import math import regex input price: Float64, volume: UInt64, user: String, vip: Bool, item: Int64 "

ACCEPTED = {
    "no statement": "",
    "both inputs": "output o := price * cast<UInt64, Float64>(volume)",
    "disjunction": "output o @(price || volume) := 1 output p @price := o",
    "implied conjunction": "output o @(price || volume) := 1 output p @price && item := o",
    "any event": "output o @true := price.hold(or: 0.0)",
    "formula of a stream": "output o @(price && volume) := 1 output p @o := o output q @(o || item) := 2",
    "common frequency": "output a @6Hz := 1 output b @4Hz := 2 output c := a + b output d @1Hz := c",
    "slower reader": "output a @20Hz := true output b @10Hz := a && true",
    "offset of a faster stream": "output a @4Hz := 0 output b @2Hz := a[-1].defaults(to: 0)",
    "window in a periodic stream": "output w @5Hz := item.aggregate(over: 3s, using: Σ)",
    "window as long as a period": "output w @1Hz := item.aggregate(over: 2Hz, using: #)",
    "discrete window": "output w := item.aggregate(over_discrete: 5, using: max).defaults(to: 0)",
    "discrete window of a periodic stream": "output a @1Hz := 1 output w := a.aggregate(over_discrete: 5, using: sum)",
    "short window": "output w @1Hz := item.count(6s) + volume.hold(or: 1)",
    "filter": "output a eval when vip with item output b eval when vip with a",
    "stronger filter": "output a eval when vip with 1 output b eval when vip && item > 1 with a",
    "both filters": "output a eval when vip with 1 output b eval when item > 1 with 2 "
    "output c eval when vip && item > 1 with a + b",
    "one side of a filter": "output a eval @(vip && item) when vip || item > 1 with 1 "
    "output b eval @(vip && item) when item > 1 with a",
    "filter of a filter": "output a eval when vip with item output b eval when vip && a = 5 with a",
    "filter of the own past": "output a eval when a[-1].defaults(to: 0) < 5 with item",
    "self": "output a := self[-1].defaults(to: 0) + item output b @item := self.offset(by: -1).defaults(to: 1) "
    "output c(u: String) spawn with user eval when user = u with self[-1].defaults(to: 0) + 1",
    "type arguments": 'output a := max<Int64>(item, 2) output b := user.matches<String>(regex: "x") '
    "output c := sqrt<Float64>(price)",
    "short floats": "output a: Float16 @item := 1.0",
    "unread parameters": "output a(_: Int64, _: Bool) spawn with (item, vip) eval @item with 1",
    "a value without a place": 'output a := "of {{}}".format(item, vip)',
    "words that are names": "output eval := item output type := eval",
    "several evals": "output a eval @item when item = 0 with 1 eval @item when item > 0 with 2 "
    "output b eval when item = 0 || item > 0 with a",
    "evals of other inputs": "output a eval @item with item eval @(vip && item) with 2",
    "instances": "output n(u: String) spawn with user eval when user = u with n(u).last(or: 0) + 1",
    "instances alike": "output a(u) spawn with user when vip eval @user with 1 "
    "output b(v) spawn with user when vip eval with a(v) + a(v)[-1].defaults(to: 0)",
    "instance of a condition": "output a(u) spawn with user when vip eval @user with true "
    "output b(u) spawn with user when vip eval when a(u) with u",
    "any instance": 'output a(u) spawn with user eval @user with 1 output b @price := a("x").hold(or: 0)',
    "periods of one spawn": "output a spawn when vip eval @2Hz with 1 output b spawn when vip eval @1Hz with a",
    "global period": "output a @2Hz := 1 output b spawn when vip eval @Global(1Hz) with a",
    "spawn without parameters": "output a spawn @user eval @user with 1 close @1Hz",
    "close alike": "output a close when vip eval with item output b close when vip eval with a",
    "close earlier": "output a close when vip && item > 1 eval @item with 1 output b close when vip eval @item with a",
    "close by the own value": "output a(u) spawn with user eval @user with 1 close when a(u) > 3",
    "delay": "output a spawn when item = 1 eval @1Hz with vip.hold(or: true) close when if true then true else a",
    "instances together": "output a(u) spawn with user eval @user with item.hold(or: 0) "
    "output b @user := a.aggregate(over_instances: all, using: max).defaults(to: 0) "
    "output c := a.aggregate(over_instances: fresh, using: count)",
    "get and is_fresh": "output a @price := if item.is_fresh() then item.get(or: 1) else 2",
    "window against hold": "output a @item := b.hold(or: 1) output b @1Hz := a.aggregate(over: 1s, using: sum)",
    "tuples": 'output a := (item, (vip, user)) output b := a.1.0 output c := a[-1].1.1.defaults(to: "") '
    "output d @item := a.hold().0.defaults(to: 1)",
    "named parts": "type Place { x: Float64, y: Float64 } input here: Place output d := here.x + here.y",
    "functions": "output a := sqrt(price) + sin(price) + max(price, 1.0) + abs(price) + round(price, 2) "
    "output l := log(price, 10) + ln(price) + exp(price) "
    'output b := delta(item, or: 0) % 7 ** 2 output c := user.matches(regex: r#"a"b"#)',
    "conversions": "output a: Float64 := cast(item) output b := widen<UInt64>(volume) output c: Int64 := cast(price)",
    "words and signs": "output a := not vip and (vip or !vip) implies vip → vip ∧ ¬ vip ∨ vip "
    "output b := item ≠ 1 && item ≤ 2 && item == 3 output c := item & 3 | 4 ^ 5 << 1 output d := -item ** 2",
    "raw text": 'output a @item := r#"a "quoted" text"# output b @item := "two\nlines \\" one"',
    "triggers": 'trigger price > 5.0 "high" trigger @1Hz price.hold(or: 0.0) > 5.0 '
    'trigger eval @1Hz when true trigger (u) spawn with user eval @user when u = user with "{{}}: {{u}}".format(u, u)',
    "constants": 'constant c: Float64 := -5.0 constant t := (1, (true, "a")) '
    "output a := price + c output b @item := t.1.1",
    "mirror": "output m mirrors n when item > 3 output n(u) spawn with user eval @(user && item) with 1",
    "tags": '#![title="shop", verbose] #[colour="red"] output a := item #[x] #[y] trigger item > 1',
    "real time": "output a @item := price.offset(by: -1.5s).defaults(to: 0.0) + price[-2min].defaults(to: 0.0)",
    "no value": "output a eval when vip output b eval @1Hz",
    "column names": "output trigger_ := item output q1::count := item output time := price output value := time",
    "this value": "output a := item[0] + item.offset(by: 0s)",
    "type as a name": 'input type: String output a := type = "buy" type P { x: Int64 } output b @type := a '
    'trigger type != ""',
    "comments": "/* output x := y */ output a := item // + price\n output b := a /* again */ + a",
}

REFUSED = {
    "keyword as a name": "input error: Int8",
    "keyword in capitals": "output Any := item",
    "another type argument": "output a := max<Int16>(item, 2)",
    "two type arguments": "output a := max<Int16, Int16>(1, 2)",
    "text of format from a stream": "output a := user.format(item)",
    "itself in a trigger": "trigger self > 1",
    "too few inputs": "output o @(price || volume) := price",
    "event in a periodic stream": "output o @1Hz := price",
    "periodic in an event-driven stream": "output a @1Hz := 1 output o := a + item",
    "incompatible frequencies": "output a @3Hz := 1 output b @2Hz := a[-1].defaults(to: 0)",
    "window in an event-driven stream": "output w := item.aggregate(over: 3s, using: sum)",
    "discrete window elsewhere": "output w @vip := item.aggregate(over_discrete: 3, using: sum)",
    "never evaluated": "output w := w[-1].defaults(to: 0) + 1",
    "only held": "output w := item.hold(or: 0)",
    "periods from two beginnings": "output a @5Hz := 1 output b spawn when vip eval @5Hz with a",
    "wrong instance": "output a(u) spawn with user eval @user with 1 output b(v) spawn with item eval with a(v)",
    "argument that is no parameter": "output a(u) spawn with user eval @user with 1 "
    "output b(v) spawn with user eval with a(user)",
    "spawned and not spawned": "output a spawn when vip eval @item with 1 output b := a",
    "spawned otherwise": "output a spawn when vip eval @item with 1 output b spawn when !vip eval @item with a",
    "spawned at more events": "output a(u) spawn @(user && vip) with user eval @user with 1 "
    "output b(u) spawn with user eval @user with a(u)",
    "weaker filter": "output a eval when vip && item > 1 with 1 output b eval when vip with a",
    "no filter": "output a eval when vip with 1 output b := a",
    "trigger on a filtered stream": "output a eval when vip with item trigger a > 3",
    "not closed": "output a close when vip eval @item with 1 output b := a",
    "closed later": "output a close when vip eval @item with 1 output b close when vip && item > 1 eval @item with a",
    "spawn by an instance": "output a(u) spawn with user eval @user with user "
    "output b(v) spawn with a(user) eval @1Hz with 1",
    "filter by an instance": "output a(u) spawn with user eval @user with true output b eval when a(user) with user",
    "cycle": "output a := b + item output b := a",
    "cycle by hold": "output a @item := b.hold(or: 0) output b @item := a.hold(or: 0)",
    "cycle by a window": "output a @1Hz := b output b @1Hz := a.aggregate(over: 1s, using: sum)",
    "cycle by spawn": "output a spawn @item when b.hold(or: true) eval @item with true "
    "output b @item := a.hold(or: false)",
    "get across": "output a @1Hz := item.get(or: 0)",
    "fresh across": "output a @1Hz := 1 output b @item := a.is_fresh()",
    "evals without pacing": "output a eval when vip with 1 eval when !vip with 2",
    "text and number": "output a := user + 1",
    "integer and Float": "output a := price + 1",
    "two widths": "input narrow: Int8 output a := narrow + item",
    "missing default": "output a := item[-1] + 1",
    "optional output": "output a := item[-1]",
    "optional part": "output a := (item[-1], 1)",
    "default of a value": "output a := item.defaults(to: 1)",
    "default of a sum": "output a @1Hz := item.aggregate(over: 1s, using: sum).defaults(to: 1)",
    "optional in a message": 'output a := "{{}}".format(item[-1])',
    "ordering of optionals": "output a := item[-1] < item[-2]",
    "condition": "output a := if item then 1 else 2",
    "message": "trigger eval when vip with item",
    "trigger without condition": "trigger eval @item",
    "no import": "output c := sqrt(price)",
    "unknown type": "input b: Float128",
    "optional input": "input b: Int64?",
    "parameter of an input": "input b(p: Int64): Int64",
    "constant expression": "constant c: Int64 := 1 + 1",
    "constant of another type": "constant c: Float64 := 1",
    "column as parameter": "output a(stream) spawn with user eval @user with 1",
    "fresh instances of a period": "output a(u) spawn with user eval @1Hz with 1 "
    "output b @1Hz := a.aggregate(over_instances: fresh, using: sum)",
    "endless type": "output a @item := (a[-1].defaults(to: a), 1)",
    "pacing in a circle": "output a @b := 1 output b @a := 1",
}


@pytest.mark.parametrize("text", ACCEPTED.values(), ids=ACCEPTED)
def test_accepted(text: str) -> None:
    analyse(SHOP + text if text else text)


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    start = SHOP.replace("import math ", "") if name == "no import" else SHOP
    with pytest.raises(WorkloadError) as raised:
        analyse(start + REFUSED[name])
    assert all(each.message and each.format() for each in raised.value.diagnostics)


def program(text: str) -> Program:
    return analyse(SHOP + text).program


def type_of(text: str, name: str = "o") -> str:
    return str(program(text).by_name[name].type)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("output o @item := 5", "Int64"),
        ("output o @item := -5.5", "Float64"),
        ("output o := item.aggregate(over_discrete: 3, using: count)", "UInt64"),
        ("output o := item.aggregate(over_discrete: 3, using: integral)", "Float64"),
        ("output o := price.aggregate(over_discrete: 3, using: sd).defaults(to: 1.0)", "Float64"),
        ("output o := (item, vip, (user, 1.0))", "(Int64, Bool, (String, Float64))"),
        ("output o @item := 1 input narrow: Int8 output p := narrow + o.hold(or: 2)", "Int8"),
        ("output o := if vip then volume else 0", "UInt64"),
        ("output o := delta(price, or: 1.0)", "Float64"),
        ("output o: Int16 := cast(price)", "Int16"),
        ("output o @1Hz := o[-1].defaults(to: 1)", "Int64"),
        ("output o @item := o[-1].defaults(to: p[-1].defaults(to: 3)) output p: UInt8 @item := o", "UInt8"),
        ("output o := round(item, 2)", "Float64"),
        ("output o eval when vip", "()"),
    ],
)
def test_types_are_found_out(text: str, kind: str) -> None:
    assert type_of(text) == kind


def test_types_of_parameters() -> None:
    stream = program("output a(u, v) spawn with (user, item) eval @1Hz with 1").by_name["a"]
    assert [(name, str(kind)) for name, kind in stream.parameters] == [("u", "String"), ("v", "Int64")]


@pytest.mark.parametrize(
    ("text", "pacing"),
    [
        ("output o := price", EventPacing((1,))),
        ("output o := if vip then price else 1.0", EventPacing((0b1001,))),
        ("output o @(price || volume) := 1", EventPacing((1, 2))),
        ("output o @((price && volume) || price) := 1", EventPacing((1,))),
        ("output o @((price || volume) && (price || vip)) := 1", EventPacing((1, 0b1010))),
        ("output o @true := 1", ANY_EVENT),
        ("output o @2.5Hz := 1", PeriodicPacing(Fraction(2, 5))),
        ("output o @90min := 1", PeriodicPacing(Fraction(5400))),
        ("output a @2Hz := 1 output b @0.3Hz := 1 output o := a + b", PeriodicPacing(Fraction(10))),
        ("output o spawn when vip eval @3Hz with 1", PeriodicPacing(Fraction(1, 3), local=True)),
        ("output o spawn when vip eval @Global(3Hz) with 1", PeriodicPacing(Fraction(1, 3))),
        ("output a := o[-1].defaults(to: 1) + item output o := a[-1].defaults(to: 1)", EventPacing((0b10000,))),
    ],
)
def test_pacing_is_found_out(text: str, pacing: EventPacing | PeriodicPacing) -> None:
    assert program(text).by_name["o"].evals[0].pacing == pacing


def test_deadlines_are_rounded_down() -> None:
    third = PeriodicPacing(Fraction(1, 3))
    assert [third.deadline(k) for k in (1, 2, 3, 3_000_000)] == [333_333_333, 666_666_666, 10**9, 10**15]


def test_layers() -> None:
    found = program(
        "output c := b output b := item output old := c[-1].defaults(to: 0) output s(u) spawn with user when c > 1 "
        "eval @1Hz with 1 output w @1Hz := c.aggregate(over: 1s, using: sum)"
    )
    names = [
        [("spawn " if task.spawn else "") + found.streams[task.stream].name for task in layer] for layer in found.layers
    ]
    assert names == [[], ["b", "old", "w"], ["c"], ["spawn s"], ["s"]]


def test_many_streams_and_long_chains() -> None:
    lines = [f"output s{number} := s{number + 1} + 1" for number in range(1500)] + ["output s1500 := item"]
    assert len(program(" ".join(lines)).layers) == 1502
    lines[-1] = "output s1500 := s0"
    with pytest.raises(WorkloadError, match=r"s0 -> s1 -> s2 -> s3 -> s4 -> s5 -> \(1493 others\)"):
        program(" ".join(lines))


@pytest.mark.parametrize("backwards", [False, True])
def test_tuples_that_double_are_refused_soon(backwards: bool) -> None:
    lines = ["output t0 := (item, item)", *(f"output t{n + 1} := (t{n}, t{n})" for n in range(40))]
    with pytest.raises(WorkloadError, match=r"is a tuple of [\d,]+ values; at most 1,000 are possible"):
        program(" ".join(lines[::-1] if backwards else lines))
    assert program(" ".join(lines[:9])).streams[-1].name == "t8"  # 512 values


DEEP = ["(" * 400 + "1" + ")" * 400, "-" * 400 + "item", "item" + "[-1]" * 400]


@pytest.mark.parametrize("inside", DEEP, ids=["brackets", "signs", "offsets"])
def test_deep_nesting_is_refused(inside: str) -> None:
    with pytest.raises(WorkloadError, match="nests too deeply"):
        analyse(f"input item: Int64 output o @item := {inside}")


@pytest.mark.parametrize("operator", ["+", "-", "&&", "||"])
def test_operators_in_a_row_are_flat(operator: str) -> None:
    kind, unit = ("Bool", "item") if operator in ("&&", "||") else ("Int64", "1")
    text = f"input item: {kind} output o @item := item" + f" {operator} {unit}" * 2_000
    value = hamlet.streams.run(
        hamlet.streams.Specification.parse(text), [{"time": 1, "item": 1 if kind == "Int64" else True}], values=True
    ).rows()
    assert value == [{"stream": "o", "time": 1, "value": {"+": 2001, "-": -1999}.get(operator, True)}]


def test_more_operators_in_a_row_than_can_be_read() -> None:
    with pytest.raises(WorkloadError, match=r"this expression has more than 2,500 operators in a row"):
        analyse("input item: Int64 output o @item := 1" + " + 1" * 3_000)
