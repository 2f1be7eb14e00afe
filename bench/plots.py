"""Plots of the paper's figures from the JSON files: one per figure, what the paper says in the caption."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.store import newest_case

FIGURES = Path(__file__).resolve().parent / "figures"


@dataclass(frozen=True)
class Panel:
    """One picture of a figure: `metric` of every contender over the fact `x`, where other facts have fixed values."""

    metric: str
    label: str
    x: str
    x_label: str
    fixed: tuple[tuple[str, float | str], ...] = ()
    log_y: bool = True
    log_x: bool = False
    scale: float = 1.0


@dataclass(frozen=True)
class Figure:
    """A figure of the report: which case, which panels, and what the paper says."""

    name: str
    case: str
    title: str
    caption: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Drawn:
    """A figure that was written."""

    title: str
    caption: str
    file: Path


RATE, QUERIES = "events per minute", "queries"
Axis = tuple[str, str, tuple[tuple[str, float], ...]]  # the fact x, its label, what is fixed


def _axes(queries: int, fixed: str, value: float) -> tuple[Axis, Axis]:
    """Of the paper's figures: rates with one number of queries, numbers of queries with one value of a fact."""
    return ("events_per_min", RATE, (("queries", queries),)), ("queries", QUERIES, ((fixed, value),))


def _windows(queries: int, speed_up: float) -> tuple[Axis, Axis]:
    """Sizes of windows with one number of queries, numbers of queries with one speed."""
    return ("window_events", "events per window", (("queries", queries),)), (
        "queries",
        QUERIES,
        (("speed_up", speed_up),),
    )


def _panels(*axes: Axis) -> tuple[Panel, ...]:
    return tuple(
        panel
        for axis in axes
        for panel in (
            Panel("latency_s", "latency [ms]", *axis, scale=1e3),
            Panel("events_per_s", "throughput [events/s]", *axis),
            Panel("grown_bytes", "peak memory added [MiB]", *axis, log_y=False, scale=2**-20),
        )
    )


def _counted(*axes: Axis) -> tuple[Panel, ...]:
    names = (("snapshots", "snapshots"), ("shared_graphlets", "shared graphlets"))
    return tuple(Panel(metric, label, *axis) for axis in axes for metric, label in names)


_DENSE = "The paper: HAMLET is ahead of GRETA's graph of events by three to five orders of magnitude, both in Java."
STOCK = _axes(50, "events_per_min", 3_000)
SPEC: tuple[Figure, ...] = (
    Figure(
        "figure8",
        "ridesharing",
        "Ridesharing: all approaches (the paper's Figures 8 and 9)",
        "The paper: HAMLET's latency is below that of GRETA, MCEP and SHARON at every rate and number of queries, "
        "by up to five orders of magnitude; two-step approaches do not end where trends are long.",
        _panels(*_axes(25, "events_per_min", 20_000)),
    ),
    Figure(
        "two-step",
        "two-step",
        "Ridesharing: where constructing trends ends",
        "The paper: the two-step approach is exponential in the events of a window, since it constructs every trend.",
        (Panel("wall_s", "time [s]", "window_events", "events per window"),),
    ),
    Figure(
        "figure10-taxi",
        "taxi-rates",
        "NYC taxi, sped up, windows of 6,000 to 19,000 events (the paper's Figure 10)",
        "The paper: HAMLET stays ahead of GRETA on real streams as rates and queries grow.",
        _panels(*_axes(25, "speed_up", 1_000)),
    ),
    Figure(
        "figure10-smarthome",
        "smarthome-rates",
        "Smart home, sped up, windows of some hundred events per plug (the paper's Figure 10)",
        "The paper: HAMLET stays ahead of GRETA on real streams as rates and queries grow.",
        _panels(*_axes(25, "speed_up", 16)),
    ),
    Figure(
        "figure10-taxi-dense",
        "taxi-dense",
        "NYC taxi, windows of 40,000 to 100,000 events (the paper's Figure 10, its authors' programme's density)",
        _DENSE,
        _panels(*_windows(10, 3_300)),
    ),
    Figure(
        "figure10-smarthome-dense",
        "smarthome-dense",
        "Smart home, windows of 40,000 to 100,000 events (the paper's Figure 10, its authors' programme's density)",
        _DENSE,
        _panels(*_windows(10, 10)),
    ),
    Figure(
        "figure11",
        "stock-rates",
        "Stock, a diverse workload: dynamic against static sharing (the paper's Figures 11 and 12)",
        "The paper: deciding burst by burst beats a sharing plan that is fixed beforehand, at every rate and number of "
        "queries, since a static plan keeps making snapshots where sharing does not pay.",
        _panels(*STOCK) + _counted(*STOCK),
    ),
    Figure(
        "sharing-map",
        "sharing-map",
        "Where sharing pays, by what a burst costs: 50 queries with one Kleene sub-pattern",
        "The paper (Section 4): sharing a burst pays where the work that is saved outweighs the snapshots made.",
        tuple(
            Panel("events_per_s", f"{rung}: events/s", "events_per_burst", "events per burst", fixed, log_x=True)
            for rung in ("count", "sums", "extremum", "exact", "local", "index", "scan")
            for fixed in ((("rung", rung), ("queries", 50)),)
        ),
    ),
    Figure(
        "growth",
        "growth",
        "Queries that share one Kleene sub-pattern",
        "The paper (Section 4): the shared part of a burst costs the same however many queries share it.",
        (Panel("events_per_s", "throughput [events/s]", "queries", QUERIES, log_x=True),),
    ),
    Figure(
        "policies-intervals",
        "policies-intervals",
        "Policies: an event's cost as the interval grows from 10 s to 30 days",
        "Where the same valuations recur, nothing changes; where each event has a new one, ever more are kept.",
        tuple(
            Panel(
                "events_per_s",
                f"{policy}, {kind}: events/s",
                "interval_s",
                "interval [s]",
                (("policy", policy), ("values", values)),
                log_y=False,
                log_x=True,
            )
            for policy in ("once", "eventually")
            for kind, values in (("recurring", 1_000), ("new", 10**9))
        ),
    ),
    Figure(
        "policies-pushes",
        "policies-pushes",
        "Policies: small pushes to a monitor that keeps much",
        "A push costs what it changes, not what is kept.",
        tuple(
            Panel("events_per_s", f"{policy}: events/s", "kept", "events kept", (("policy", policy),), log_x=True)
            for policy in ("once", "eventually")
        ),
    ),
    Figure(
        "verdicts",
        "verdicts",
        "Verdicts: bytes held as the events of a time-stamp grow (Basin, Bhatt, Traytel, TACAS 2017, Figure 5)",
        "The paper: modes local and global hold the same whatever the event rate; a verdict for every time-point does "
        "not.",
        tuple(
            Panel(
                "held_bytes", f"{name}: bytes held", "rate", "events per time-stamp", (("formula", name),), log_x=True
            )
            for name in ("eventually", "until", "since_until", "response", "invariant")
        ),
    ),
)


