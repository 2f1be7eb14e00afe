"""The facts of `hamlet.explanation.views` as a JSON document.

It is stable: keys may be added, `version` changes when one is renamed, removed or changes its meaning.

``version``
    1.
``time_unit``
    Unit of the ticks below: ``s``, ``ms``, ``us`` or ``ns``; null without an input. Then every ``ticks`` is null, and
    attributes without a declared type are taken for numbers.
``classes[]``
    Queries that run side by side: ``attributes`` (partition attributes), ``queries`` (names), ``pane`` (duration),
    ``together[]`` (names of queries for which single events are kept once, with sums for each), ``bursts[]``
    (``type``, and the names of the ``queries`` that can share its bursts).
``sharing``, ``constants``
    What queries share, and the prices that decide about it: `hamlet.explanation.sharing`.
``queries[]``
    ``name``, ``pattern``, ``returns`` (texts), ``class`` (place in ``classes``), ``variables``, ``partition``,
    ``groups``, ``window``, ``templates``, ``rung``, ``operator``, ``memory``, ``maps``.
``queries[].variables[]``
    ``name``, ``type``, ``negated``, ``conditions`` (texts), ``broadcast`` (partition attributes that its type lacks).
``queries[].partition``
    ``grouping``, ``equivalence``: lists of attributes.
``queries[].groups``
    All that GROUP-BY names (texts), what trends took included.
``queries[].window``
    ``within``, ``slide``: durations ``{"text", "ticks"}``; ``offset`` (text or null); ``timezone`` (name or null);
    ``open_at_once``: the most windows open at one time.
``queries[].templates[]``
    One with ``part`` null; for AND three: ``left``, ``right`` and ``both`` (the trends that are in both).
    ``states[]``: ``id`` (0 is the start), ``variable``, ``type``, ``start``, ``final``, ``end_guards`` (negated
    patterns that must not match after the last event), ``kleene`` (lies on a cycle). ``transitions[]``: ``source``,
    ``target``, ``variable``, ``guards`` (negated patterns that must not match in the gap), ``predicate`` (text or
    null), ``reads`` (a key of `hamlet.explanation.views.READS`). ``guards[]``: ``pattern`` and its own ``template``.
``queries[].rung``
    ``name`` (``state-grained``, ``indexed`` or ``event-grained``), ``because[]`` (``predicate``; ``inside``: the
    negated pattern that it belongs to, or null; ``reads``: ``search`` or ``scan``).
``queries[].operator``
    ``exact`` and ``float``, by what numbers are: ``operator`` (a key of `views.OPERATORS`), ``instead``
    (the next faster one that the query might have had, or null), ``reason`` (why it does not have that one, or null),
    ``beyond`` (who takes over where numbers are beyond 64 bits, if not the usual one, or null).
``queries[].memory``
    ``class`` (``independent of the event rate``, ``linear in the window's matched events`` or ``linear``);
    ``because[]`` as above;
    ``kept_types`` (types whose events are kept because they belong to several partitions); ``exact`` and ``float``:
    bytes at most, see `optimizer.bounds.Bound`, null where no bound is known; ``grows[]``: what else it grows with;
    ``lane``: what the bounds call a window.
``queries[].matching``
    Null, or of a query that the matching operator runs: ``semantics``, ``span`` (text or null), ``session`` (true or
    false), ``rung`` (what an event costs).
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from hamlet.explanation.sharing import as_parts
from hamlet.explanation.views import Memory, QueryView, Steps, WorkloadView, duration_text
from optimizer.template import START

VERSION = 1


def as_json(workload: WorkloadView) -> str:
    """The JSON document that the head of this module describes."""
    document = {
        "version": VERSION,
        "time_unit": workload.time_unit,
        "classes": _classes(workload),
        **as_parts(workload.shared, lambda ticks: _duration(ticks, workload)),
        "queries": [_query(place, query, workload) for place, query in enumerate(workload.queries)],
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


def _duration(ticks: int, workload: WorkloadView) -> dict[str, Any]:
    text = duration_text(ticks, workload.ticks_per_second)
    return {"text": text, "ticks": None if workload.time_unit is None else ticks}


def _classes(workload: WorkloadView) -> list[dict[str, Any]]:
    return [
        {
            "attributes": list(each.attributes),
            "queries": workload.names(each.queries),
            "pane": _duration(each.pane, workload),
            "together": [workload.names(some) for some in workload.together if some[0] in each.queries],
            "bursts": [
                {"type": kind, "queries": workload.names(some)}
                for kind, some in workload.bursts
                if some[0] in each.queries
            ],
        }
        for each in workload.plan.classes
    ]


def _query(place: int, query: QueryView, workload: WorkloadView) -> dict[str, Any]:
    known, window = workload.time_unit is not None, query.window
    return {
        "name": query.name,
        "pattern": query.pattern,
        "returns": list(query.returns),
        "class": next(number for number, each in enumerate(workload.plan.classes) if place in each.queries),
        "variables": [asdict(variable) for variable in query.variables],
        "partition": {"grouping": list(query.grouping), "equivalence": list(query.equivalence)},
        "groups": list(query.groups),
        "window": {
            "within": {"text": window.within, "ticks": window.within_ticks if known else None},
            "slide": {"text": window.slide, "ticks": window.slide_ticks if known else None},
            "offset": window.offset,
            "timezone": window.timezone,
            "open_at_once": window.open_at_once,
        },
        "templates": [{"part": each.part, **_template(each)} for each in query.templates],
        "rung": {"name": query.rung, "because": [asdict(cause) for cause in query.memory.because]},
        "memory": _memory(query.memory),
        "operator": {"exact": asdict(query.exact), "float": asdict(query.scaled)},
        "maps": asdict(query.maps),
        "matching": None if query.matching is None else asdict(query.matching),
    }


def _template(shown: Steps) -> dict[str, Any]:
    template = shown.template
    ends = {final.state: final.guards for final in template.finals}

    def texts(guards: frozenset[int]) -> list[str]:
        return [template.guards[guard].text for guard in sorted(guards)]

    states = [
        {
            "id": state,
            "variable": None if state == START else template.variable(state),
            "type": None if state == START else template.types[template.labels[state]],
            "start": state == START,
            "final": state in ends,
            "end_guards": texts(ends.get(state, frozenset())),
            "kleene": state in template.kleene_states,
        }
        for state in range(template.size)
    ]
    transitions = [
        {
            "source": each.source,
            "target": each.target,
            "variable": template.variable(each.target),
            "guards": texts(each.guards),
            "predicate": step.predicate,
            "reads": step.reads,
        }
        for each, step in zip(template.transitions, shown.steps, strict=True)
    ]
    guards = [
        {"pattern": guard.text, "template": _template(steps)}
        for guard, steps in zip(template.guards, shown.guards, strict=True)
    ]
    return {"states": states, "transitions": transitions, "guards": guards}


def _memory(memory: Memory) -> dict[str, Any]:
    return {
        "class": memory.name,
        "because": [asdict(cause) for cause in memory.because],
        "kept_types": list(memory.kept_types),
        "exact": None if memory.exact is None else asdict(memory.exact),
        "float": None if memory.scaled is None else asdict(memory.scaled),
        "grows": list(memory.grows),
        "lane": memory.lane,
    }
