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
    others = {
        kind: watch.lacking(name, kind)
        for other, kind in query.types.items()
        if other not in query.negated and kind != query.types[variable] and kind not in query.upstream
    }
    lacking = [
        f"{count:,} {name_text(kind)} {'event has' if count == 1 else 'events have'} none"
        for kind, count in others.items()
        if count
    ]
    demanded = [kind for kind, count in others.items() if not count and watch.carries(name, kind)]
    if lacking or demanded:
        written = f"{name_text(variable)}.{name_text(name, free=True)}"
        yield (
            f"{query.query.name}: GROUP-BY {written} demands {name_text(name, free=True)} of all events of a trend, "
            + (
                f"and {' and '.join(lacking)}; "
                if lacking
                else f"of {one_of([name_text(kind) for kind in demanded], 'and')}, too; "
            )
            + f"GROUP-BY FIRST({written}) asks it of {name_text(variable)} alone"
        )
