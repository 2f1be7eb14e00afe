"""The text of what queries share: a block per group, a line per reason why queries stay apart."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from hamlet.explanation.sharing import REASONS, Benefit, SharingView, kleene_text
from hamlet.explanation.views import WorkloadView, bracketed, duration_text
from hamlet.explanation.words import counted, field, wrapped
from optimizer.merge import SharingGroup, SubPattern
from optimizer.merged import MergedTemplate
from optimizer.template import START

SHOWN = 40  # lines of a merged template; the JSON document has them all
FEW = 20  # of other lists
NAMED = 12  # queries of a list


def sharing_text(workload: WorkloadView) -> str:
    """What may be shared, in words."""
    view = workload.shared
    sharing = view.sharing
    lines = [f"sharing: {counted(len(sharing.groups), 'group', 'groups')}" if sharing.groups else "sharing: no group"]
    lines += wrapped("costs", view.constants.text)
    for each in sharing.same:
        lines += wrapped("same", f"{listed(view.names(each))} have the same trends: one evaluation serves them")
    for name in view.names(sharing.left_out):
        lines += wrapped("left out", f"{name}: its windows would cut panes that cost more than sharing saves")
    for place, group in enumerate(sharing.groups, 1):
        lines += _group(place, group, workload)
    lines += field("not shared", *_cut(list(_reasons(view)), FEW))
    return "\n".join(lines)


def _cut(lines: list[str], most: int) -> list[str]:
    """The first lines, and how many more there are."""
    rest = len(lines) - most
    return lines if rest <= 0 else [*lines[:most], f"... and {rest:,} more; --format json shows them all"]


def listed(names: Sequence[str]) -> str:
    """Names, the last of many left out."""
    shown = ", ".join(names[:NAMED])
    return shown if len(names) <= NAMED else f"{shown} and {len(names) - NAMED:,} more"


def _group(place: int, group: SharingGroup, workload: WorkloadView) -> Iterator[str]:
    view = workload.shared
    yield f"  group {place}"
    yield from wrapped("queries", listed(view.names(group.queries)))
    yield from wrapped("pane", duration_text(group.pane, workload.ticks_per_second))
    for pattern in group.sub_patterns:
        yield from wrapped("share", *_sub_pattern(view, pattern), *_single(workload, pattern))
    yield from wrapped("equal", *_cut(list(_equal(view, group)), FEW))
    yield from field("merged", *_cut(list(_template(view, group.template)), SHOWN))
    yield from wrapped("kept", *_cut(list(_measures(view, group.template)), FEW))


def _equal(view: SharingView, group: SharingGroup) -> Iterator[str]:
    """States whose sums are equal at all times."""
    for states in group.pasts.states:
        names = list(dict.fromkeys(view.name(part) for part, _ in states))
        part, state = states[0]
        variable = view.queries[part.query].templates[part.template].variable(state)
        yield f"the sums up to {variable} of {listed(names)} are equal at all times"


def _sub_pattern(view: SharingView, pattern: SubPattern) -> Iterator[str]:
    yield f"{kleene_text(pattern)} in {listed(view.names(pattern.queries))}"
    variants = list(view.variants(pattern))
    if len(variants) > 1:
        yield from _cut(
            [f"  {listed(names)}: {f'where {text}' if text else 'all events'}" for names, text in variants], FEW
        )
        yield "  what is not accepted by all is found out in every burst"
    elif variants[0][1]:
        yield f"  where {variants[0][1]}"
    yield from (f"  {benefit_text(each)}" for each in view.benefits(pattern))


def _single(workload: WorkloadView, pattern: SubPattern) -> Iterator[str]:
    single = workload.single(pattern)
    if single:
        yield f"  {single_text(workload.names(single), pattern)}"


def single_text(names: Sequence[str], pattern: SubPattern) -> str:
    """Which queries of a sub-pattern share no burst of it in a run, and why."""
    types = " or ".join(pattern.shape.types)
    return f"no burst is shared with {listed(names)}: there a {types} fits several states, or is compared with others"


def benefit_text(found: Benefit) -> str:
    """What sharing a usual burst is worth, in words."""
    worth = f"a burst of {found.events} events costs {found.shared:,.0f} {found.unit} shared, {found.alone:,.0f} alone"
    if not math.isfinite(found.shares_from):
        return f"{found.model}: {worth}; sharing does not pay"
    least = max(1, math.floor(found.shares_from) + 1)
    return f"{found.model}: {worth}; sharing pays from {counted(least, 'event', 'events')} on"


def _template(view: SharingView, template: MergedTemplate) -> Iterator[str]:
    def state(place: int) -> str:
        return "start" if place == START else f"{place} {template.states[place].type}"

    rows = [
        (
            state(step.source),
            state(step.target),
            listed([view.name(part) for part in step.parts]),
            "".join(f"; no {bracketed(guard)} between" for guard in step.guards),
        )
        for step in sorted(template.transitions, key=lambda step: step.source)
    ]
    rows += [(state(place), "end", listed([view.name(part) for part in parts]), "") for place, parts in template.finals]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    yield from (
        f"{source:<{widths[0]}} -> {target:<{widths[1]}}  {names}{note}" for source, target, names, note in rows
    )


def _measures(view: SharingView, template: MergedTemplate) -> Iterator[str]:
    """What is kept of the events of a state beside the number of trends, once for all that ask for it."""
    words = {"sum": "sum of {}", "occurrences": "number of {}", "least": "least {}", "greatest": "greatest {}"}
    for place, state in enumerate(template.states):
        for each in state.measures:
            what = words.get(each.kind, "whether there is a {}").format(each.attribute or "events")
            yield f"{place} {state.type}: {what} for {listed([view.name(part) for part in each.parts])}"


def _reasons(view: SharingView) -> Iterator[str]:
    for each in view.apart:
        queries, others = (listed(view.names(some)) for some in (each.queries, each.others))
        pattern = f"{each.types[0]}+" if len(each.types) == 1 else f"the cycle of {', '.join(each.types)}"
        yield f"{queries} and {others} do not share {pattern}: {REASONS[each.reason]}"
