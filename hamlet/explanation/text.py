"""Templates and plans as text for people who know SQL: a block per partitioning and per query, then the words.

A further section is a further function in `as_text`.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence

from hamlet.explanation.sharing_text import listed, sharing_text
from hamlet.explanation.views import (
    GROWING,
    OPERATORS,
    Cause,
    Memory,
    QueryView,
    Steps,
    Variable,
    Window,
    WorkloadView,
    bracketed,
    negated_texts,
)
from hamlet.explanation.views import duration_text as in_words
from hamlet.explanation.words import WIDTH, counted, field, wrapped
from optimizer.bounds import Bound, Line
from optimizer.template import START

SHOWN = 40  # lines of a template; the JSON document has them all
EXAMPLE_BITS = 1000
_PARTS = {
    "left": "template of the left pattern",
    "right": "template of the right pattern",
    "both": "template of the trends that are in both",
}


def as_text(workload: WorkloadView) -> str:
    """The explanation of a workload as text."""
    sections = [
        _classes(workload),
        sharing_text(workload),
        *(_query(place, workload) for place in range(len(workload.queries))),
        _words(workload),
    ]
    return "\n\n".join(sections) + "\n"


# --------------------------------------------------------------------------------------------------------- classes


def _classes(workload: WorkloadView) -> str:
    classes = workload.plan.classes
    queries = counted(len(workload.queries), "query", "queries")
    lines = [f"{queries} in {counted(len(classes), 'partitioning', 'partitionings')}"]
    if workload.time_unit is None:
        lines.append("no input given: attributes without a declared type are taken for numbers")
    for number, each in enumerate(classes, 1):
        names = ", ".join(workload.names(each.queries))
        pane = in_words(each.pane, workload.ticks_per_second)
        lines.append(f"partitioning {number}")
        lines += wrapped("queries", names + (" (side by side)" if len(each.queries) > 1 else ""))
        lines += wrapped("by", ", ".join(each.attributes) or "none: all events together")
        lines += wrapped("pane", pane)
        for kind, some in workload.bursts:
            if some[0] in each.queries:
                lines += wrapped("can share", f"bursts of {kind}: {listed(workload.names(some))}")
        for some in workload.together:
            if some[0] in each.queries:
                lines += wrapped("together", f"{', '.join(workload.names(some))}: single events are kept once")
    return "\n".join(lines)


# --------------------------------------------------------------------------------------------------------- queries


def _query(place: int, workload: WorkloadView) -> str:
    query = workload.queries[place]
    number = next(number for number, each in enumerate(workload.plan.classes, 1) if place in each.queries)
    lines = [f"{query.name} (partitioning {number})"]
    lines += wrapped("pattern", query.pattern)
    lines += wrapped("returns", ", ".join(query.returns))
    lines += field("variables", *(_variable(variable) for variable in query.variables))
    lines += wrapped("partition", partition_text(query))
    if query.matching is not None:
        lines += wrapped("semantics", query.matching.semantics)
        if query.matching.span is not None:
            lines += wrapped("span", f"a trend lasts {query.matching.span} at most, and counts where it ends")
    lines += wrapped("window", window_text(query, workload))
    if len(query.templates) > 1:
        lines += field("pairs", "one trend of the left pattern and another one of the right")
    for steps in query.templates:
        lines += _template(steps)
    lines += wrapped("granularity", *granularity_lines(query))
    lines += wrapped("operator", *operator_lines(query))
    lines += wrapped("memory", *memory_lines(query.memory, query.window))
    lines += wrapped("parallel", *parallel_lines(query))
    return "\n".join(lines)


def _variable(variable: Variable) -> str:
    words = [variable.type if variable.name == variable.type else f"{variable.name}: {variable.type}"]
    if variable.negated:
        words.append("(stands in NOT)")
    if variable.conditions:
        only = len(variable.conditions) == 1
        words.append("WHERE " + " AND ".join(each if only else bracketed(each) for each in variable.conditions))
    if variable.broadcast:
        words.append(f"(has no {', '.join(variable.broadcast)}: agrees with every value)")
    return " ".join(words)


def partition_text(query: QueryView) -> str:
    """The partition attributes of a query, and what a result row stands for."""
    attributes = [*query.grouping, *(name for name in query.equivalence if name not in query.grouping)]
    rows = f"a row per window and {', '.join(query.groups)}" if query.groups else "one row per window"
    if not attributes:
        return f"none: all events together, {rows}"
    rolled_up = [name for name in attributes if name not in query.grouping]
    return f"{', '.join(attributes)}; {rows}{', summed over ' + ', '.join(rolled_up) if rolled_up else ''}"


def window_text(query: QueryView, workload: WorkloadView) -> str:
    """A query's windows in words."""
    begin = "" if query.window.begin is None else f"; {query.window.begin}"
    return _lengths_text(query, workload) + begin


