"""What a run knows of its events without looking at them again: the variables that some event may be bound to.

For runs that are spread over tasks: each says what it has met, and `Watch.told` takes it.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from hamlet.input.columns import column
from hamlet.planner.compiled import CompiledClass, CompiledWorkload


def met_by(compiled: CompiledWorkload) -> frozenset[tuple[str, str]]:
    """Queries and variables of them that some event may be bound to, by the signatures of the events classified."""
    seen = compiled.classifier.signatures
    return frozenset(
        (query.name, variable)
        for query in compiled.queries
        for variable, role in query.roles.items()
        if any(each.fits(role) for each in seen)
    )


def lacks_key(batch: pa.RecordBatch, compiled: CompiledClass, type_column: str) -> bool:
    """Whether some event has no value of an attribute that its type carries, and by which a class is partitioned."""
    for place, name in enumerate(compiled.attributes):
        values = column(batch, name)
        if values is not None and not values.null_count:
            continue
        types = column(batch, type_column)
        kinds = [kind for kind, carried in compiled.carried.items() if place in carried]
        if types is None or pa.types.is_null(types.type):
            continue
        here = types if values is None else types.filter(values.is_null())
        plain = here.cast(here.type.value_type) if pa.types.is_dictionary(here.type) else here
        if pc.any(pc.is_in(plain.cast(pa.string()), pa.array(kinds, pa.string()))).as_py():
            return True
    return False
