"""The page about a run of stream specifications: triggers over time, and values of streams as lines."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hamlet.pages.findings import Why, evidence_of_each
from hamlet.pages.page import RunPage

_BARS = 120
_SECOND = 1_000_000_000  # ns
_MOST_BINS = 16 * _BARS  # kept of one chart; more are put together two by two
_TOP = 5
_EVIDENCE = 3  # rows of each specification with evidence
_MOST_EXPLAINED = 100_000  # events of an input that is read for evidence
_MOST_MESSAGES = 10_000  # counted of one trigger; rarer ones beyond that are forgotten
_MOST_LINES = 8  # of one stream: more cannot be told apart

Span = tuple[float, float, float]  # least, greatest, newest value


class Binned:
    """Something over time in bins of equal length, which double where there would be too many.

    Parameters
    ----------
    join : callable
        Puts the contents of two neighbouring bins together, the earlier first.
    """

    def __init__(self, join: Callable[[Any, Any], Any]) -> None:
        self.step = 1  # ns
        self.bins: dict[int, Any] = {}
        self._join = join

    def add(self, time: int, value: Any) -> None:
        """Take what happened at a time (ns); times never decrease."""
        self._put(time // self.step, value)
        while len(self.bins) > _MOST_BINS:
            self.coarsen()

    def coarsen(self) -> None:
        """Put neighbours together."""
        old, self.bins, self.step = self.bins, {}, self.step * 2
        for place, value in old.items():
            self._put(place // 2, value)

    def _put(self, place: int, value: Any) -> None:
        self.bins[place] = self._join(self.bins[place], value) if place in self.bins else value

    def over(self, first: int, width: int, count: int) -> list[Any]:
        """The bins of an axis of `count` bins of `width` ns; None where one is empty."""
        found: list[Any] = [None] * count
        for place, value in self.bins.items():
            at = min(max(0, (place * self.step - first) // width), count - 1)
            found[at] = value if found[at] is None else self._join(found[at], value)
        return found


def _later(one: Span, other: Span) -> Span:
    return min(one[0], other[0]), max(one[1], other[1]), other[2]


@dataclass
class _Trigger:
    name: str
    text: str
    first: int = 0
    last: int = 0
    times: Binned = field(default_factory=lambda: Binned(lambda one, other: one + other))
    messages: Counter[str] = field(default_factory=Counter)
    count: int = 0


@dataclass
class _Stream:
    name: str
    lines: dict[Any, Binned] = field(default_factory=dict)
    others: bool = False  # whether there are instances without a line


@dataclass
class _Watched:
    name: str
    text: str
    triggers: dict[int, _Trigger]
    streams: dict[int, _Stream]
    first: int | None = None
    last: int = 0
    clock_text: Callable[[int], str] = str


class SpecificationReport(RunPage):
    """Watches the rows of specifications, and writes a page about them.

    Parameters
    ----------
    specifications : sequence of (str, str, mapping of int to (str, str), mapping of int to str)
        Name, text, and by their number the triggers (name, text) and the names of the streams of numbers.
    path, keep
        As of `RunPage`.
    """

    def __init__(
        self,
        specifications: Sequence[tuple[str, str, Mapping[int, tuple[str, str]], Mapping[int, str]]],
        path: str | os.PathLike[str],
        keep: Sequence[str],
    ) -> None:
        super().__init__(path, keep)
        self._watched = [
            _Watched(
                name,
                text.strip(),
                {number: _Trigger(*each) for number, each in triggers.items()},
                {number: _Stream(each) for number, each in streams.items()},
            )
            for name, text, triggers, streams in specifications
        ]
        self._first: list[list[dict[str, Any]]] = [[] for _ in specifications]

    def keep(self, place: int, rows: Callable[[int], list[dict[str, Any]]]) -> None:
        """Keep the first rows of a specification, of which evidence is shown; `rows` gives as many as are asked for."""
        missing = _EVIDENCE - len(self._first[place])
        if missing > 0:
            self._first[place] += rows(missing)

    def see(
        self, place: int, found: Sequence[tuple[int, int, Any, Any]], start: int, clock_text: Callable[[int], str]
    ) -> None:
        """Take rows of a specification.

        Parameters
        ----------
        place : int
            Which specification.
        found : sequence of (int, int, key, value)
            Time (ns after the start), number of the stream, instance, value.
        start : int
            Nanoseconds.
        clock_text : callable
            Gives a time in ns as people read it.
        """
        watched = self._watched[place]
        watched.clock_text = clock_text
        for time, number, key, value in found:
            at = start + time
            if watched.first is None:
                watched.first = at
            watched.last = max(watched.last, at)
            trigger = watched.triggers.get(number)
            if trigger is not None:
                trigger.first = trigger.first if trigger.count else at
                trigger.last = at
                trigger.count += 1
                trigger.times.add(at, 1)
                trigger.messages[str(value)] += 1
                if len(trigger.messages) > 2 * _MOST_MESSAGES:
                    trigger.messages = Counter(dict(trigger.messages.most_common(_MOST_MESSAGES)))
                continue
            stream = watched.streams.get(number)
            if stream is not None:
                _see_value(stream, at, key, float(value))

    def write(
        self,
        source: str,
        settings: Sequence[tuple[str, str]],
        stats: Mapping[str, Any],
        seconds: float,
        why: Why,
        commands: Sequence[Sequence[str]],
    ) -> None:
        """Write the page; ``stats["notes"]`` is what was strange, `why` gives evidence of a specification's row."""
        charts: list[dict[str, Any]] = []
        shown = [self._shown(each, charts) for each in self._watched]
        triggered = sum(trigger.count for each in self._watched for trigger in each.triggers.values())
        self._write(
            "watched.html",
            charts,
            stats,
            (("events", "events"), ("deadlines", "deadlines"), ("instances", "instances at the end")),
            [(f"{triggered:,}", "rows of triggers"), (f"{seconds:.2f} s", "run time")],
            workload=", ".join(each.name for each in self._watched),
            strange=list(stats.get("notes", ())),
            evidence=evidence_of_each(self._first, why, commands, "s", stats.get("events"), _MOST_EXPLAINED),
            source=source,
            settings=settings,
            rows=triggered,
            specifications=shown,
            triggers=[each for one in shown for each in one["triggers"]],
        )

    def _shown(self, watched: _Watched, charts: list[dict[str, Any]]) -> dict[str, Any]:
        first, last = watched.first or 0, watched.last
        width = max(1, -(-(last - first + 1) // _BARS))
        if width >= _SECOND:  # then bins begin at whole seconds
            width, first = -(-width // _SECOND) * _SECOND, first // _SECOND * _SECOND
        count = -(-(last - first + 1) // width)
        texts = [watched.clock_text(first + number * width) for number in range(count)] + [watched.clock_text(last)]
        triggers = []
        for trigger in watched.triggers.values():
            top = [(message, f"{number:,}") for message, number in trigger.messages.most_common(_TOP)]
            triggers.append(
                {
                    "specification": watched.name,
                    "name": trigger.name,
                    "text": trigger.text,
                    "count": trigger.count,
                    "first": watched.clock_text(trigger.first) if trigger.count else "",
                    "last": watched.clock_text(trigger.last) if trigger.count else "",
                    "chart": len(charts) if trigger.count else None,
                    "top": top,
                }
            )
            if trigger.count:
                bars = [each or 0 for each in trigger.times.over(first, width, count)]
                charts.append({"label": f"{trigger.name} over time", "what": "rows", "bars": bars, "times": texts})
        streams = []
        for each in watched.streams.values():
            if each.lines:
                streams.append({"name": each.name, "others": each.others, "chart": len(charts)})
                charts.append({"label": f"{each.name} over time", "lines": _lines(each, first, width, count)})
                charts[-1]["times"] = texts
        span = f"{texts[0]} to {texts[-1]}" if watched.first is not None else ""
        return {"name": watched.name, "text": watched.text, "triggers": triggers, "streams": streams, "span": span}


def _see_value(stream: _Stream, at: int, key: Any, value: float) -> None:
    if not math.isfinite(value):
        return
    line = stream.lines.get(key)
    if line is None:
        if len(stream.lines) == _MOST_LINES:
            stream.others = True
            return
        line = stream.lines[key] = Binned(_later)
    line.add(at, (value, value, value))


def _lines(stream: _Stream, first: int, width: int, count: int) -> list[dict[str, Any]]:
    """Each instance of a stream: the newest value of each bin."""
    return [
        {
            "label": stream.name if key is None or key == () else str(key),
            "values": [None if each is None else each[2] for each in line.over(first, width, count)],
        }
        for key, line in stream.lines.items()
    ]