def _lengths_text(query: QueryView, workload: WorkloadView) -> str:
    window = query.window
    if query.matching is not None and query.matching.session:
        return f"sessions: each ends {window.within} after its last event, if no other comes until then"
    if window.within == "all":
        return "one over everything, whose rows come when the input ends"
    if window.slide_ticks == window.within_ticks:
        return f"{window.within}, one after the other"
    if window.slide_ticks > window.within_ticks:
        gap = in_words(window.slide_ticks - window.within_ticks, workload.ticks_per_second)
        return f"{window.within}, a new one every {window.slide}; the {gap} between two windows belong to none"
    return f"{window.within}, a new one every {window.slide}; up to {window.open_at_once:,} are open at a time"


# ------------------------------------------------------------------------------------------------------- templates


def _template(steps: Steps) -> list[str]:
    template = steps.template
    title = [] if steps.part is None else [_PARTS[steps.part]]
    if not template.finals:
        return field("template", *title, "no trend can be in both")
    rows = []
    for step, shown in sorted(zip(template.transitions, steps.steps, strict=True), key=lambda pair: pair[0].source):
        guards = negated_texts(template, step.guards)
        notes = [f"if no {' and no '.join(guards)} {'before' if step.source == START else 'between'}"] if guards else []
        notes += [] if shown.predicate is None else [f"if {shown.predicate}"]
        notes += _how(shown.reads)
        rows.append((_state(steps, step.source), _state(steps, step.target), "; ".join(notes)))
    for final in template.finals:
        guards = negated_texts(template, final.guards)
        rows.append((_state(steps, final.state), "end", f"if no {' and no '.join(guards)} after" if guards else ""))
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    lines = [f"{source:<{widths[0]}} -> {target:<{widths[1]}}  {note}" for source, target, note in rows]
    if len(lines) > SHOWN:
        lines[SHOWN:] = [f"... and {len(lines) - SHOWN:,} more; --format json shows them all"]
    return field("template", *title, *lines)


def _state(steps: Steps, state: int) -> str:
    return "start" if state == START else f"{state} {steps.template.variable(state)}"


def _how(reads: str) -> list[str]:
    """What is worth a word: a transition that is not one addition."""
    words = {"search": "searches the events kept", "scan": "scans the events kept", "sums": "adds several sums"}
    return [words[reads]] if reads in words else []


def granularity_lines(query: QueryView) -> list[str]:
    """How much of the stream is kept for a query, what an event costs it, and why."""
    because = query.memory.because
    if query.matching is not None:
        return [query.matching.rung]
    if not because:
        return ["state-grained: one addition per event and transition"]
    scanned = [cause for cause in because if cause.reads == "scan"]
    searched = [cause for cause in because if cause.reads == "search"]
    lines = []
    if scanned:
        lines.append(f"event-grained: looks back at single events because of {_causes(scanned)} (scan)")
    if searched:
        lines.append(f"indexed: searches among sorted events because of {_causes(searched)} (index)")
    return lines


def operator_lines(query: QueryView) -> list[str]:
    """Which operator computes a query, and why not the next faster one."""
    lines = [f"{query.exact.operator}: {OPERATORS[query.exact.operator]}"]
    if query.exact.instead is not None:
        lines.append(f"not {query.exact.instead}: {query.exact.reason}")
    if query.exact.beyond is not None:
        lines.append(f"beyond 64 bits {query.exact.beyond}: {OPERATORS[query.exact.beyond]}")
    if query.scaled.operator != query.exact.operator:
        lines.append(f"with --numbers float {query.scaled.operator}: {OPERATORS[query.scaled.operator]}")
    return lines


def _causes(causes: Sequence[Cause]) -> str:
    return " and ".join(
        each.predicate + (f" in NOT {bracketed(each.inside)}" if each.inside else "") for each in causes
    )


# ---------------------------------------------------------------------------------------------------------- memory


def memory_lines(memory: Memory, window: Window) -> list[str]:
    """The memory class of a query and the bytes that it needs at most."""
    because = [_causes(memory.because)] if memory.because else []
    because += [f"the type {name}, whose events belong to several partitions" for name in memory.kept_types]
    lines = [memory.name + (f", because of {' and '.join(because)}" if because else "")]
    grows = [f"in {each}" if memory.name == GROWING else f"and {each}" for each in memory.grows]
    lines = [f"{lines[0]} {grows[0]}", *grows[1:]] if memory.name == GROWING else [*lines, *grows]
    if memory.exact is None or memory.scaled is None:
        return lines
    for name, bound in (("exact", memory.exact), ("float", memory.scaled)):
        lines += _bytes(name, bound, memory.lane)
    if memory.kept_types:
        kept = ", ".join(memory.kept_types)
        lines.append(f"besides, once and as they are read, the {kept} events of the longest window of the partitioning")
    if memory.lane == "open start of a trend":
        return lines
    total = math.ceil(memory.exact.partition + window.open_at_once * memory.exact.window.at(EXAMPLE_BITS))
    example = f"exact, counts of {EXAMPLE_BITS:,} bits: at most {total:,} bytes per partition"
    if memory.because:
        event = math.ceil(memory.exact.event + window.open_at_once * memory.exact.event_window.at(EXAMPLE_BITS))
        example += f" + {event:,} bytes per kept event"
    return [*lines, example]


