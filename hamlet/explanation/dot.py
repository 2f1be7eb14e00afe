"""Templates and plans as a Graphviz digraph: a cluster per class, in it one per query, in it one per negated pattern.

A cluster per sharing group besides has its merged template, whose transitions are labelled with their queries (Fig. 3).

``hamlet explain W.sase --format dot | dot -Tsvg`` draws it. The start is a filled circle, an end a double one; a dashed
cluster is a negated pattern; a bold transition looks back at single events, or is that of several queries.

Source: HAMLET (SIGMOD'21) Fig. 3 (drawn templates).
"""

from __future__ import annotations

from collections.abc import Iterator

from hamlet.explanation.sharing import SharingView, kleene_text
from hamlet.explanation.sharing_text import listed
from hamlet.explanation.views import QueryView, Steps, WorkloadView, bracketed, duration_text, negated_texts
from optimizer.merge import SharingGroup
from optimizer.template import START


def as_dot(workload: WorkloadView) -> str:
    """The digraph of a workload, in the DOT language."""
    lines = ["digraph workload {", "  rankdir=LR;", '  node [shape=circle, fontname="Helvetica"];']
    lines += ['  edge [fontname="Helvetica"];', '  graph [fontname="Helvetica", labeljust=l];']
    for number, each in enumerate(workload.plan.classes):
        pane = duration_text(each.pane, workload.ticks_per_second)
        lines.append(f"  subgraph cluster_class{number} {{")
        attributes = ", ".join(each.attributes) or "nothing"
        lines.append(f"    label={_quoted(f'partition by {attributes}', f'pane {pane}')};")
        for place in each.queries:
            lines += [f"    {line}" for line in _query(place, workload.queries[place])]
        lines.append("  }")
    for number, group in enumerate(workload.shared.sharing.groups):
        pane = duration_text(group.pane, workload.ticks_per_second)
        lines += [f"  {line}" for line in _group(f"group{number}", group, pane, workload.shared)]
    lines.append("}")
    return "\n".join(lines)


def _query(place: int, query: QueryView) -> Iterator[str]:
    for steps in query.templates:
        part = "" if steps.part is None else f"_{steps.part}"
        title = query.name if steps.part is None else f"{query.name}, {steps.part}"
        yield from _cluster(f"q{place}{part}", (title, query.pattern, f"within {query.window.within}"), "solid", steps)


def _group(name: str, group: SharingGroup, pane: str, view: SharingView) -> Iterator[str]:
    """The merged template of a sharing group."""
    title = f"shared by {listed(view.names(group.queries))}"
    ends = dict(group.template.finals)
    yield f"subgraph cluster_{name} {{"
    yield f"  label={_quoted(title, *(kleene_text(each) for each in group.sub_patterns), f'pane {pane}')}; style=bold;"
    yield f'  {name}_{START} [label="start", style=filled, fillcolor=lightgrey];'
    for number, state in enumerate(group.template.states):
        if number != START:
            shape = "doublecircle" if number in ends else "circle"
            yield f"  {name}_{number} [label={_quoted(state.type)}, shape={shape}];"
    for step in group.template.transitions:
        lines = [
            listed([view.name(part) for part in step.parts]),
            *(f"not {bracketed(guard)}" for guard in step.guards),
        ]
        shared = ", style=bold" if len(step.parts) > 1 else ""
        yield f"  {name}_{step.source} -> {name}_{step.target} [label={_quoted(*lines)}{shared}];"
    yield "}"


def _cluster(name: str, title: tuple[str, ...], style: str, steps: Steps) -> Iterator[str]:
    """The states and transitions of one template, and the templates of its negated patterns inside."""
    template = steps.template
    ends = {final.state: final.guards for final in template.finals}
    yield f"subgraph cluster_{name} {{"
    yield f"  label={_quoted(*title)}; style={style};"
    yield f'  {name}_{START} [label="start", style=filled, fillcolor=lightgrey];'
    for state in range(1, template.size):
        lines = [template.variable(state)]
        lines += [f"not {text} after" for text in negated_texts(template, ends.get(state, frozenset()))]
        shape = "doublecircle" if state in ends else "circle"
        yield f"  {name}_{state} [label={_quoted(*lines)}, shape={shape}];"
    for step, shown in zip(template.transitions, steps.steps, strict=True):
        lines = [template.variable(step.target)]
        lines += [f"not {text}" for text in negated_texts(template, step.guards)]
        lines += [] if shown.predicate is None else [shown.predicate]
        style_of_edge = ", style=bold" if shown.reads in ("search", "scan") else ""
        yield f"  {name}_{step.source} -> {name}_{step.target} [label={_quoted(*lines)}{style_of_edge}];"
    for number, (guard, inner) in enumerate(zip(template.guards, steps.guards, strict=True)):
        for line in _cluster(f"{name}_not{number}", (f"not {guard.text}",), "dashed", inner):
            yield f"  {line}"
    yield "}"


def _quoted(*lines: str) -> str:
    """A label of several lines as a DOT string; a backslash and a quote stand for themselves."""
    escaped = [line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") for line in lines]
    return '"' + "\\n".join(escaped) + '"'