def series(case: Mapping[str, Any], panel: Panel) -> dict[str, list[tuple[float, float]]]:
    """For each contender the points of a panel, by x."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for point in case["points"]:
        facts = point.get("facts", {})
        if panel.x not in facts or any(facts.get(name) != value for name, value in panel.fixed):
            continue
        for name, values in point.get("measured", {}).items():
            found = values.get("metrics", {}).get(panel.metric, values.get(panel.metric))
            if found is not None:
                median = statistics.median(found) if isinstance(found, Sequence) else found
                lines.setdefault(name, []).append((facts[panel.x], median * panel.scale))
    return {name: sorted(points) for name, points in lines.items()}


def write_plots(results: Path, figures: Path) -> list[Drawn]:
    """Draw every figure whose case has been measured; returns what was written."""
    drawn = []
    for figure in SPEC:
        case = newest_case(results, figure.case)
        if case is not None and any(series(case, panel) for panel in figure.panels):
            figures.mkdir(parents=True, exist_ok=True)
            file = figures / f"{figure.name}.svg"
            _draw(figure, case, file)
            size = "Small sizes (--quick): the shape says little. " if case["quick"] else ""
            drawn.append(Drawn(figure.title, f"{figure.title}. {size}{figure.caption}", file))
    return drawn


def _draw(figure: Figure, case: Mapping[str, Any], file: Path) -> None:
    import matplotlib  # only here, so that cases run without it

    matplotlib.use("svg")
    matplotlib.rcParams |= {"svg.hashsalt": "hamlet", "svg.fonttype": "none"}  # the same numbers give the same file
    from matplotlib import pyplot

    shown = [(panel, lines) for panel in figure.panels if (lines := series(case, panel))]
    columns = min(3, len(shown))
    height = -(-len(shown) // columns)
    canvas, axes = pyplot.subplots(height, columns, figsize=(4.2 * columns, 3.1 * height), squeeze=False)
    for axis in axes.flat[len(shown) :]:
        axis.set_visible(False)
    for axis, (panel, lines) in zip(axes.flat, shown, strict=False):
        for number, (name, points) in enumerate(lines.items()):
            axis.plot(*zip(*points, strict=True), marker="osD^vP"[number % 6], markersize=4, label=name)
        axis.set_xlabel(panel.x_label)
        axis.set_ylabel(panel.label)
        axis.set_xscale("log" if panel.log_x else "linear")
        axis.set_yscale("log" if panel.log_y else "linear")
        if not panel.log_y:
            axis.set_ylim(bottom=0)  # else a difference of a few percent fills the picture
        axis.grid(visible=True, alpha=0.3)
    axes.flat[0].legend(fontsize=8)
    canvas.suptitle(figure.title + (" (small sizes)" if case["quick"] else ""), fontsize=11)
    canvas.tight_layout()
    canvas.savefig(file, metadata={"Date": None})
    pyplot.close(canvas)
