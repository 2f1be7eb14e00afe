"""What counts beyond all measure usually mean: trends that mix the events of all users."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from hamlet.language.printing import name_text
from hamlet.language.query import Aggregate
from hamlet.language.schema import Schema
from hamlet.output.digits import short_text
from hamlet.output.fitting import largest_of
from hamlet.output.query_rows import QueryRows
from hamlet.planner.workload import Workload

LARGE = 1 << 64
_KEY = re.compile(
    r"(.*[a-z]Id|.*[a-z]ID|(?i:(.*_)?(id|uuid|guid))|"
    r"(?i:(user|session|visitor|customer|client|account|device|driver|rider|passenger|machine|sensor|host|patient)s?))"
)


def doubts_of_counts(workload: Workload, schema: Schema, rows: Sequence[QueryRows]) -> Iterator[str]:
    """A sentence for each query that counts more than 2^64 trends, over events that somebody could have told apart.

    Parameters
    ----------
    workload : Workload
    schema : Schema
        Of the input.
    rows : sequence of QueryRows
        The results.
    """
    special = {schema.clock.column, schema.type_column, schema.order_column}
    keys = [name for name in schema.columns if name not in special and _KEY.fullmatch(name)]
    if not keys:
        return
    for query, found in zip(workload.analysis.queries, rows, strict=True):
        if query.equivalence or set(query.grouping) & set(keys):
            continue
        counts = [
            place
            for place, item in enumerate(query.query.items)
            if isinstance(item.value, Aggregate)
            and item.value.function == "COUNT"
            and found.columns[place].kind == "count"
        ]
        largest = [largest_of(piece.values[place]) for place in counts for piece in found.pieces]
        most = max((each for each in largest if each is not None), default=0)
        if most >= LARGE:
            shown = ", ".join(name_text(name, free=True) for name in keys[:3])
            yield (
                f"{found.name}: counts up to {short_text(most)}, because trends combine the events of all {keys[0]} "
                f"values; the input has {shown}: WHERE [{name_text(keys[0], free=True)}] counts within each"
            )
