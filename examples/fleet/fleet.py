"""Alarms for a fleet: drivers who crawl after a request, counted online."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import hamlet

WORKLOAD = """
EVENT Request(driver INT, district STRING);
EVENT Travel(driver INT, district STRING, speed DOUBLE);
EVENT Pickup(driver INT, district STRING);

crawl: RETURN district, COUNT(*), AVG(T.speed) AS mean_speed
    PATTERN SEQ(Request R, Travel T{2,}, NOT Pickup P)
    WHERE [driver] AND T.speed < 10
    GROUP-BY district
    WITHIN 10 min;
"""


@dataclass(frozen=True)
class Alarm:
    """A district in which requests are followed by crawling.

    Attributes
    ----------
    district : str
    trends : int
        Of any size.
    mean_speed : float
        Over all Travel events of all trends.
    """

    district: str
    trends: int
    mean_speed: float


class Monitor:
    """Feeds events to an engine and turns rows into alarms.

    Parameters
    ----------
    least : int
        Trends from which on there is an alarm.
    """

    def __init__(self, least: int) -> None:
        self._least = least
        self._engine = hamlet.Engine(hamlet.Workload.parse(WORKLOAD), lateness="30 s", late="drop")

    def events(self, batch: Iterable[Mapping[str, Any]]) -> list[Alarm]:
        """Take events; give the alarms of windows that they close."""
        return list(self._alarms(self._engine.push(list(batch))))

    def end(self) -> list[Alarm]:
        """The alarms of all windows that are still open."""
        return list(self._alarms(self._engine.close()))

    def _alarms(self, rows: list[dict[str, Any]]) -> Iterator[Alarm]:
        for row in rows:
            if row["count"] >= self._least:
                yield Alarm(row["district"], row["count"], row["mean_speed"])
