"""For tests of workloads: what a query should find on a small stream, compared with what it finds.

`assert_trends` runs a query and, where the rows are others than expected, shows the trends themselves: the brute-force
oracle lists them one by one, so that one sees *which* sequences of events were counted. `Case` and `cases` read golden
cases from ``.case`` files, for ``pytest.mark.parametrize``.

The form of a case, one small file::

    what the case is about, in words (may be left out)
    -- options      (may be left out) `order_column NAME`, `time_unit s|ms|us|ns`, `timezone ZONE`, `feature NAME`
    -- events       `A A@5 B`: type, or type@time (else one after the event before); or a table with a head line
    -- query        the workload
    -- expect       tables of rows, each with a head line that begins with `query`; or `none`

Cells are separated by blanks ("..." keeps blanks inside). NULL, NaN, true and false are what they say; ``-`` leaves the
attribute out of the event.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Unpack, cast

from hamlet.engine.options import Options, RunOptions, options_of
from hamlet.errors import DataError
from hamlet.frontend.units import UNITS_PER_SECOND
from hamlet.input.events import open_events
from hamlet.oracle import Trend, trends
from hamlet.parallel.run import run
from hamlet.planner.workload import Workload
from hamlet.runtime.definitions import ZONED

__all__ = ["Case", "assert_trends", "cases", "describe_trends", "events_of", "rows_of"]

MOST_EVENTS = 20  # of a stream whose trends are listed
MOST_LISTED = 40  # trends that a message shows


# ---------------------------------------------------------------------------------------------------- assertions


def assert_trends(
    query: str | Workload,
    stream: str | Sequence[Mapping[str, Any]],
    expected: int | str | Sequence[Mapping[str, Any]],
    **options: Unpack[RunOptions],
) -> None:
    """Assert that a query finds on a stream what is expected.

    Parameters
    ----------
    query : str or Workload
        The workload, as text or read.
    stream : str or sequence of mappings
        Events as dicts, or the ``-- events`` part of a case: ``"A B B C"``, ``"A@1 B@5"`` or a table.
    expected : int, str or sequence of mappings
        A number is the sum of the column ``count`` over all rows. A text is the ``-- expect`` part of a case. Rows
        are compared in their order, and only in the columns that the expected row names; doubles to 9 digits.
    **options
        As for `hamlet.run`.

    Raises
    ------
    AssertionError
        Says what was found and expected and, for a small stream, lists the trends.

    Examples
    --------
    >>> assert_trends("RETURN COUNT(*) PATTERN SEQ(A, B+) WITHIN 10 s", "A B B", 3)
    >>> assert_trends("RETURN COUNT(*) PATTERN SEQ(A, B+) WITHIN 10 s", "A B B", 2)
    Traceback (most recent call last):
        ...
    AssertionError: found 3, expected 2
    found:
      query=q1 window_start=0 window_end=10 count=3
    q1, window [0, 10): 3 trends
      A@0 B@1
      A@0 B@2
      A@0 B@1 B@2
    """
    workload = Workload.parse(query) if isinstance(query, str) else query
    events = events_of(stream) if isinstance(stream, str) else list(stream)
    found = run(workload, events, **options).rows()
    if isinstance(expected, int):
        total = sum(row.get("count", 0) for row in found)
        wrong = None if total == expected else f"found {total}, expected {expected}"
    else:
        rows = rows_of(expected) if isinstance(expected, str) else [dict(row) for row in expected]
        wrong = _difference(found, rows)
    if wrong is None:
        return
    shown = "\n".join(["found:", *(f"  {_row_text(row)}" for row in found)] if found else ["found: no rows"])
    raise AssertionError("\n".join([wrong, shown, describe_trends(workload, events, **options)]))


def describe_trends(
    query: str | Workload, stream: str | Sequence[Mapping[str, Any]], **options: Unpack[RunOptions]
) -> str:
    """The trends of every query and window, one a line, as brute force lists them.

    A line has the events in order, each as type@time; where variable and type differ, type:variable@time. The
    parameters are those of `assert_trends`. A stream of more than 20 events is not listed, and the text says so.

    Examples
    --------
    >>> print(describe_trends("RETURN COUNT(*) PATTERN SEQ(A x, A y) WITHIN 10 s", "A A"))
    q1, window [0, 10): 1 trend
      A:x@0 A:y@1
    """
    workload = Workload.parse(query) if isinstance(query, str) else query
    events = events_of(stream) if isinstance(stream, str) else list(stream)
    if len(events) > MOST_EVENTS:
        return f"(the trends are listed for streams of up to {MOST_EVENTS} events; this one has {len(events)})"
    chosen = options_of(options)
    if not all(isinstance(event[chosen.time_column], int) for event in events):
        return "(the trends are listed for integer times)"
    lines: list[str] = []
    known = open_events(events, **{name: getattr(chosen, name) for name in ZONED})
    workload.refuse_misspelled(known.schema, known.types())
    for each in workload.queries:
        found = trends(
            each,
            events,
            declarations=workload.analysis.text.declarations,
            time_column=chosen.time_column,
            type_column=chosen.type_column,
            order_column=chosen.order_column,
            ticks_per_second=UNITS_PER_SECOND[chosen.time_unit],
            zone=chosen.timezone,
        )
        lines += list(_listed(each.name, found, events, chosen)) or [f"{each.name}: no trends"]
    return "\n".join(lines)


def _listed(query: str, found: Sequence[Trend], events: Sequence[Mapping[str, Any]], options: Options) -> Iterator[str]:
    heads: dict[tuple[Any, ...], list[Trend]] = {}
    for trend in found:
        heads.setdefault((trend.window_start, trend.window_end, trend.key, trend.operand), []).append(trend)
    both = any(trend.operand for trend in found)
    for (start, end, key, operand), group in heads.items():
        keys = "".join(f", {name}={value}" for name, value in key)
        side = f", {'right' if operand else 'left'} side of AND" if both else ""
        yield f"{query}, window [{start}, {end}){keys}{side}: {len(group)} trend{'s' * (len(group) != 1)}"
        for trend in sorted(group, key=lambda each: (len(each.pairs), each.pairs))[:MOST_LISTED]:
            yield "  " + " ".join(_event_text(events[place], variable, options) for place, variable in trend.pairs)
        if len(group) > MOST_LISTED:
            yield f"  ... and {len(group) - MOST_LISTED} more"


def _event_text(event: Mapping[str, Any], variable: str, options: Options) -> str:
    kind = str(event[options.type_column])
    return f"{kind if kind == variable else f'{kind}:{variable}'}@{event[options.time_column]}"


def _difference(found: Sequence[Mapping[str, Any]], expected: Sequence[Mapping[str, Any]]) -> str | None:
    if len(found) != len(expected):
        return f"found {len(found)} row{'s' * (len(found) != 1)}, expected {len(expected)}"
    for place, (row, wanted) in enumerate(zip(found, expected, strict=True), 1):
        for name, value in wanted.items():
            if name not in row:
                return f"row {place} has no column {name!r}; its columns are {', '.join(row)}"
            if not _equal(row[name], value):
                return f"row {place}: found {name}={row[name]}, expected {value}"
    return None


def _equal(found: Any, expected: Any) -> bool:
    if isinstance(found, float) and isinstance(expected, (int, float)):
        return math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-12) or (found != found and expected != expected)
    return bool(found == expected)


def _row_text(row: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={'NULL' if value is None else value}" for name, value in row.items())


# --------------------------------------------------------------------------------------------------- golden cases


@dataclass(frozen=True)
class Case:
    """One golden case.

    Attributes
    ----------
    name : str
        The file's name without its ending.
    options : dict
        Options of `hamlet.run` (`order_column`, `time_unit`, `timezone`) as far as they are not the defaults.
    feature : str or None
        A word that tells some cases from others, for those who run only some.
    events : list of dict
        The stream.
    text : str
        The workload.
    expected : list of dict
        The rows.
    about : str
        What stands before the first section.
    """

    name: str
    options: dict[str, str]
    feature: str | None
    events: list[dict[str, Any]]
    text: str
    expected: list[dict[str, Any]]
    about: str = field(default="", compare=False)

    def check(self, **options: Unpack[RunOptions]) -> None:
        """Assert that `hamlet.run` finds the expected rows; `options` come on top of those of the case."""
        assert_trends(self.text, self.events, self.expected, **cast(RunOptions, {**self.options, **options}))

    def __str__(self) -> str:
        return self.name


def cases(folder: str | os.PathLike[str]) -> list[Case]:
    """All golden cases of a folder, by name; for ``@pytest.mark.parametrize("case", cases("tests/cases"), ids=str)``.

    Parameters
    ----------
    folder : path
        Holds ``*.case`` files.

    Raises
    ------
    DataError
        If there is none, or one lacks a section.
    """
    paths = sorted(Path(folder).glob("*.case"))
    if not paths:
        raise DataError(f"there is no .case file in {os.fspath(folder)}")
    return [_case(path) for path in paths]


def _case(path: Path) -> Case:
    parts = re.split(r"^-- (options|events|query|expect)[ ]*\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    missing = [name for name in ("events", "query", "expect") if name not in sections]
    if missing:
        raise DataError(f"{path}: there is no section '-- {missing[0]}'")
    options = dict(line.split(maxsplit=1) for line in sections.get("options", "").splitlines() if line.strip())
    feature = options.pop("feature", None)
    events, expected = events_of(sections["events"]), rows_of(sections["expect"])
    return Case(path.stem, options, feature, events, sections["query"], expected, parts[0].strip())


def events_of(text: str) -> list[dict[str, Any]]:
    """The events that a text spells: ``A A@5 B``, or a table with a head line that begins with ``time``.

    Examples
    --------
    >>> events_of("A B@5 B")
    [{'time': 0, 'type': 'A'}, {'time': 5, 'type': 'B'}, {'time': 6, 'type': 'B'}]
    """
    return list(_events([line for line in text.splitlines() if line.strip()]))


def rows_of(text: str) -> list[dict[str, Any]]:
    """The result rows that a text spells: tables with head lines that begin with ``query``, or ``none``.

    Examples
    --------
    >>> rows_of("query count\\nq1 3")
    [{'query': 'q1', 'count': 3}]
    """
    return list(_rows([line for line in text.splitlines() if line.strip()]))


def _events(lines: Sequence[str]) -> Iterator[dict[str, Any]]:
    if lines and lines[0].split()[:1] == ["time"]:
        head = _cells(lines[0])
        for line in lines[1:]:
            yield {name: _value(cell) for name, cell in _zipped(head, line) if cell != "-"}
        return
    time = -1
    for word in " ".join(lines).split():
        type_, _, written = word.partition("@")
        if "(" in type_ or ")" in type_ or "=" in type_:
            raise DataError(
                f"the event {word!r} is written type or type@time; attributes need a table with a head line:\n"
                "time type user\n0    view a"
            )
        try:
            time = int(written) if written else time + 1
        except ValueError:
            raise DataError(f"the time of the event {word!r} is not an integer; write type@time, as in A@5") from None
        yield {"time": time, "type": type_}


def _rows(lines: Sequence[str]) -> Iterator[dict[str, Any]]:
    head: list[str] = []
    for line in lines:
        if line.split() == ["none"]:
            return
        if _cells(line)[:1] == ["query"]:
            head = _cells(line)
        else:
            yield {name: cell if name == "query" else _value(cell) for name, cell in _zipped(head, line)}


def _zipped(head: Sequence[str], line: str) -> Iterable[tuple[str, str]]:
    cells = _cells(line)
    if len(cells) != len(head):
        raise DataError(f"the line {line.strip()!r} has {len(cells)} cells under the head {' '.join(head)!r}")
    return zip(head, cells, strict=True)


def _cells(line: str) -> list[str]:
    return [quoted or plain for quoted, plain in re.findall(r'"([^"]*)"|(\S+)', line)]


def _value(cell: str) -> Any:
    words = {"NULL": None, "NaN": math.nan, "true": True, "false": False}
    if cell in words:
        return words[cell]
    for number in (int, float):
        try:
            return number(cell)
        except ValueError:
            pass
    return cell
