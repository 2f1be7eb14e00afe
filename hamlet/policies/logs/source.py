"""Where the time-points of a stream come from: MonPoly's logs, or any events that `hamlet.run` reads."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hamlet.arrays import pa
from hamlet.errors import OptionError, option
from hamlet.frontend.units import UNITS_PER_SECOND
from hamlet.input.file_form import FileForm
from hamlet.policies.logs.reader import LogChunk, LogFile, Predicate
from hamlet.policies.syntax.signature import PredicateSchema, Signature
from hamlet.runtime.expected import NO_EVENTS, Expected
from hamlet.runtime.options import check_choice

if TYPE_CHECKING:
    from hamlet.input.events import EventSource

Progress = Callable[[int], None]


class Source:
    """Time-points in order, in chunks.

    Attributes
    ----------
    name : str
    rows : int or None
        The number of events, where it is known.
    shown_type : pyarrow.DataType or None
        Of times in rows, such as the timestamp type of the time column; None for int64.
    per_second : int
        Ticks of the stream's time.
    stats : dict
        What was counted: ``events``, ``time_points``, and as far as there are any ``matched_events``, ``null_events``
        and ``unknown_events``.
    expected : Expected
        The predicates that have not come.
    """

    def __init__(
        self, name: str, rows: int | None, shown_type: pa.DataType | None, per_second: int, expected: Iterable[str]
    ) -> None:
        self.name = name
        self.rows = rows
        self.shown_type = shown_type
        self.per_second = per_second
        self.stats: dict[str, int] = {"events": 0, "time_points": 0}
        self.expected = Expected(expected)

    @property
    def time_type(self) -> pa.DataType:
        """The type of times in rows."""
        return pa.int64() if self.shown_type is None else self.shown_type

    def chunks(self, progress: Progress | None = None) -> Iterator[LogChunk]:
        """All time-points; `progress` hears of the events read so far."""
        raise NotImplementedError

    def notes(self) -> list[str]:
        """What to know of the input, when it has been read: rows that were dropped, predicates that never came."""
        return self._notes() + (self.expected.warnings() if self.stats["time_points"] else [NO_EVENTS])

    def _notes(self) -> list[str]:
        raise NotImplementedError


class _LogSource(Source):
    """A log in MonPoly's format."""

    def __init__(self, file: LogFile, time_unit: str, expected: Iterable[str]) -> None:
        super().__init__(file.name, None, None, UNITS_PER_SECOND[time_unit], expected)
        self._file = file

    def chunks(self, progress: Progress | None = None) -> Iterator[LogChunk]:
        """All time-points."""
        for chunk in self._file.chunks():
            yield chunk
            if self.expected.missing:
                self.expected.see(name for (name, _), (points, _) in chunk.relations.items() if len(points))
            self.stats["events"] += sum(len(points) for points, _ in chunk.relations.values())
            self.stats["time_points"] += len(chunk.times)
            if progress is not None:
                progress(self.stats["events"])
        if self._file.unknown:
            self.stats["unknown_events"] = self._file.unknown

    def _notes(self) -> list[str]:
        """Time-points that were dropped, and commands that were passed over."""
        found = self._file.dropped.sentence()
        return [*([] if found is None else [found]), *of_commands(self._file.commands)]


def of_commands(commands: int) -> list[str]:
    """That some commands of a log were passed over."""
    return [f"{commands:,} command{'s' * (commands > 1)} of the log (> ... <) passed over"] if commands else []


def is_log(source: Any, input_format: str | None) -> bool:
    """Whether an input is a log in MonPoly's format."""
    if input_format is not None:
        return input_format == "monpoly"
    if not isinstance(source, (str, os.PathLike)):
        return False
    suffixes = [each.lower() for each in Path(source).suffixes]
    return ".log" in suffixes[-2:]


def points_of_a_log() -> str:
    """Why a log is not cut into time-points anew."""
    return (
        f"a log of MonPoly has time-points of its own, so {option('time_points', 'event')} says nothing; leave it out"
    )


def _the_log(source: Any, input_format: str | None) -> Any:
    """A log in MonPoly's format, None where an input is none; raises OptionError where it is one of several inputs."""
    if isinstance(source, (list, tuple)) and any(is_log(each, input_format) for each in source):
        if len(source) > 1:
            raise OptionError(
                f"the input is {len(source)} files, and a log of MonPoly is one\n"
                "hint: join the logs in the order of time (cat a.log b.log > all.log)"
            )
        return source[0]
    return source if is_log(source, input_format) else None


