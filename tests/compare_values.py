"""Evidence of random specifications, and mutants of it, against the checker: ``python -m tests.compare_values``."""

from __future__ import annotations

import copy
import random
from collections import Counter
from typing import Any

from hamlet.checker import EvidenceError
from hamlet.checker.values import _LATE, Checker, Node, alike
from hamlet.errors import HamletError, OptionError
from hamlet.oracle.streams import StreamMistakeError, evaluate
from hamlet.streams import Specification
from hamlet.streams.clock import integer_clock
from hamlet.why.values.history import History
from hamlet.why.values.why import evidence_of
from tests.comparison import accepted_mutants, by_seeds
from tests.stream_specifications import case

CLOCK = integer_clock("ns")


def mutated(draw: random.Random, evidence: dict[str, Any]) -> dict[str, Any]:
    """Evidence with one thing changed."""
    found = copy.deepcopy(evidence)
    node = draw.choice(found["nodes"])
    kind = draw.randrange(5)
    if kind == 0 and node["because"]:
        node["because"].remove(draw.choice(node["because"]))
    elif kind == 1 and isinstance(node["value"], int | float):
        node["value"] = not node["value"] if isinstance(node["value"], bool) else node["value"] + 1
    elif kind == 2 and isinstance(node["at"], int):
        node["at"] += draw.choice([-1, 1])
    elif kind == 3 and node["value"] is None:
        node["value"] = 1
    else:
        found["nodes"].remove(node)
    return found


def true_claims(history: History, checker: Checker, evidence: dict[str, Any]) -> bool:
    """Brute force: whether the run had every value that is claimed; of instances evidence does not show their spawn."""
    places = [_LATE if place is None else place for place in history.places]
    moments = list(zip(history.times, places, strict=True))
    nodes: list[Node] = []
    for place, told in enumerate(evidence["nodes"]):
        node = checker._read(place, told, nodes)
        nodes.append(node)
        if history.program.streams[node.target[0]].spawn is not None or place in evidence.get("unchecked", ()):
            continue
        for step, moment in enumerate(moments):
            if node.first <= moment <= node.last and not alike(history.value(node.target, step), node.value):
                return False
    return True


def compare(seed: int) -> Counter[str]:
    """Give evidence for some rows of one random specification, check it, and mutate it."""
    counts: Counter[str] = Counter()
    text, events = case(seed)[:2]
    try:
        spec = Specification.parse(text)
        groups = evaluate(spec.program, events, values=True, until=events[-1][0] if events else None)
    except (HamletError, StreamMistakeError):
        return Counter(refused=1)
    if not events:
        return counts
    draw = random.Random(seed)
    history = History(spec.program, events, events[0][0], events[-1][0])
    rows = [row for group in groups for row in group.rows]
    checker = Checker(spec.program, events, CLOCK, events[0][0])
    for row in draw.sample(rows, min(len(rows), 5)):
        try:
            evidence = evidence_of(history, CLOCK, row, 1000).data
        except OptionError:
            counts["ambiguous"] += 1
            continue
        where = f"seed {seed}: {text}\n{events}\n{row}\n{evidence}"
        assert evidence["holds"], where
        try:
            checker.check(evidence)
        except EvidenceError as error:
            raise AssertionError(f"{error}\n{where}") from error
        counts["rows"] += 1
        mutants = (mutated(draw, evidence) for _ in range(3))
        for other in accepted_mutants(mutants, evidence, checker.check, counts):
            assert true_claims(history, checker, other), f"accepted {other}\n{where}"
    return counts


def main() -> None:
    """Compare a range of seeds."""
    by_seeds(lambda seed, _: compare(seed), "0:200", refuses=True)


if __name__ == "__main__":
    main()
