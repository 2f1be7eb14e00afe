"""The page that shows how a workload will run: what `hamlet explain --html` writes.

It opens with what is asked and who shares with whom; then it draws the merged template of every sharing group and the
template of every query, and shows panes, granularity and memory class. Source: HAMLET (SIGMOD'21) Fig. 3 (drawn
templates), §3.1 (panes).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from typing import Any

from hamlet.explanation.sharing import REASONS, kleene_text
from hamlet.explanation.sharing_text import benefit_text, single_text
from hamlet.explanation.text import (
    granularity_lines,
    memory_lines,
    operator_lines,
    parallel_lines,
    partition_text,
    window_text,
)
from hamlet.explanation.views import READS, QueryView, Steps, WorkloadView, duration_text, negated_texts
from hamlet.language.schema import Schema
from hamlet.pages.drawing import Arrow, State, drawing
from hamlet.pages.page import EXPLAINED, GRAPHS, render, write
from hamlet.planner.explain import view
from hamlet.planner.workload import Workload
from optimizer.merge import SharingGroup
from optimizer.pasts import Place
from optimizer.roles import Part
from optimizer.template import START

_COLOURS = 6  # of shared parts, as the style has them
_WIDEST = 26  # letters of a label
_WINDOWS = 3  # drawn of each query
_MOST_ASKED = 30  # queries in the table at the top
_MOST_PANES = 90  # drawn one by one

_GRANULARITIES = (
    ("state-grained", "one sum per state and open window; events are forgotten at once"),
    ("indexed", "looks back at single events by a search among sorted ones: O(log n) for an event"),
    ("event-grained", "looks back at single events one by one: O(n) for an event"),
)


def write_explanation(
    workload: Workload,
    path: str | os.PathLike[str],
    schema: Schema | None = None,
    source: str | None = None,
    *,
    timezone: str | None = None,
) -> None:
    """Write the page.

    Parameters
    ----------
    workload : Workload
    path : path
    schema : Schema or None
        Of the input, as for `hamlet.planner.explain.explain`.
    source : str or None
        The input's name, where there is one.
    timezone : str, optional
        As for `hamlet.planner.explain.explain`.

    Raises
    ------
    OutputError
        The page cannot be written there.
    WorkloadError
        Names, types or durations that do not fit the schema.
    """
    named = workload.analysis.text.source
    write(page(workload, schema, source, timezone), path, EXPLAINED, [named, *([] if source is None else [source])])


def page(
    workload: Workload, schema: Schema | None = None, source: str | None = None, timezone: str | None = None
) -> str:
    """The page as text; parameters and errors as those of `write_explanation`."""
    shown = view(workload, schema, timezone)
    sharing = shown.shared.sharing
    names = [query.name for query in shown.queries]
    graphs: list[dict[str, Any]] = []
    groups = [_group(number, group, shown, graphs) for number, group in enumerate(sharing.groups, 1)]
    queries = [_query(place, query, shown, graphs) for place, query in enumerate(shown.queries)]
    return render(
        "explain.html",
        (*GRAPHS[0], "explain.css"),
        (*GRAPHS[1], "explain.js"),
        {"queries": names, "graphs": graphs},
        workload=workload.analysis.text.source,
        source=source,
        names=names,
        most_asked=_MOST_ASKED,
        asked=[_asked(place, query, shown) for place, query in enumerate(shown.queries)],
        sharing_queries=len({place for each in shown.sharing_sets for place in each}),
        granularities=[
            (name, meaning, [(place, query.name) for place, query in enumerate(shown.queries) if query.rung == name])
            for name, meaning in _GRANULARITIES
        ],
        groups=groups,
        bursts=[(kind, shown.names(places)) for kind, places in shown.bursts],
        left_out=[names[place] for place in sharing.left_out],
        apart=[
            (
                ", ".join(each.types),
                shown.shared.names(each.queries),
                shown.shared.names(each.others),
                REASONS[each.reason],
            )
            for each in shown.shared.apart
        ],
        constants=shown.shared.constants.text,
        same=[[names[place] for place in each] for each in sharing.same],
        classes=[_class(number, each, shown) for number, each in enumerate(shown.plan.classes, 1)],
        queries=queries,
        reads=[(name, meaning) for name, meaning in READS.items() if name != "start"],
    )


# ----------------------------------------------------------------------------------------------------------- groups


def _asked(place: int, query: QueryView, shown: WorkloadView) -> dict[str, Any]:
    """What a query asks, and which others it may share work with."""
    others = {other for each in shown.sharing_sets if place in each for other in each}
    return {
        "place": place,
        "name": query.name,
        "pattern": query.pattern,
        "returns": ", ".join(query.returns),
        "window": window_text(query, shown),
        "per": ", ".join(query.groups),
        "shares": [(other, shown.queries[other].name) for other in sorted(others - {place})],
    }


def _group(number: int, group: SharingGroup, shown: WorkloadView, graphs: list[dict[str, Any]]) -> dict[str, Any]:
    drawing = _merged(number, group, shown)
    graphs.append(drawing)
    return {
        "number": number,
        "queries": [(place, shown.queries[place].name) for place in group.queries],
        "pane": duration_text(group.pane, shown.ticks_per_second),
        "parts": [
            {
                "colour": place % _COLOURS,
                "text": kleene_text(each),
                "variants": [(", ".join(names), text) for names, text in shown.shared.variants(each)],
                "single": single_text(shown.names(single), each) if (single := shown.single(each)) else "",
                "benefits": [benefit_text(found) for found in shown.shared.benefits(each)],
            }
            for place, each in enumerate(group.sub_patterns)
        ],
        "drawing": len(graphs) - 1,
        "together": any("together" in each["classes"] for each in drawing["states"]),
    }


def _merged(group_number: int, group: SharingGroup, shown: WorkloadView) -> dict[str, Any]:
    """The merged template, shared Kleene sub-patterns coloured, each transition labelled with its queries (Fig. 3)."""
    template = group.template
    colours: dict[Place, int] = {}
    for number, part in enumerate(group.sub_patterns):
        for member in part.members:
            for state in member.states:
                colours.setdefault((member.part, state), number % _COLOURS)
    ends = dict(template.finals)
    states = []
    for number, each in enumerate(template.states):
        queries = _places(part for part, _ in each.members)
        shared = [colours[member] for member in each.members if member in colours]
        conditions = _role(each.members, shown)
        classes = [f"p{shared[0]}"] if shared else ["together"] if len(queries) > 1 and number else []
        classes += ["variant"] * bool(shared and len(queries) == 1)
        states.append(
            State(
                each.type,
                _cut(conditions),
                tuple(_cut(f"no {text} after", 34) for text in _end_guards(ends.get(number, ()), number, group, shown)),
                " ".join(classes + ["final"] * (number in ends)),
                "\n".join(_state_tip(number, each.type, conditions, each.members, ends.get(number, ()), shown)),
                _attribute(queries),
            )
        )
    found: dict[tuple[int, int], list[tuple[tuple[str, ...], tuple[Part, ...]]]] = {}
    for step in template.transitions:
        found.setdefault((step.source, step.target), []).append((step.guards, step.parts))
    arrows = []
    for (begin, end), ways in found.items():
        queries = _places(part for _, parts in ways for part in parts)
        colour = [state.classes.split(" ")[0] for state in (states[begin], states[end])]
        arrows.append(
            Arrow(
                begin,
                end,
                tuple(_cut(_way_label(guards, parts, group, shown), 34) for guards, parts in ways),
                colour[0] if colour[0] == colour[1] and colour[0].startswith("p") else "",
                "\n".join(f"{_names(_places(parts), shown)}{_no(guards)}" for guards, parts in ways),
                _attribute(queries),
            )
        )
    return drawing(f"merged template of group {group_number}", states, arrows)


def _way_label(guards: tuple[str, ...], parts: Sequence[Part], group: SharingGroup, shown: WorkloadView) -> str:
    queries = _places(parts)
    names = _names(queries, shown)
    if len(queries) == len(group.queries) > 2:
        names = "all"
    elif len(names) > _WIDEST:
        names = f"{len(queries)} of {len(group.queries)}"
    return names + _no(guards)


def _no(guards: Iterable[str]) -> str:
    return "".join(f", no {text}" for text in guards)


def _places(parts: Iterable[Part]) -> list[int]:
    return sorted({part.query for part in parts})


def _names(queries: Iterable[int], shown: WorkloadView) -> str:
    return ", ".join(shown.queries[place].name for place in queries)


def _attribute(queries: Iterable[int]) -> str:
    return " ".join(map(str, queries))


def _role(members: Sequence[Place], shown: WorkloadView) -> str:
    """The local predicate of a merged state, without the name that a query gives its variable."""
    texts = []
    for part, state in members:
        query = shown.queries[part.query]
        template = query.templates[part.template].template
        if state == START:
            return ""
        name = template.variable(state)
        conditions = next(each.conditions for each in query.variables if each.name.strip('"') == name)
        texts.append(" AND ".join(re.sub(rf"\b{re.escape(name)}\.", "", each) for each in conditions))
    return texts[0] if len(set(texts)) == 1 else min(texts, key=len)


def _end_guards(parts: Sequence[Part], state: int, group: SharingGroup, shown: WorkloadView) -> list[str]:
    """The negated patterns that must not match after a last event here, and for which queries."""
    found: dict[str, list[int]] = {}
    for part, own in group.template.states[state].members:
        template = shown.queries[part.query].templates[part.template].template
        for final in template.finals:
            if final.state == own and part in parts:
                for text in negated_texts(template, final.guards):
                    found.setdefault(text, []).append(part.query)
    return [f"{text} ({_names(queries, shown)})" for text, queries in found.items()]


def _state_tip(
    number: int, type: str, conditions: str, members: Sequence[Place], ends: Sequence[Part], shown: WorkloadView
) -> Iterable[str]:
    if not number:
        yield "start"
        return
    yield type + (f" where {conditions}" if conditions else "")
    for part, state in members:
        query = shown.queries[part.query]
        steps = query.templates[part.template]
        side = f" ({steps.part})" if steps.part else ""
        yield f"{query.name}{side}: {steps.template.variable(state)}"
    if ends:
        yield f"trends may end here: {_names(_places(ends), shown)}"


def _cut(text: str, widest: int = _WIDEST) -> str:
    return text if len(text) <= widest else text[: widest - 1] + "…"


# ---------------------------------------------------------------------------------------------------------- classes


def _class(number: int, each: Any, shown: WorkloadView) -> dict[str, Any]:
    """Queries with the same partition attributes, and where its panes cut the windows."""
    windows: dict[tuple[int, int], list[int]] = {}
    for place in each.queries:
        window = shown.queries[place].window
        windows.setdefault((window.within_ticks, window.slide_ticks), []).append(place)
    span = max(min(within + (_WINDOWS - 1) * slide, 2 * within + slide) for within, slide in windows)
    panes = -(-span // each.pane)
    return {
        "number": number,
        "attributes": ", ".join(each.attributes) or "nothing: all events together",
        "queries": [(place, shown.queries[place].name) for place in each.queries],
        "pane": duration_text(each.pane, shown.ticks_per_second),
        "panes": [100 * place * each.pane / span for place in range(1, panes)] if panes <= _MOST_PANES else [],
        "rows": [
            {
                "within": shown.queries[places[0]].window.within,
                "slide": shown.queries[places[0]].window.slide,
                "open": shown.queries[places[0]].window.open_at_once,
                "panes": within // each.pane,
                "queries": [(place, shown.queries[place].name) for place in places],
                "bars": [
                    (100 * slide * place / span, 100 * within / span)
                    for place in range(_WINDOWS)
                    if slide * place + within <= span
                ],
            }
            for (within, slide), places in sorted(windows.items())
        ],
    }


# ---------------------------------------------------------------------------------------------------------- queries


def _query(place: int, query: QueryView, shown: WorkloadView, graphs: list[dict[str, Any]]) -> dict[str, Any]:
    first = len(graphs)
    titled = [*_drawings(query.templates, f"template of {query.name}")]
    graphs += [graph for _, graph in titled]
    return {
        "place": place,
        "name": query.name,
        "pattern": query.pattern,
        "returns": ", ".join(query.returns),
        "variables": query.variables,
        "partition": partition_text(query),
        "window": window_text(query, shown),
        "granularity": query.rung,
        "why": granularity_lines(query),
        "operator": operator_lines(query),
        "memory": memory_lines(query.memory, query.window),
        "parallel": parallel_lines(query),
        "drawings": [(about, first + number) for number, (about, _) in enumerate(titled)],
    }


def _drawings(templates: Iterable[Steps], label: str, about: str = "") -> Iterable[tuple[str, dict[str, Any]]]:
    """The templates of a query, then those of its longer negated patterns, each with what it is."""
    for steps in templates:
        yield steps.part or about, _template(steps, label)
        for guard, inner in zip(steps.template.guards, steps.guards, strict=True):
            if inner.template.size > 2:  # of a single event there is nothing to draw
                yield from _drawings([inner], f"{label}, NOT {guard.text}", f"NOT {guard.text}")


def _template(steps: Steps, label: str) -> dict[str, Any]:
    template = steps.template
    ends = {final.state: final.guards for final in template.finals}
    states = [State("", tip="start")]
    for number in range(1, template.size):
        name, type = template.variable(number), template.types[template.labels[number]]
        below = tuple(_cut(f"no {text} after", 34) for text in negated_texts(template, ends.get(number, frozenset())))
        classes = "kleene" * (number in template.kleene_states) + " final" * (number in ends)
        tip = f"{type} {name}" + "\na trend may end here" * (number in ends)
        states.append(State(type, name if name != type else "", below, classes, tip))
    found: dict[tuple[int, int], list[tuple[str, str, str]]] = {}
    for step, done in zip(template.transitions, steps.steps, strict=True):
        no = ", ".join(f"no {text}" for text in negated_texts(template, step.guards))
        label = ", ".join(part for part in (done.predicate and _cut(done.predicate), no) if part)
        found.setdefault((step.source, step.target), []).append(
            (label, done.reads, "\n".join(part for part in (READS[done.reads], done.predicate, no) if part))
        )
    arrows = [
        Arrow(
            begin,
            end,
            tuple(_cut(label, 34) for label, _, _ in ways if label),
            f"r-{ways[0][1]}",
            "\n".join(tip for _, _, tip in ways),
        )
        for (begin, end), ways in found.items()
    ]
    return drawing(label, states, arrows)