def open_source(
    source: Any,
    signature: Signature,
    wanted: Container[Predicate],
    *,
    time_points: str = "step",
    ignore_unknown: bool = False,
    input_format: str | None = None,
    filtered: Callable[[Any], Any] | None = None,
    counted: tuple[int, int] | None = None,
    arrow: bool = True,
    **columns: Any,
) -> Source:
    """Open events as time-points.

    Parameters
    ----------
    source : path, or events of any form that `hamlet.run` takes
        A path that ends in ``.log`` is MonPoly's log format.
    signature : Signature
    wanted : container of (str, int)
        The predicates that somebody reads.
    time_points : {'step', 'event'}
        What a time-point of events in columns is; those of a log are written in it.
    ignore_unknown : bool
        Whether tuples of a log that the signature does not know are counted and left out.
    input_format : {'monpoly', 'parquet', 'csv', 'json'}, optional
    filtered : callable, optional
        What leaves out events: from an EventSource to one that has fewer.
    counted : (int, int), optional
        Of events in columns, the first and the last time that `Source.stats` count; by default all do.
    arrow : bool
        Of a log, whether numbers are Arrow's arrays (`LogFile`).
    **columns
        ``time_column, type_column, order_column, time_unit, delimiter, bad_rows, missing_columns`` of
        `hamlet.input.events.open_events`. A bad row of a log is a time-point with a mistake.

    Raises
    ------
    DataError, OptionError
    """
    check_choice("time_points", time_points)
    log = _the_log(source, input_format)
    drops = FileForm(columns.get("delimiter"), columns.get("bad_rows") or "error").drops
    if log is not None:
        if time_points == "event":
            raise OptionError(points_of_a_log())
        if filtered is not None:
            raise OptionError(choice_of_a_log())
        named = [name for name in ("order_column", "delimiter", "missing_columns") if columns.get(name) is not None]
        named += [name for name in ("time", "type") if columns.get(f"{name}_column") not in (None, name)]
        if named:
            name = named[0] if named[0] not in ("time", "type") else f"{named[0]}_column"
            raise OptionError(f"a log of MonPoly has no columns, so {option(name)} says nothing; leave it out")
        types = types_of(signature)
        file = LogFile(log, types, wanted=wanted, ignore_unknown=ignore_unknown, drops=drops, arrow=arrow)
        read = [each.name for each in signature if (each.name, each.arity) in wanted]
        return _LogSource(file, columns.get("time_unit") or "s", read)
    from hamlet.input.events import open_events  # brings in all forms of columns, which a log does without
    from hamlet.policies.logs.table_source import TableSource

    texts = texts_of(each for each in signature if (each.name, each.arity) in wanted)
    given: Any = {**columns, "input_format": input_format, "wide_integers": True, "whole_seconds": True, "texts": texts}
    events = open_events(source, **given)
    return TableSource(events if filtered is None else filtered(events), signature, wanted, time_points, counted)


def choice_of_a_log() -> str:
    """The message for options that choose events, beside a log."""
    return (
        f"a log of MonPoly has no columns, so {option('where')}, {option('since')} and {option('until')} "
        "cannot choose from it; put the condition in the policy"
    )


def chosen_by(where: str | None, since: Any, until: Any) -> Callable[[EventSource], EventSource] | None:
    """What leaves out events that fail a condition or lie outside a period; None where all are taken."""
    if where is None and since is None and until is None:
        return None
    from hamlet.engine.where import chosen_events  # brings in the language of queries

    return partial(chosen_events, since=since, until=until, where=where)


def texts_of(predicates: Iterable[PredicateSchema]) -> tuple[str, ...]:
    """The attributes that are strings wherever they occur: columns that are text, whatever their values look like."""
    kinds: dict[str, set[str]] = {}
    for each in predicates:
        for name, kind in zip(each.attributes, each.types, strict=True):
            if name is not None:
                kinds.setdefault(name, set()).add(kind)
    return tuple(name for name, found in kinds.items() if found == {"string"})


def types_of(signature: Signature) -> Mapping[Predicate, tuple[str, ...]]:
    """The types of the fields by name and arity."""
    return {(each.name, each.arity): tuple(each.types) for each in signature}
