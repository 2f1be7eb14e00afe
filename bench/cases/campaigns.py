"""The policies of the data-collection campaign over a simulated stream with its schema (`datasets.campaign`).

Source: Schneider et al. (STTT 2021), §6.2, whose campaign had 9.5 M events.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import pyarrow as pa

from bench import machine
from bench.answers import WrongAnswer
from bench.subject import Answer, Case, Contender
from datasets import campaign
from hamlet.oracle.policies import Oracle
from hamlet.policies import Policy, run
from hamlet.policies.analysis.rewriting import goal

WORKLOADS = machine.ROOT / "workloads"


class Campaign:
    """A policy of the campaign.

    Parameters
    ----------
    name : {'insert', 'delete', 'custom'}
    events : int
    """

    def __init__(self, name: str, events: int) -> None:
        self.policy = Policy.from_file(WORKLOADS / f"{name}.mfotl", WORKLOADS / "campaign.sig")
        self.table = campaign.generate(events)

    def answer(self) -> Answer:
        """Compare a small campaign with the definition."""
        table = campaign.generate(16, seed=3, users=2, wrong=0.4)  # brute force over all values
        expected = by_oracle(self.policy, table)
        if listed(run(self.policy, table).rows()) != expected:
            raise WrongAnswer(f"rows of {self.policy.name} differ from the oracle's")
        found = run(self.policy, self.table)
        facts = {"events": self.table.num_rows, "time-points": found.stats["time_points"], "rows": len(found)}
        return Answer([f"{len(expected)} rows of a small campaign as the oracle has them"], facts)

    def contenders(self) -> Mapping[str, Contender]:
        """The whole run."""
        return {"hamlet": Contender(lambda: run(self.policy, self.table), None, question="rows are counted")}


def by_oracle(policy: Policy, table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows by brute force."""
    log: list[tuple[int, dict[tuple[str, int], set[tuple[Any, ...]]]]] = []
    for row in table.to_pylist():
        if not log or log[-1][0] != row["time"]:
            log.append((row["time"], {}))
        (schema,) = policy.signature.named(row["type"])
        fields = tuple(row[name] for name in schema.attributes if name is not None)
        log[-1][1].setdefault((schema.name, schema.arity), set()).add(fields)
    asked, names, _ = goal(policy.formula)
    return sorted((time, point, *values) for time, point, values in Oracle(asked, log).rows(names))


def listed(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Rows as tuples, in order."""
    return sorted(tuple(value for name, value in row.items() if name != "policy") for row in rows)


def _points(events: int) -> dict[str, Any]:
    return {name: partial(Campaign, name, events) for name in ("insert", "delete", "custom")}


CASES = {
    "campaign": Case(
        "the campaign's three policies over 9.5 M events", _points(9_500_000), _points(50_000), seconds=(500, 60)
    )
}
