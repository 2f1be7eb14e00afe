"""Proofs of random policies, and mutated ones, against the checker: ``python -m tests.compare_proofs``."""

from __future__ import annotations

import argparse
import copy
import itertools
import random
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from hamlet.checker import EvidenceError
from hamlet.checker.policies import Checker
from hamlet.oracle.policies import Oracle
from hamlet.policies import Policy, PolicyError
from hamlet.policies.analysis.rewriting import stripped
from hamlet.policies.logs.source import types_of
from hamlet.policies.plan.evaluation import Evaluation
from hamlet.policies.syntax.formula import free_variables
from hamlet.policies.syntax.parser import parse_formula
from hamlet.why.policies import of_policy as why
from tests.comparison import accepted_mutants, by_seeds
from tests.random_matches import random_matching
from tests.random_policies import SIGNATURE, Point, formula, random_log, random_policy
from tests.why.evidence_by_definition import Proof

DOMAIN = (0, 1, 2, 3, 7)


def text_of(log: list[Point]) -> str:
    """A log in MonPoly's format."""
    lines = []
    for time, tables in log:
        told = [f"{name}({', '.join(map(str, row))})" for (name, _), rows in tables.items() for row in sorted(rows)]
        lines.append(f"@{time} {' '.join(told)};")
    return "\n".join(lines) + "\n"


def mutated(draw: random.Random, evidence: dict[str, Any]) -> dict[str, Any]:
    """Evidence with one thing changed."""
    found = copy.deepcopy(evidence)
    nodes = found["nodes"]
    node = draw.choice(nodes)
    kind = draw.randrange(8)
    if kind == 0:
        node["holds"] = not node["holds"]
    elif kind == 1 and node["because"]:
        node["because"].remove(draw.choice(node["because"]))
    elif kind == 2:
        node["formula"] = draw.choice(nodes)["formula"]
    elif kind == 3 and isinstance(node["time_point"], int):
        node["time_point"] += draw.choice([-1, 1])
    elif kind == 4 and isinstance(node["time_point"], list):
        node["time_point"][draw.randrange(2)] += draw.choice([-1, 1])
    elif kind == 5 and node["valuation"]:
        name = draw.choice(list(node["valuation"]))
        node["valuation"][name] = draw.choice([0, 1, 2, {"not": [0]}, {"in": [1, 2]}, {"not": []}])
    elif kind == 6:
        node["because"] = [each for each in node["because"] if draw.random() < 0.5]
    else:
        found["row"] = {**found["row"], "time_point": draw.randrange(4)}
    return found


def true_claims(evidence: dict[str, Any], log: list[Point]) -> bool:
    """Brute force: whether everything that is claimed is so."""
    for node in evidence["nodes"]:
        claimed = parse_formula(node["formula"], "node")[0]
        names = list(node["valuation"])
        choices = [
            [value for value in DOMAIN if value not in told.get("not", ()) and value in told.get("in", DOMAIN)]
            if isinstance(told := node["valuation"][name], dict)
            else [told]
            for name in names
        ]
        oracle = Oracle(claimed, log)
        point = node["time_point"]
        low, high = point if isinstance(point, list) else (point, point)
        for row in itertools.product(*choices):
            for place in range(low, high + 1):
                if (
                    place < len(oracle._log)
                    and oracle.holds(claimed, dict(zip(names, row, strict=True)), place, {}) is not node["holds"]
                ):
                    return False
    return True


def compare(seed: int, path: Any, *, matching: bool = False) -> Counter[str]:
    """Prove rows of one random policy and some that are not there, check the proofs, and mutate them."""
    draw = random.Random(seed)
    text = random_matching(draw, formula) if matching else random_policy(draw)
    log = random_log(draw)
    counts: Counter[str] = Counter()
    try:
        policy = Policy.parse(text, SIGNATURE)
        Evaluation([policy])
    except PolicyError:
        return Counter(refused=1)
    if not log:
        return counts
    path.write_text(text_of(log))
    body, _ = stripped(policy.formula)
    names = free_variables(body)
    checker = Checker(policy.formula, types_of(policy.signature), log)
    oracle = Oracle(body, log)
    for _ in range(6):
        point = draw.randrange(len(log))
        row = {name: draw.choice(DOMAIN) for name in names}
        given = {"time_point": point, **row}
        evidence = why(policy, str(path), given).data
        holds = oracle.holds(body, row, point, oracle._none)
        assert evidence["nodes"][-1]["holds"] is holds, f"seed {seed}: {text}\nlog {log}\n{given} is {holds}"
        try:
            checker.check(evidence)
        except EvidenceError as error:
            raise AssertionError(f"seed {seed}: {text}\nlog {log}\n{given}: {error}\n{evidence}") from error
        told = [{**node, "formula": parse_formula(node["formula"], "node")[0]} for node in evidence["nodes"]]
        try:
            Proof(body, log, told).check()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {text}\nlog {log}\n{given}: {error}\n{evidence}") from error
        counts["proofs"] += 1
        counts["nodes"] += len(evidence["nodes"])
        mutants = (mutated(draw, evidence) for _ in range(4))
        for other in accepted_mutants(mutants, evidence, checker.check, counts):
            if "LET" not in text:
                assert true_claims(other, log), f"seed {seed}: {text}\nlog {log}\naccepted {other}"
    return counts


def main() -> None:
    """Compare a range of seeds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--matching", action="store_true")
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "events.log"
        by_seeds(lambda seed, given: compare(seed, log, matching=given.matching), "0:300", parser)


if __name__ == "__main__":
    main()
