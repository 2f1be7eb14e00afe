"""GROUP-BY of an attribute that only some events of a trend have: what was probably meant is `FIRST`."""

from __future__ import annotations

from collections.abc import Iterator

from hamlet.errors import one_of
from hamlet.findings.watch import Watch
from hamlet.language.meaning import AnalysedQuery
from hamlet.language.printing import name_text
from hamlet.language.query import Attribute
from hamlet.planner.workload import Workload


def doubts_of_groups(workload: Workload, watch: Watch) -> Iterator[str]:
    """A sentence for each ``GROUP-BY v.a`` that demands the attribute of the events of other variables as well."""
    for query in workload.analysis.queries:
        for each in query.query.group_by:
            if isinstance(each, Attribute) and each.variable is not None and each.name not in query.equivalence:
                yield from _demanded(query, each.variable, each.name, watch)


def _demanded(query: AnalysedQuery, variable: str, name: str, watch: Watch) -> Iterator[str]:
    own = query.types[variable]
    others = {
        other: kind
        for other, kind in query.types.items()
        if other not in (variable, *query.negated) and kind not in query.upstream
    }
    kinds = [kind for kind in dict.fromkeys(others.values()) if kind != own]
    counts = {kind: watch.lacking(name, kind) for kind in kinds}
    lacking = [
        f"{count:,} {name_text(kind)} {'event has' if count == 1 else 'events have'} none"
        for kind, count in counts.items()
        if count
    ]
    demanded = [kind for kind, count in counts.items() if not count and watch.carries(name, kind)]
    demanded += [other for other, kind in others.items() if kind == own and watch.carries(name, own)]
    if lacking or demanded:
        written = f"{name_text(variable)}.{name_text(name, free=True)}"
        yield (
            f"{query.query.name}: GROUP-BY {written} demands {name_text(name, free=True)} of all events of a trend, "
            + (
                f"and {' and '.join(lacking)}; "
                if lacking
                else f"of {one_of([name_text(each) for each in demanded], 'and')}, too; "
            )
            + f"GROUP-BY FIRST({written}) asks it of {name_text(variable)} alone"
        )
