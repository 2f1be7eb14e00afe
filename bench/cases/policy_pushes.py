"""One pushed event, whatever is kept: a monitor per operator that keeps so many valuations, then events one by one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from bench.answers import WrongAnswer
from bench.subject import Answer, Case, Contender
from hamlet.policies import Monitor, Policy, run

SIGNATURE = "p(x: int)\nq(x: int)\nr(x: int, y: int)\ne(x: int)\n"
_LONG = "[0,1000000000]"
OPERATORS = {
    "and": f"e(x) AND ONCE{_LONG} p(x)",
    "and-not": "e(x) AND NOT ONCE p(x)",
    "or": "e(x) AND ((ONCE p(x)) OR (ONCE q(x)))",
    "exists": "e(x) AND EXISTS y. ONCE r(x, y)",
    "forall": "ALWAYS FORALL x. e(x) IMPLIES (FORALL y. (NOT ONCE r(x, y)))",
    "prev": "e(x) AND PREV ONCE p(x)",
    "next": "e(x) AND NEXT ONCE p(x)",
    "since": "e(x) AND ((ONCE p(x)) SINCE p(x))",
    "not-since": f"e(x) AND ((NOT q(x)) SINCE{_LONG} p(x))",
    "until": f"(ONCE p(x)) UNTIL{_LONG} e(x)",
    "not-until": f"(NOT q(x)) UNTIL{_LONG} (e(x) OR p(x))",
    "eventually": f"ALWAYS FORALL x. p(x) IMPLIES EVENTUALLY{_LONG} e(x)",
    "historically": "e(x) AND HISTORICALLY[0,10] ONCE p(x)",
    "always": "e(x) AND ALWAYS[0,3] ONCE p(x)",
    "cnt": "EXISTS n. ((n <- CNT x ONCE p(x)) AND n < 0)",
    "sum": "EXISTS n. ((n <- SUM x ONCE p(x)) AND n < 0)",
    "avg": "EXISTS n. ((n <- AVG x ONCE p(x)) AND n < 0.0)",
    "min": "EXISTS n. ((n <- MIN x ONCE p(x)) AND n < 0)",
    "max": "EXISTS n. ((n <- MAX x ONCE p(x)) AND n < 0)",
    "med": "EXISTS n. ((n <- MED x ONCE p(x)) AND n < 0.0)",
    "let": "LET a(x) = ONCE p(x) IN e(x) AND a(x)",
    "trigger": "e(x) AND (q(x) TRIGGER (ONCE p(x)))",
    "release": "e(x) AND (q(x) RELEASE[0,3] (ONCE p(x)))",
}
_WARM = 20  # pushes before those that are timed: what is kept is moved to where it is looked up


class Event:
    """Events pushed one by one.

    Parameters
    ----------
    name : str
        Of `OPERATORS`.
    kept : int
        Valuations that come before, in one batch.
    pushes : int
    """

    def __init__(self, name: str, kept: int, pushes: int) -> None:
        self.policy = Policy.parse(OPERATORS[name], SIGNATURE, name=name)
        self._filling = "r" if "r(" in OPERATORS[name] else "p"
        self.kept, self.pushes, self._time = kept, pushes, kept
        self.monitor = Monitor(self.policy)
        self.monitor.push(self._before())
        for event in self._events(_WARM):
            self.monitor.push([event])

    def _before(self) -> dict[str, list[Any]]:
        """An event of each predicate, so that columns are known, and all that is kept."""
        some = [("e", -7, -7), ("q", -7, -7), (self._filling, -7, -7)]
        every = [*some, *((self._filling, place, place) for place in range(self.kept))]
        kinds, values, others = (list(column) for column in zip(*every, strict=True))
        return {"time": [0] * len(some) + list(range(self.kept)), "type": kinds, "x": values, "y": others}

    def _events(self, count: int) -> list[dict[str, Any]]:
        """Events that ask for what is kept, and such that add to it, in turns."""
        found = []
        for place in range(count):
            self._time += 1
            if place % 2:
                found.append({"time": self._time, "type": "e", "x": place})
            elif self._filling == "r":
                found.append({"time": self._time, "type": "r", "x": self._time, "y": place})
            else:
                found.append({"time": self._time, "type": "p", "x": self._time})
        return found

    def answer(self) -> Answer:
        """A run over the same events, in columns, has to give the rows of the pushes."""
        small = Event(self.policy.name, 300, 0)
        events = small._events(60)
        first = small.monitor.push([events[0]])
        rows = len(first) + sum(len(small.monitor.push([event])) for event in events[1:]) + len(small.monitor.close())
        again = Event.__new__(Event)
        again.policy, again._filling, again.kept, again._time = self.policy, self._filling, 300, 300
        before = again._before()
        listed = [dict(zip(before, row, strict=True)) for row in zip(*before.values(), strict=True)]
        warm = listed + again._events(_WARM)
        monitor = Monitor(self.policy)
        earlier = len(monitor.push(warm))
        whole = len(run(self.policy, warm + events).rows())
        if earlier + rows != whole:
            raise WrongAnswer(f"{earlier + rows} rows by pushes, and {whole} in one run")
        return Answer(
            [f"{whole:,} rows by pushes and in one run"],
            {"policy": self.policy.name, "kept": self.kept, "events": self.pushes},
        )

    def contenders(self) -> Mapping[str, Contender]:
        """The pushes, one event each."""
        return {
            "one event": Contender(self._push, None, events=self.pushes, question="rows are given as they are decided")
        }

    def _push(self) -> None:
        for event in self._events(self.pushes):
            self.monitor.push([event])


def _points(sizes: tuple[int, ...], pushes: int) -> dict[str, Any]:
    return {f"{name}-{size}": partial(Event, name, size, pushes) for name in OPERATORS for size in sizes}


CASES = {
    "pushes": Case(
        "one event pushed to a monitor that keeps a hundred, ten thousand or a million valuations, by operator",
        _points((100, 10_000, 1_000_000), 2_000),
        _points((100,), 50),
        seconds=(3, 1),
    ),
}