def parallel_lines(query: QueryView) -> list[str]:
    """What can be computed once for several windows, and whether parts of the stream can be computed apart."""
    windows = query.window.open_at_once
    lines = [f"with --numbers float a busy pane is computed once for up to {windows:,} windows"]
    lines = lines if query.maps.panes else []
    if query.maps.refused is None:
        whose = "tasks of Spark (--products)" if query.grouping or query.equivalence else "threads and tasks of Spark"
        return [*lines, f"along time: {whose} can take a time range each"]
    return [*lines, f"not along time: {query.maps.refused}"]


def _bytes(name: str, bound: Bound, lane: str) -> list[str]:
    lines = [f"{name}: at most {bound.partition:,} bytes per partition"]
    if bound.window.constant or bound.window.per_bit:
        lines[0] += f" + {_line(bound.window)} per {lane}"
    more = [f"{bound.event:,} bytes per kept event"] if bound.event else []
    if bound.event_window.constant:
        more.append(f"{_line(bound.event_window)} per kept event and {lane}")
    return [*lines, f"    + {' + '.join(more)}"] if more else lines


def _line(line: Line) -> str:
    constant = f"{math.ceil(line.constant):,}"
    if not line.per_bit:
        return f"{constant} bytes"
    return f"({constant} + {math.ceil(line.per_bit * 1000) / 1000:g} x bits) bytes"


# ----------------------------------------------------------------------------------------------------------- words


def _words(workload: WorkloadView) -> str:
    """What the words mean, of those that this explanation uses."""
    guarded = any(steps.template.guards for query in workload.queries for steps in query.templates)
    reads = {cause.reads for query in workload.queries for cause in query.memory.because}
    used = {query.rung for query in workload.queries} | ({"indexed"} if "search" in reads else set())
    words = {
        "partition": "the events that agree on all these attributes; a trend never leaves its partition",
        "partitioning": "queries with the same partition attributes, which are run together",
        "pane": "the longest time in which no window of the partitioning opens or closes",
        "can share": "a burst is a run of events of one type that no other event of interest interrupts; queries can "
        "share it where each binds its events to one state and does not look back at single events",
        "share": "a part of a pattern that repeats and that several queries have: what a burst (events of one type "
        "that no other event of the group interrupts) adds to it is computed once for those that accept the same "
        "events; alone: once per query. The prices are those of the two models at the constants named",
        "merged": "the templates of a group in one: a transition is that of the queries named",
        "template": "the states of a trend that is under way; '1 A -> 2 B' is taken by an event bound to B that comes, "
        "at any distance, after one bound to A; a trend is complete where it may reach 'end'",
        "if no C": "a negated pattern: no match of it in this gap of the trend (between: the two events; before: the "
        "first event, since the window opened; after: the last event, until the window closes)",
        "state-grained": "the engine keeps one sum per state and open window, and forgets the events",
        "indexed": "every event that the predicate may look back at is kept, sorted, while a window holds it; a new "
        "event costs a few searches, O(log n) for n events kept",
        "event-grained": "every event that the predicate may look back at is kept while a window holds it, and every "
        "new event is compared with all that are kept",
        "parallel": "what events do to the sums of a window is a linear map (a matrix): it can be computed before it "
        "is known what came before these events, by another thread or task, and used for several windows",
        "bits": "binary digits of the largest number of trends, complete or not, that the partition has held; exact "
        "numbers take the room that they need, --numbers float always the same",
        "bytes": "what the engine keeps for one query; each thread has a working area of at most "
        f"{_thread(workload):,} bytes besides (exact, counts of {EXAMPLE_BITS:,} bits)",
    }
    if not workload.shared.sharing.groups:
        del words["share"], words["merged"]
    if not workload.bursts:
        del words["can share"]
    unused = {"state-grained", "indexed", "event-grained"} - used | (set() if guarded else {"if no C"})
    lines = [line for word, meaning in words.items() if word not in unused for line in _meaning(word, meaning)]
    return "\n".join(["words", *lines])


def _meaning(word: str, meaning: str) -> list[str]:
    wide = 16
    lines = textwrap.wrap(meaning, WIDTH - 4 - wide)
    return [f"    {word if place == 0 else '':<{wide}}{line}" for place, line in enumerate(lines)]


def _thread(workload: WorkloadView) -> int:
    """The largest working area that a query of the workload asks for."""
    return max(
        (
            math.ceil(query.window.open_at_once * query.memory.exact.thread.at(EXAMPLE_BITS))
            for query in workload.queries
            if query.memory.exact is not None
        ),
        default=0,
    )
