"""Pages about policies: how they will be evaluated, and where and by whom they were broken."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from hamlet.output.columnar import csv_texts
from hamlet.pages.findings import Why, evidence_of_each
from hamlet.pages.page import EXPLAINED, RunPage, render, write
from hamlet.policies.plan.explaining import CLASSES, Shown, worst

_WORST = dict(zip(CLASSES, ("nothing", *(f"memory {each}" for each in CLASSES[1:-1]), "unbounded memory"), strict=True))
_COUNTED = (
    ("events", "events"),
    ("time_points", "time-points"),
    ("matched_events", "events in relations"),
    ("null_events", "events without a value"),
    ("unknown_events", "events of unknown predicates"),
)
_BARS = 120
_TOP = 15
_EVIDENCE = 3  # rows of each policy with evidence
_MOST_PROVED = 200_000  # events of an input that is read for a proof
_MOST_KEPT = 1_000_000  # valuations that are counted; rarer ones beyond that are forgotten


def explanation(
    policies: Sequence[tuple[str, str, Shown, Sequence[str], bool]], signature: str, path: str | os.PathLike[str]
) -> None:
    """Write the page that shows how policies will be evaluated.

    Parameters
    ----------
    policies : sequence of (str, str, Shown, sequence of str, bool)
        Name, text, tree, free variables, and whether rows are violations.
    signature : str
        The file of the signature.
    path : path

    Raises
    ------
    OutputError
        The page cannot be written there.
    """
    shown: list[dict[str, Any]] = [
        {
            "name": name,
            "text": text.strip(),
            "row": "a violation" if violations else "values that satisfy it",
            "columns": ["time", "time_point", *columns],
            "memory": worst(tree),
            "nodes": list(tree.walk()),
        }
        for name, text, tree, columns, violations in policies
    ]
    names = ", ".join(each["name"] for each in shown)
    page = render(
        "policy.html",
        ("watched.css",),
        (),
        {},
        workload=names,
        signature=signature,
        policies=shown,
        worst=_WORST[max((each["memory"] for each in shown), key=CLASSES.index)],
        classes=CLASSES,
    )
    write(page, path, EXPLAINED, [signature])


class ViolationReport(RunPage):
    """Watches the rows of policies, and writes a page about them.

    Parameters
    ----------
    policies : sequence of (str, str, str, sequence of str)
        Name, text, what a row is (``violations``), and the columns of a valuation.
    path, keep
        As of `RunPage`.
    """

    def __init__(
        self, policies: Sequence[tuple[str, str, str, Sequence[str]]], path: str | os.PathLike[str], keep: Sequence[str]
    ) -> None:
        super().__init__(path, keep)
        self._policies = policies
        self._counts = [0] * len(policies)
        self._times: list[Counter[int]] = [Counter() for _ in policies]
        self._spans: list[tuple[int, int] | None] = [None] * len(policies)  # ticks of the first and the last row
        self._steps = [1] * len(policies)
        self._types: list[pa.DataType] = [pa.int64() for _ in policies]
        self._top: list[Counter[tuple[str, ...]]] = [Counter() for _ in policies]
        self._first: list[list[dict[str, Any]]] = [[] for _ in policies]

    def see(self, place: int, rows: pa.RecordBatch) -> None:
        """Count the rows of a policy."""
        if not rows.num_rows:
            return
        self._counts[place] += rows.num_rows
        if len(self._first[place]) < _EVIDENCE:
            self._first[place] += rows.slice(0, _EVIDENCE - len(self._first[place])).to_pylist()
        times = rows.column("time")
        self._types[place] = times.type
        ticks = times.cast(pa.int64()).to_numpy(zero_copy_only=False)
        before = self._spans[place] or (int(ticks[0]), int(ticks[0]))
        self._spans[place] = min(before[0], int(ticks.min())), max(before[1], int(ticks.max()))
        values, counts = np.unique(ticks // self._steps[place], return_counts=True)
        self._times[place].update(dict(zip(values.tolist(), counts.tolist(), strict=True)))
        while len(self._times[place]) > 64 * _BARS:  # coarser, so that memory does not grow
            coarse: Counter[int] = Counter()
            for value, count in self._times[place].items():
                coarse[value // 2] += count
            self._times[place], self._steps[place] = coarse, self._steps[place] * 2
        columns = self._policies[place][3]
        if columns:
            texts = [csv_texts(rows.column(name)) for name in columns]
            self._top[place].update(zip(*texts, strict=True))
            if len(self._top[place]) > 2 * _MOST_KEPT:
                self._top[place] = Counter(dict(self._top[place].most_common(_MOST_KEPT)))

    def write(
        self,
        source: str,
        settings: Sequence[tuple[str, str]],
        stats: Mapping[str, Any],
        seconds: float,
        why: Why,
        commands: Sequence[Sequence[str]],
    ) -> None:
        """Write the page; ``stats["notes"]`` is what was strange, `why` gives evidence of a policy's row."""
        shown = []
        charts: list[dict[str, Any]] = []
        for place, (name, text, what, columns) in enumerate(self._policies):
            top = [(values, f"{number:,}") for values, number in self._top[place].most_common(_TOP)]
            often = bool(top) and top[0][1] != "1"
            span = self._spans[place]
            first, last = csv_texts(pa.array(span).cast(self._types[place])) if span else ("", "")
            shown.append(
                {
                    "name": name,
                    "text": text.strip(),
                    "what": what,
                    "columns": columns,
                    "rows": self._counts[place],
                    "first": first,
                    "last": last,
                    "most": ", ".join(map(" = ".join, zip(columns, top[0][0], strict=True))) if often else "",
                    "most_rows": top[0][1] if often else "",
                    "chart": len(charts) if span else None,
                    "top": top,
                }
            )
            if span:
                charts.append({"label": f"{what} of {name} over time", "what": what, **self._bars(place)})
        self._write(
            "violations.html",
            charts,
            stats,
            _COUNTED,
            [(f"{sum(self._counts):,}", "rows"), (f"{seconds:.2f} s", "run time")],
            workload=", ".join(name for name, *_ in self._policies),
            strange=list(stats.get("notes", ())),
            evidence=evidence_of_each(self._first, why, commands, "p", stats.get("events"), _MOST_PROVED),
            source=source,
            settings=settings,
            policies=shown,
            kind=kinds.pop() if len(kinds := {what for _, _, what, _ in self._policies}) == 1 else "rows",
        )

    def _bars(self, place: int) -> dict[str, Any]:
        """Counts of equal lengths of time: ``bars``, and the ``times`` where they begin and end."""
        times, step = self._times[place], self._steps[place]
        first, last = min(times), max(times)
        width = max(1, -(-(last - first + 1) // _BARS))
        counts = [0] * (-(-(last - first + 1) // width))
        for value, count in times.items():
            counts[(value - first) // width] += count
        edges = [(first + number * width) * step for number in range(len(counts) + 1)]
        return {"bars": counts, "times": csv_texts(pa.array(edges).cast(self._types[place]))}
