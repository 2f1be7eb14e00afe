"""What every page about a run has: how many rows there are where people look first, and evidence for some of them."""

from __future__ import annotations

import json
import shlex
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
from markupsafe import Markup

from hamlet.errors import HamletError
from hamlet.output.digits import short_text
from hamlet.output.plain import json_value

Bars = list[tuple[str, str, float]]  # label, number as text, percent of the longest

Why = Callable[[int, Mapping[str, Any]], Any]  # the evidence of a row, by the place of the work that has it

MOST_EVENTS = 2_000_000  # of an input that is read for evidence
_LARGE = 10**15
_MOST_TIMES = 40
_SECONDS = 5.0  # for all evidence of a page, but the first
_LONGEST = 20_000  # letters of one row's evidence


def bars(counts: Mapping[str, int], *, ordered: bool = False, most: int = 15) -> Bars:
    """The largest of some counts, or the first ones, as bars.

    Examples
    --------
    >>> bars({"mail": 1, "search": 4})
    [('search', '4', 100.0), ('mail', '1', 25.0)]
    """
    chosen = list(islice(counts.items(), most)) if ordered else Counter(counts).most_common(most)
    longest = max((count for _, count in chosen), default=1) or 1
    return [
        (label, f"{count:,}" if count < _LARGE else short_text(count), round(100 * count / longest, 1))
        for label, count in chosen
    ]


def over_time(starts: np.ndarray[Any, Any], text: Callable[[int], str]) -> Bars:
    """How many rows begin at each time, or in equal parts of time with the part's beginning, where those are many."""
    if not len(starts):
        return []
    times, found = np.unique(starts, return_counts=True)
    if len(times) <= _MOST_TIMES:
        return bars(dict(zip(map(text, times.tolist()), found.tolist(), strict=True)), ordered=True, most=_MOST_TIMES)
    first, last = int(starts.min()), int(starts.max())
    width = max(1, -(-(last - first + 1) // _MOST_TIMES))
    counts = np.bincount((starts - first) // width, minlength=1).tolist()
    longest = max(counts)
    return [
        (text(first + place * width), f"{count:,}", round(100 * count / longest, 1))
        for place, count in enumerate(counts)
    ]


def evidence_of_each(
    first: Sequence[Iterable[Mapping[str, Any]]],
    why: Why,
    commands: Sequence[Sequence[str]],
    prefix: str,
    events: int | None,
    most: int,
) -> list[dict[str, Any]]:
    """The first rows of each work with their evidence; of inputs of more than `most` events the commands alone."""
    found = []
    for place, rows in enumerate(first):
        explained = partial(why, place) if (events or 0) <= most else None
        found += evidence_of(rows, explained, commands[place], f"{prefix}{place}-")
    return found


def evidence_of(
    rows: Iterable[Mapping[str, Any]],
    why: Callable[[Mapping[str, Any]], Any] | None,
    command: Sequence[str],
    prefix: str = "",
) -> list[dict[str, Any]]:
    """Rows with their evidence as a fragment of a page, or the command that gives it.

    Parameters
    ----------
    rows : iterable of mapping
        The rows, ``query`` among their columns where several queries have rows.
    why : callable or None
        Gives the evidence of a row; None where the input is too large.
    command : sequence of str
        The command without the row.
    prefix : str
        How the names of the evidence on the page begin.
    """
    found: list[dict[str, Any]] = []
    until = None
    for number, row in enumerate(rows):
        shown = {name: json_value(value) for name, value in row.items()}
        body, note = Markup(""), ""
        if why is not None and (until is None or time.monotonic() < until):
            until = until or time.monotonic() + _SECONDS
            try:
                body = Markup(why(row).fragment(f"{prefix}r{number}-"))
            except HamletError as error:
                note = str(error)
            if len(body) > _LONGEST:
                body, note = Markup(""), "The evidence is too long for a page."
        text = json.dumps(shown, ensure_ascii=False)
        label = ", ".join(f"{name} {'NULL' if value is None else value}" for name, value in shown.items())
        found.append({"label": label, "body": body, "note": note, "command": shlex.join([*command, "--row", text])})
    return found
