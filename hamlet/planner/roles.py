"""Local predicates that accept the same events though they are written differently: one role, classified once.

The optimizer proves it (`optimizer.predicates`). Predicates with arithmetic are left as they are written, for one of
two that accept the same events may pass 64 bits, which is an error that names the expression.

Source: HAMLET (SIGMOD'21) Def. 3.2.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from hamlet.language.meaning import Analysis
from optimizer.condition import Condition, fields, has_arithmetic, leaves
from optimizer.plan import QueryFacts
from optimizer.predicates import MAX_LEAVES, classes

MOST_COMPARED = 256  # predicates on events of one type


def role_keys(
    analysis: Analysis, facts: Sequence[QueryFacts], *, settled: bool = True
) -> dict[tuple[int, str], Hashable]:
    """Equal keys for predicates on events of one type that are known to accept the same ones.

    Parameters
    ----------
    analysis : Analysis
    facts : sequence of QueryFacts
        Of its queries, in their order.
    settled : bool
        Whether the types of attributes are known for good. Where they are not, only predicates on declared ones are
        compared: ``v > 3`` and ``v >= 4`` accept the same integers, until a 3.5 comes.

    Returns
    -------
    dict of (place of the query, variable) to hashable
        Those that were compared.
    """
    by_type: dict[str, dict[Condition, list[tuple[int, str]]]] = {}
    for place, (query, known) in enumerate(zip(analysis.queries, facts, strict=True)):
        for variable, condition in known.local.items():
            declared = analysis.declared.get(query.types[variable], {})
            sure = settled or all(field.name in declared for field in fields(condition))
            if sure and not has_arithmetic(condition) and sum(1 for _ in leaves(condition)) <= MAX_LEAVES:
                by_type.setdefault(query.types[variable], {}).setdefault(condition, []).append((place, variable))
    found: dict[tuple[int, str], Hashable] = {}
    for conditions in by_type.values():
        if 1 < len(conditions) <= MOST_COMPARED:
            numbers = classes(list(conditions)).numbers
            for number, places in zip(numbers, conditions.values(), strict=True):
                found |= dict.fromkeys(places, number)
    return found
