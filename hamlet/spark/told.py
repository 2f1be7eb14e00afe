"""What the tasks of a continuous job tell the driver, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.accumulators import Accumulator, AccumulatorParam
from pyspark.sql import DataFrame, SparkSession

from hamlet.findings import Seen, Tally
from hamlet.input.file_form import Dropped


@dataclass(frozen=True)
class Told:
    """What tasks have told; what is told twice, by one that is run again, changes nothing but a number of rows.

    Attributes
    ----------
    seen : Seen
        What all events since the job began have shown.
    begun : int or None
        How many there were before this run; None where no micro-batch has come.
    tallies : mapping of int to Tally
        Of the rows of each query, by its place in the workload, in this run.
    dropped : mapping of str to Dropped
        By file, the rows of this run that were left out.
    """

    seen: Seen = Seen()
    begun: int | None = None
    tallies: Mapping[int, Tally] = field(default_factory=dict)
    dropped: Mapping[str, Dropped] = field(default_factory=dict)

    def plus(self, other: Told) -> Told:
        """What both have told."""
        tallies = {**self.tallies, **other.tallies}
        return Told(
            max(self.seen, other.seen, key=lambda each: each.events),
            min((each for each in (self.begun, other.begun) if each is not None), default=None),
            {each: self.tallies.get(each, Tally()).plus(other.tallies.get(each, Tally())) for each in tallies},
            {**self.dropped, **other.dropped},
        )

    @property
    def notes(self) -> list[str]:
        """What is to be said of rows that were left out, and of columns that files lack."""
        found = Dropped()
        for name, rows in sorted(self.dropped.items()):
            found = found.plus(rows, name)
        return [each for each in [found.sentence(), *found.findings] if each is not None]


class _Together(AccumulatorParam[Told]):
    """Adds up what tasks tell."""

    def zero(self, value: Told) -> Told:  # noqa: ARG002
        """Nothing."""
        return Told()

    def addInPlace(self, value1: Told, value2: Told) -> Told:  # noqa: N802
        """What both have told."""
        return value1.plus(value2)


Telling = Accumulator[Told]


def telling(spark: SparkSession) -> Telling:
    """What the tasks of a job tell."""
    return spark.sparkContext.accumulator(Told(), _Together())


def left_out(telling: Telling, file: str, rows: Dropped) -> None:
    """Tell of the rows of a file that were left out."""
    telling.add(Told(dropped={file: rows}))


def heard(telling: Telling, decided: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of `hamlet.spark.sliced.CLOSED`, of which the driver is told what events have shown."""
    for batch in decided:
        shown = zip(batch.column("seen").to_pylist(), batch.column("events").to_pylist(), strict=True)
        for data, events in shown:
            if data is not None:
                seen = Seen.read(data)
                telling.add(Told(seen, seen.events - events))
        yield batch


class Findings(Sequence[str]):
    """What was probably not meant, a sentence each, as far as is known by now: it is looked at whenever it is read."""

    def __init__(self, telling: Telling, found: Callable[[Told], Sequence[str]]) -> None:
        self._telling, self._found = telling, found

    def _now(self) -> list[str]:
        told = self._telling.value
        return [*told.notes, *(self._found(told) if told.begun is not None else ())]

    def __getitem__(self, place: Any) -> Any:
        return self._now()[place]

    def __len__(self) -> int:
        return len(self._now())

    def __iter__(self) -> Iterator[str]:
        return iter(self._now())

    def __repr__(self) -> str:
        return repr(self._now())


def with_findings(frame: DataFrame, telling: Telling, found: Callable[[Told], Sequence[str]]) -> DataFrame:
    """A streaming DataFrame that knows what was probably not meant."""
    vars(frame)["warnings"] = Findings(telling, found)
    return frame
