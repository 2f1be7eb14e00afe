from hamlet.policies.relations.relation import Ints

KINDS: dict[str, int]

def swept(
    kind: int,
    ids: Ints,
    first: Ints,
    last: Ints,
    order: Ints,
    values: Ints,
    slots: Ints,
    high: Ints,
    least: int,
    largest: int,
) -> tuple[Ints, Ints, Ints, Ints]: ...
