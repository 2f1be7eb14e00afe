"""Monitors of all notations are asked the same questions: notations x behaviours, each cell a test.

``python -m tests.notation.test_monitors`` prints the matrix.
"""

from __future__ import annotations

import contextlib
import copy
import datetime
import gc
import itertools
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import hamlet
import hamlet.policies as policies
import hamlet.streams as streams
from hamlet.errors import DataError, HamletError, MemoryLimitError, OptionError, RestoreError
from hamlet.matching import Matcher
from hamlet.runtime.monitor import Monitor

SIGNATURE = "p(u: int) q(u: int)"


@dataclass(frozen=True)
class Notation:
    """What the questions need to know of a notation.

    Attributes
    ----------
    name : str
    text : any
        What is monitored.
    other, commented : any
        Another text; the same one with comments and blanks.
    make : callable
        A monitor of a text.
    event : callable
        An event of a time and a number that matters.
    bad : dict
        An event, of time 3, with a value that cannot be read.
    unseen : tuple, or None
        A text that names what never comes, and that name.
    inclusive : int
        1 where an event at a time that was promised is late.
    grows : any
        A text that keeps more with every number.
    """

    name: str
    text: Any
    other: Any
    commented: Any
    make: Callable[..., Monitor]
    event: Callable[[Any, int], dict[str, Any]]
    bad: dict[str, Any]
    unseen: tuple[Any, str] | None
    inclusive: int = 0
    grows: Any = None

    def events(self, count: int = 40) -> list[dict[str, Any]]:
        times = itertools.accumulate(number * 7 % 3 for number in range(count))
        return [self.event(time, number * 5 % 4) for number, time in enumerate(times)]


def _engine(text: Any, **options: Any) -> Monitor:
    return hamlet.Engine(text, **options)


def _verdicts(text: Any, **options: Any) -> Monitor:
    return policies.Monitor(text, verdicts="equivalent", **options)


def _specification(text: Any, **options: Any) -> Monitor:
    return streams.Monitor(text, values=True, **options)


def _matcher(text: Any, **options: Any) -> Monitor:
    return Matcher(text, pa.schema([("time", pa.int64()), ("u", pa.int64())]), **options)


def _policy(text: str, signature: str = SIGNATURE) -> policies.Policy:
    return policies.Policy.parse(text, signature=signature)


def _pq(time: Any, number: int) -> dict[str, Any]:
    return {"time": time, "type": "pqpp"[number % 4], "u": number // 2}


QUERY = "RETURN COUNT(*), SUM(B.u) PATTERN SEQ(A, B+) GROUP-BY u WITHIN 6 s SLIDE 2 s"
LOLA = "input u: Int64  output n @1Hz := u.aggregate(over: 3s, using: sum)  trigger u > 2"
CLAUSE = "PARTITION BY u % 2 ORDER BY time MEASURES a.time AS since, SUM(b.u) AS n PATTERN (a b{2}) DEFINE b AS u < 9"
RULE = "ALWAYS FORALL u. p(u) IMPLIES EVENTUALLY[0,5] q(u)"
NOTATIONS = [
    Notation(
        "queries",
        hamlet.Workload.parse(QUERY),
        hamlet.Workload.parse(QUERY.replace("6 s", "8 s")),
        hamlet.Workload.parse("-- what matters\n" + QUERY.replace(" PATTERN", "\n\n   PATTERN")),
        _engine,
        lambda time, number: {"time": time, "type": "AB"[number % 2], "u": number // 2},
        {"time": 3, "type": "B", "u": "text"},
        (hamlet.Workload.parse(QUERY.replace("A,", "a,")), "a never occurs (did you mean A?)"),
    ),
    *(
        Notation(
            name,
            _policy(RULE),
            _policy(RULE.replace("5", "6")),
            _policy("(* what matters *)\n" + RULE.replace("IMPLIES", "\n\nIMPLIES")),
            make,
            _pq,
            {"time": 3, "type": "p", "u": "text"},
            (_policy(RULE.replace("q(u)", "Q(u)"), "p(u: int) Q(u: int)"), "Q never occurs (did you mean q?)"),
        )
        for name, make in (("policies", policies.Monitor), ("verdicts", _verdicts))
    ),
    Notation(
        "specifications",
        streams.Specification.parse(LOLA),
        streams.Specification.parse(LOLA.replace("3s", "4s")),
        streams.Specification.parse("// what matters\n" + LOLA.replace(" output", "\n\n  output")),
        _specification,
        lambda time, number: {"time": time, "u": number},
        {"time": 3, "u": "text"},
        (streams.Specification.parse(LOLA + "  input U: Int64  output v := U"), "U never occurs"),
        inclusive=1,
        grows=streams.Specification.parse("input u: Int64  output n(k) spawn with u eval when u = k with 1"),
    ),
    Notation(
        "row patterns",
        f"SELECT * FROM t MATCH_RECOGNIZE ({CLAUSE})",
        f"SELECT * FROM t MATCH_RECOGNIZE ({CLAUSE.replace('9', '8')})",
        f"-- what matters\nSELECT * FROM t\n\n  MATCH_RECOGNIZE ({CLAUSE})",
        _matcher,
        lambda time, number: {"time": time, "u": number},
        {"time": 3, "u": "text"},
        None,
        grows="SELECT * FROM t MATCH_RECOGNIZE (ORDER BY time MEASURES 1 AS x "
        "PATTERN (a+ b) DEFINE a AS u >= 0, b AS u < 0)",
    ),
]
each_notation = pytest.mark.parametrize("notation", NOTATIONS, ids=lambda each: each.name)


def rows_of(monitor: Monitor, batches: list[Any]) -> list[dict[str, Any]]:
    rows = [row for batch in batches for row in monitor.push(batch)]
    return rows + monitor.close()


def by_text(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, rows))


def whole(notation: Notation) -> list[dict[str, Any]]:
    return rows_of(notation.make(notation.text), [notation.events()])


# ------------------------------------------------------------------------------------------------ rows and batches


@each_notation
@pytest.mark.parametrize("size", [1, 2, 3, 7, 39])
def test_batches_make_no_difference(notation: Notation, size: int) -> None:
    events = notation.events()
    batches = [events[place : place + size] for place in range(0, len(events), size)]
    found = rows_of(notation.make(notation.text), batches)
    assert found
    assert by_text(found) == by_text(whole(notation))


@each_notation
def test_events_come_in_any_form(notation: Notation) -> None:
    table = pa.Table.from_pylist(notation.events())
    forms = [
        table,
        table.combine_chunks().to_batches()[0],
        {name: np.array(table.column(name).to_pylist()) for name in table.column_names},
        iter(notation.events()),
        pl.DataFrame(notation.events()),
    ]
    for form in forms:
        assert by_text(rows_of(notation.make(notation.text), [form])) == by_text(whole(notation))


@each_notation
def test_no_events_are_no_events(notation: Notation) -> None:
    monitor = notation.make(notation.text)
    assert monitor.push([]) == []
    assert by_text(rows_of(monitor, [notation.events(), []])) == by_text(whole(notation))


@each_notation
def test_disorder_within_the_lateness_makes_no_difference(notation: Notation) -> None:
    events = notation.events()
    for place in range(0, len(events) - 3, 4):  # events of a time keep their order
        events[place : place + 4] = sorted(events[place : place + 4], key=lambda each: -each["time"])
    found = rows_of(notation.make(notation.text, lateness=20), [[each] for each in events])
    assert by_text(found) == by_text(whole(notation))


# ----------------------------------------------------------------------------------------------------------- time


@each_notation
def test_an_event_at_a_promised_time_may_come(notation: Notation) -> None:
    """But not for a specification, whose deadlines of that time have run."""
    monitor = notation.make(notation.text)
    monitor.push([notation.event(1, 1)])
    monitor.advance(5 - notation.inclusive)
    monitor.push([notation.event(5, 1)])
    with pytest.raises(DataError, match=r"event 3 is late: its time is 4"):
        monitor.push([notation.event(4, 1)])
    if notation.inclusive:
        monitor.advance(5)
        with pytest.raises(DataError, match=r"event 3 is late: its time is 5"):
            monitor.push([notation.event(5, 1)])


@each_notation
def test_an_earlier_promise_changes_nothing(notation: Notation) -> None:
    monitor = notation.make(notation.text)
    monitor.push([notation.event(1, 1)])
    rows = monitor.advance(9)
    for time in (9, 3, -(10**6)):
        assert monitor.advance(time) == []
    with pytest.raises(DataError, match="late"):
        monitor.push([notation.event(8, 1)])
    again = notation.make(notation.text)
    again.push([notation.event(1, 1)])
    assert again.advance(9) == rows


@each_notation
def test_promises_before_the_first_event(notation: Notation) -> None:
    times: list[tuple[Any, Any]] = [(3, 9), (datetime.datetime(2024, 1, 1), datetime.datetime(2024, 1, 2))]
    for earlier, later in times:
        monitor = notation.make(notation.text)
        if notation.name in ("specifications", "row patterns") and not isinstance(earlier, int):
            continue  # the unit of time is known by the first event, or by the schema
        assert monitor.advance(later) == []
        assert monitor.advance(earlier) == []
        with pytest.raises(DataError, match="late"):
            monitor.push([notation.event(earlier, 1)])
        after = later + (1 if isinstance(later, int) else datetime.timedelta(seconds=1))
        monitor.push([notation.event(after, 1)])


@each_notation
@pytest.mark.parametrize("time", ["soon", None, True, float("nan"), [1]])
def test_what_is_no_time_is_refused(notation: Notation, time: Any) -> None:
    for count in (0, 3):
        monitor = notation.make(notation.text)
        monitor.push(notation.events()[:count])
        with pytest.raises(OptionError, match="time"):
            monitor.advance(time)
        rows = monitor.push(notation.events()[count:])
        assert rows is not None


@each_notation
def test_rows_come_when_time_has_passed(notation: Notation) -> None:
    """What a promise decides comes with it, and not a second time."""
    monitor = notation.make(notation.text)
    rows = monitor.push(notation.events())
    rows += monitor.advance(notation.events()[-1]["time"] + 100)
    rest = monitor.close()
    expected = by_text(whole(notation))
    if notation.name == "specifications":  # deadlines after the last event
        assert set(expected) <= set(by_text(rows + rest))
    else:
        assert by_text(rows + rest) == expected


# ----------------------------------------------------------------------------------------------------- late events


@each_notation
def test_a_late_event_takes_nothing_of_its_batch(notation: Notation) -> None:
    monitor = notation.make(notation.text)
    events = notation.events()
    rows = monitor.push(events[:20])
    before = monitor.save()
    late = {**events[0], "time": -5}
    with pytest.raises(DataError, match=r"event 22 is late: its time is -5"):
        monitor.push([events[20], late, events[21]])
    assert monitor.save() == before
    assert by_text(rows + monitor.push(events[20:]) + monitor.close()) == by_text(whole(notation))


@each_notation
def test_late_events_are_counted(notation: Notation) -> None:
    monitor = notation.make(notation.text, late="drop")
    events = notation.events()
    late = {**events[0], "time": -5}
    rows = monitor.push([*events[:20], late, late]) + monitor.push([late, *events[20:]]) + monitor.close()
    assert monitor.stats["late_events"] == 3
    assert by_text(rows) == by_text(whole(notation))


@each_notation
def test_errors_name_options_of_python(notation: Notation) -> None:
    monitor = notation.make(notation.text)
    monitor.push([notation.event(5, 1)])
    with pytest.raises(DataError) as caught:
        monitor.push([notation.event(1, 1)])
    assert "lateness='5 s'" in str(caught.value)
    assert "--" not in str(caught.value)


# --------------------------------------------------------------------------------------------------------- mistakes


@each_notation
def test_bad_events_change_nothing(notation: Notation) -> None:
    """A value that cannot be read, a time that is missing, a column that is missing."""
    events = notation.events()
    bad = [{**notation.bad, "time": events[9]["time"]}, {**events[9], "time": None}]
    for wrong in bad:
        monitor = notation.make(notation.text)
        rows = monitor.push(events[:9])
        before = monitor.save()
        with pytest.raises(DataError):
            monitor.push([events[9], wrong])
        assert monitor.save() == before
        assert by_text(rows + monitor.push(events[9:]) + monitor.close()) == by_text(whole(notation))
    monitor = notation.make(notation.text)
    with pytest.raises(HamletError, match="u"):
        monitor.push(pa.Table.from_pylist(events).drop_columns(["u"]))
    assert by_text(rows_of(monitor, [events])) == by_text(whole(notation))


@each_notation
@pytest.mark.parametrize(
    "options",
    [
        *({"lateness": "bogus"}, {"late": "never"}, {"time_unit": "weeks"}, {"max_memory": "much"}, {"mood": 1}),
        *({"order_column": 5}, {"time_column": ""}),
    ],
)
def test_wrong_options_are_refused(notation: Notation, options: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=next(iter(options)).replace("_", "[ _]")):
        notation.make(notation.text, **options)


@each_notation
@pytest.mark.parametrize("lateness", [0, 1000])
def test_a_limit_of_memory_closes_and_says_so(notation: Notation, lateness: int) -> None:
    """All that is kept counts, events that are held back too."""
    monitor = notation.make(notation.grows or notation.text, max_memory=20_000, lateness=lateness)

    def fill() -> None:
        for number in range(10_000):
            monitor.push([notation.event(number // 5, 40 * number + 4 * each + 3 - each % 2) for each in range(10)])

    with pytest.raises(MemoryLimitError, match=r"limit, 19.5 KiB[\s\S]*is closed"):
        fill()
    with pytest.raises(HamletError, match="is closed: it cannot go on after an error"):
        monitor.push([])
    assert monitor.close() == []


# ------------------------------------------------------------------------------------------------------------- end


@each_notation
def test_after_the_end(notation: Notation) -> None:
    monitor = notation.make(notation.text)
    monitor.push(notation.events())
    monitor.close()
    assert monitor.close() == []
    for call in (lambda: monitor.push([]), lambda: monitor.advance(5), monitor.save):
        with pytest.raises(HamletError, match="is closed; make a new one for another stream"):
            call()
    assert monitor.held == {"rows": 0, "bytes": 0}


@each_notation
def test_with_closes_at_its_end(notation: Notation) -> None:
    with notation.make(notation.text) as monitor:
        rows = monitor.push(notation.events())
    assert by_text(rows + monitor.rest) == by_text(whole(notation))
    with pytest.raises(HamletError, match="is closed"):
        monitor.push([])
    broken = notation.make(notation.text)

    def fail() -> None:
        with broken:
            broken.push(notation.events()[:9])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert broken.rest == []
    broken.push(notation.events()[9:])


# ------------------------------------------------------------------------------------------------------------ saves


@each_notation
def test_saves_go_on(notation: Notation) -> None:
    kind = type(notation.make(notation.text))
    events, rows = notation.events(), []
    monitor = notation.make(notation.text)
    for event in events:
        rows += monitor.push([event])
        monitor = kind.restore(notation.text, monitor.save())  # type: ignore[attr-defined]
    assert by_text(rows + monitor.close()) == by_text(whole(notation))


@each_notation
def test_a_limit_of_memory_is_no_part_of_a_save(notation: Notation) -> None:
    """What is restored goes on under the limit that it had, or under one that is given, or under none."""
    text = notation.grows or notation.text
    events = [notation.event(number // 5, 40 * number + 3 - each % 2) for number in range(600) for each in range(9)]
    monitor = notation.make(text, max_memory=20_000)
    rows = monitor.push(events[:9])
    kind, data = type(monitor), monitor.save()
    with pytest.raises(MemoryLimitError, match=r"19.5 KiB"):
        rows_of(kind.restore(text, data), [events[9:]])  # type: ignore[attr-defined]
    with pytest.raises(MemoryLimitError, match=r"9.8 KiB"):
        rows_of(kind.restore(text, data, max_memory="10 kB"), [events[9:]])  # type: ignore[attr-defined]
    with pytest.raises(OptionError, match="max memory is 'much'"):
        kind.restore(text, data, max_memory="much")  # type: ignore[attr-defined]
    for limit in ("1 GiB", None):
        wider = kind.restore(text, data, max_memory=limit)  # type: ignore[attr-defined]
        again = kind.restore(text, wider.save())  # type: ignore[attr-defined]
        assert rows + rows_of(again, [events[9:]]) == rows_of(notation.make(text), [events])


def test_an_engine_with_another_workload_hears_a_limit_of_memory() -> None:
    engine = hamlet.Engine(hamlet.Workload.parse(f"a: {QUERY}"), max_memory=20_000)
    more = hamlet.Workload.parse(f"a: {QUERY}; b: {QUERY}")
    engine.push([{"time": 1, "type": "A", "u": 1}])
    engine.replace(more)
    events = [{"time": 2, "type": "A", "u": number} for number in range(2000)]
    events.append({"time": 20, "type": "A", "u": 1})
    with pytest.raises(MemoryLimitError):
        hamlet.Engine.restore(more, engine.save()).push(events)
    assert hamlet.Engine.restore(more, engine.save(), max_memory="1 GiB").push(events) == []


def test_a_limit_of_memory_is_one_for_all_workloads_of_an_engine() -> None:
    engine = hamlet.Engine(hamlet.Workload.parse(f"q0: {QUERY}"), max_memory="400 kB")
    engine.push([{"time": 0, "type": "A", "u": 1}])

    def fill() -> None:
        for number in range(1, 9):
            engine.replace(hamlet.Workload.parse("; ".join(f"q{each}: {QUERY}" for each in range(number + 1))))
            engine.push([{"time": 0, "type": "A", "u": each} for each in range(200 * number, 200 * number + 200)])
            assert engine.held["bytes"] <= 400_000

    with pytest.raises(MemoryLimitError, match=r"limit, 390.6 KiB; its queries and those that were replaced take"):
        fill()


@each_notation
def test_comments_and_blanks_may_change(notation: Notation) -> None:
    monitor = notation.make(notation.text)
    rows = monitor.push(notation.events())
    found = type(monitor).restore(notation.commented, monitor.save())  # type: ignore[attr-defined]
    assert by_text(rows + found.close()) == by_text(whole(notation))


@each_notation
def test_another_text_is_refused(notation: Notation) -> None:
    monitor = notation.make(notation.text)
    with pytest.raises(RestoreError, match=r"the save is of[\s\S]*differ"):
        type(monitor).restore(notation.other, monitor.save())  # type: ignore[attr-defined]


@each_notation
def test_saves_of_other_notations_are_refused(notation: Notation) -> None:
    for other in NOTATIONS:
        data = other.make(other.text).save()
        if type(other.text) is type(notation.text):
            continue
        with pytest.raises(RestoreError, match=f"is of {other.name.replace('verdicts', 'policies')}"):
            type(notation.make(notation.text)).restore(notation.text, data)  # type: ignore[attr-defined]


@each_notation
def test_another_version_names_both(notation: Notation) -> None:
    from hamlet.checkpoint import frame
    from hamlet.version import __version__

    data = notation.make(notation.text).save()
    later = frame.resealed(data, format=frame.FORMAT + 1, version="99.1")
    with pytest.raises(RestoreError, match=rf"99\.1[\s\S]*{__version__.replace('.', '[.]')}"):
        type(notation.make(notation.text)).restore(notation.text, later)  # type: ignore[attr-defined]


@each_notation
def test_damaged_saves_are_refused(notation: Notation) -> None:
    monitor = notation.make(notation.text)
    monitor.push(notation.events())
    data, kind = monitor.save(), type(monitor)
    for length in (*range(80), *range(80, len(data), 97)):
        with pytest.raises(RestoreError):
            kind.restore(notation.text, data[:length])  # type: ignore[attr-defined]
    for place in range(0, len(data), 41):
        damaged = bytearray(data)
        damaged[place] ^= 0x15
        with pytest.raises(RestoreError):
            kind.restore(notation.text, bytes(damaged))  # type: ignore[attr-defined]
    for wrong in ("text", None, 7):
        with pytest.raises(RestoreError, match="bytes"):
            kind.restore(notation.text, wrong)  # type: ignore[attr-defined]


@each_notation
def test_copies_go_on_alone(notation: Notation) -> None:
    """`pickle` and `copy` save and restore."""
    events = notation.events()
    monitor = notation.make(notation.text)
    rows = monitor.push(events[:20])
    for twin in (pickle.loads(pickle.dumps(monitor)), copy.deepcopy(monitor)):
        assert by_text(rows + twin.push(events[20:]) + twin.close()) == by_text(whole(notation))
    assert by_text(rows + monitor.push(events[20:]) + monitor.close()) == by_text(whole(notation))


TEXTS = (pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string()))


@each_notation
@pytest.mark.parametrize("kind", TEXTS, ids=str)
def test_text_of_every_type_of_arrow_is_saved(notation: Notation, kind: pa.DataType) -> None:
    """Events that wait are kept as they came."""
    events = notation.events()
    table = pa.Table.from_pylist(events)
    columns = [column.cast(kind) if column.type == pa.string() else column for column in table.columns]
    table = pa.table(columns, table.column_names)
    monitor = notation.make(notation.text, lateness=5)
    rows = monitor.push(table.slice(0, 20))
    twin = type(monitor).restore(notation.text, monitor.save())  # type: ignore[attr-defined]
    assert by_text(rows + twin.push(table.slice(20)) + twin.close()) == by_text(whole(notation))


# ------------------------------------------------------------------------------------------------ what is kept, said


@each_notation
def test_what_is_held(notation: Notation) -> None:
    monitor = notation.make(notation.text, lateness=5)
    assert set(monitor.held) == {"rows", "bytes"}
    monitor.push(notation.events())
    held = monitor.held
    assert held["rows"] > 0
    assert held["bytes"] > 0


@each_notation
def test_what_never_came_is_said(notation: Notation) -> None:
    if notation.unseen is None:
        return  # all columns are in the schema, and one that a batch lacks is an error
    text, said = notation.unseen
    monitor = notation.make(text)
    assert monitor.warnings == []
    for event in notation.events():
        monitor.push([event])
    assert said in monitor.warnings
    assert said in type(monitor).restore(text, monitor.save()).warnings  # type: ignore[attr-defined]


@each_notation
def test_threads_wait_for_each_other(notation: Notation) -> None:
    events = notation.events(200)
    expected = rows_of(notation.make(notation.text), [events])
    monitor = notation.make(notation.text, lateness=10**6)
    rows: list[dict[str, Any]] = []
    wrong: list[BaseException] = []

    def push(mine: list[dict[str, Any]]) -> None:
        try:
            for event in mine:
                rows.extend(monitor.push([event]))
                assert monitor.held["rows"] >= 0
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=push, args=(events[place::4],)) for place in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong
    if notation.name != "specifications":  # events of one time are in the order in which they came
        assert by_text(rows + monitor.close()) == by_text(expected)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@each_notation
def test_a_fork_goes_on_beside_busy_threads(notation: Notation) -> None:
    """The monitor that nobody is in goes on in both processes; one that a thread is in goes on, or refuses."""
    events = notation.events(200)
    expected = by_text(rows_of(notation.make(notation.text), [events]))
    monitor, busy = notation.make(notation.text), notation.make(notation.text, lateness=10**6)
    rows = monitor.push(events[:100])
    stopped = threading.Event()

    def push() -> None:
        while not stopped.is_set():
            busy.push(events)

    threads = [threading.Thread(target=push) for _ in range(2)]
    for each in threads:
        each.start()
    gc.collect()  # what earlier tests left behind may need threads of its own to be freed
    try:
        for _ in range(5):
            child = os.fork()
            if child == 0:
                signal.alarm(20)  # nothing may wait for threads that are not there
                with contextlib.suppress(HamletError):
                    busy.push(events)
                right = by_text(rows + monitor.push(events[100:]) + monitor.close()) == expected
                os._exit(0 if right else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stopped.set()
        for each in threads:
            each.join()
    assert by_text(rows + monitor.push(events[100:]) + monitor.close()) == expected


@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize("first", [1, "q"])
@pytest.mark.parametrize("place", [0, 1])
def test_event_types_are_integers_or_text(place: int, first: int | str, saved: bool) -> None:
    """In one push or in several: a specification's inputs have types of their own, and a statement's columns, too."""
    notation = NOTATIONS[place]
    events = [{"time": 1, "type": first, "u": 1}, {"time": 2, "type": "q" if first == 1 else 1, "u": 1}]
    with pytest.raises(DataError):
        notation.make(notation.text).push(events)
    for given in (lambda event: [event], lambda event: pa.Table.from_pylist([event])):
        monitor = notation.make(notation.text)
        monitor.push(given({"time": 0, "type": None, "u": 1}))
        monitor.push(given(events[0]))
        if saved:
            monitor = type(monitor).restore(notation.text, monitor.save())  # type: ignore[attr-defined]
        with pytest.raises(DataError, match=r"the event types in 'type' were (integers|text) so far and are now"):
            monitor.push(given(events[1]))
        monitor.push(given({**events[0], "time": 2}))


@each_notation
def test_categories(notation: Notation) -> None:
    """Of polars they are string views; those of nothing, as an empty frame of pandas has them, have no type."""
    schema = pa.schema([("time", pa.int64()), ("type", pa.string()), ("u", pa.int64())])
    text, make = notation.text, notation.make
    if isinstance(text, str):
        text, make = text.replace("PARTITION BY u % 2", "PARTITION BY type"), lambda text: Matcher(text, schema)
    events = [{"type": "p", **event} for event in notation.events()]
    frame = pl.DataFrame(events)
    none = pa.nulls(0).dictionary_encode()
    for kind in (pl.Categorical, pl.Enum(sorted(set(frame["type"])))):
        monitor, rows = make(text), []
        for some in frame.with_columns(pl.col("type").cast(kind)).iter_slices(7):
            rows += monitor.push(some)
            rows += monitor.push({"time": pa.array([], pa.int64()), "type": none, "u": none})
            rows += monitor.push(pa.table([pa.array([], pa.int64()), none, none], ["time", "type", "u"]))
        assert by_text(rows + monitor.close()) == by_text(rows_of(make(text), [events]))


if __name__ == "__main__":
    names = [name for name in list(globals()) if name.startswith("test_")]
    matrix = []
    for name in names:
        cells = []
        for each in NOTATIONS:
            code = pytest.main(["-q", "-n", "0", "--no-header", "-k", f"{name} and {each.name}", __file__])
            cells.append("yes" if code == 0 else "NO")
        matrix.append(f"| {name.removeprefix('test_').replace('_', ' ')} | {' | '.join(cells)} |")
    head = f"| behaviour | {' | '.join(each.name for each in NOTATIONS)} |"
    sys.stdout.write("\n".join([head, "|---" * (len(NOTATIONS) + 1) + "|", *matrix, ""]))
