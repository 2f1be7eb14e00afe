"""How statements will run: automata, who evaluates which condition, and what a continuous run keeps."""

from __future__ import annotations

from typing import Any

from hamlet.errors import WorkloadError
from hamlet.frontend.reports import Reports
from hamlet.patterns.automaton.compile import ACCEPT, AT_END, AT_START, COUNTED, ENDLESS, SPLIT, TAKE, Program
from hamlet.patterns.clause.tree import (
    Alternation,
    Anchor,
    Clause,
    Concatenation,
    Exclusion,
    Permutation,
    Quantified,
    RowPattern,
    Variable,
    nodes,
)
from hamlet.patterns.match.evaluate import Meaning, reach_of
from hamlet.patterns.match.run import host_of, meanings, parsed, run_script
from hamlet.patterns.options import MAX_STEPS

_MOST_STEPS_SHOWN = 60


def check(text: str, tables: Any = None, *, dialect: str = "duckdb", source: str = "<sql>") -> list[Meaning]:
    """All mistakes of a text at once; with tables those of columns and types, too.

    Returns
    -------
    list of Meaning
        Of all clauses.

    Raises
    ------
    WorkloadError
    """
    script = parsed(text, dialect, source)
    reports = script.reports()
    found = meanings(script, reports)
    if reports.errors:
        raise WorkloadError(reports.errors)
    if tables:
        run_script(script, host_of(script, tables, empty=True), MAX_STEPS)
    return found


def explain(text: str, *, dialect: str = "duckdb", source: str = "<sql>") -> str:
    """How the clauses of a text will run, for people."""
    script = parsed(text, dialect, source)
    reports = script.reports()
    lines: list[str] = []
    found = meanings(script, reports)
    if reports.errors:
        raise WorkloadError(reports.errors)
    for place, meaning in enumerate(found):
        if place:
            lines.append("")
        lines += explained(meaning, reports, place + 1)
    if not found:
        lines.append("no MATCH_RECOGNIZE: DuckDB runs the text as it is")
    for each in shared(found):
        lines.append(each)
    return "\n".join(lines)


def explained(meaning: Meaning, reports: Reports, number: int) -> list[str]:
    """One clause."""
    clause = meaning.clause
    table = " ".join(reports.text[clause.source.start : clause.source.end].split())
    lines = [f"clause {number}, {reports.place(clause.span)}: over {table}"]
    facts = dict(facts_of(meaning, reports))
    lines.append(f"  partitions  {facts.pop('partitions')}")
    lines.append(f"  pattern     {facts.pop('pattern')}")
    lines += [f"    {line}" for line in automaton_lines(meaning.program, clause)]
    lines += [f"  {name}: {how}{f': {text}' if text else ''}" for name, text, how in conditions_of(meaning)]
    return [*lines, *(f"  {name:<11} {said}" for name, said in facts.items() if name != "table")]


def facts_of(meaning: Meaning, reports: Reports) -> list[tuple[str, str]]:
    """What is to be said of a clause beside its automaton, each with its name."""
    clause = meaning.clause
    keys = ", ".join(each.text for each in clause.partition) or "one partition"
    order = ", ".join(
        f"{each.expression.text}{' DESC' if each.descending else ''} NULLS {'FIRST' if each.nulls_first else 'LAST'}"
        for each in clause.order
    )
    matching = f"linear: {meaning.program.positions:,} positions x rows; starts without a match are skipped"
    if meaning.reads_labels:
        matching = "depth first in the order of preference; states that lead nowhere are remembered"
    return [
        ("table", " ".join(reports.text[clause.source.start : clause.source.end].split())),
        ("partitions", f"{keys}, in the order of {order or 'the input'}"),
        ("pattern", shown(clause.pattern, clause)),
        ("matching", matching),
        ("kept", memory_bound(meaning)),
    ]


def conditions_of(meaning: Meaning) -> list[tuple[str, str, str]]:
    """Each variable, its condition, and who evaluates that."""
    found = []
    for name, written in meaning.clause.variables.items():
        condition = meaning.conditions.get(name)
        if condition is None:
            found.append((written, "", "takes every row"))
        else:
            how = "reads labels, judged during the search" if condition.reads_match else "a column of the host"
            found.append((written, condition.read.expression.text, how))
    return found


def automaton_lines(program: Program, clause: Clause) -> list[str]:
    """The steps of a program, the first one first."""
    names = list(clause.variables.values())
    order, seen, waiting = [], set(), [program.start]
    while waiting:
        each = waiting.pop()
        if each in seen:
            continue
        seen.add(each)
        order.append(each)
        following = {SPLIT: [program.second[each], program.first[each]], ACCEPT: []}
        waiting += following.get(program.kinds[each], [program.first[each]])
    number = {each: place for place, each in enumerate(order)}
    lines = []
    for each in order[:_MOST_STEPS_SHOWN]:
        kind, first = program.kinds[each], number[program.first[each]] if program.kinds[each] != ACCEPT else 0
        text = {
            TAKE: f"take {names[program.variables[each]] if names else ''}"
            f"{' (excluded)' if program.excluded[each] else ''}, then {first}",
            SPLIT: f"prefer {first}, else {number.get(program.second[each], 0)}",
            AT_START: f"at the partition's start, then {first}",
            AT_END: f"at the partition's end, then {first}",
            ACCEPT: "match",
            COUNTED: f"take {_counted(program, each)} {names[program.variables[each]] if names else ''}"
            f"{' (excluded)' if program.excluded[each] else ''}, "
            f"{'more' if program.second[each] else 'fewer'} preferred, "
            f"then {first}",
        }[kind]
        lines.append(f"{number[each]}: {text}")
    if len(order) > _MOST_STEPS_SHOWN:
        lines.append(f"... and {len(order) - _MOST_STEPS_SHOWN:,} more steps")
    return lines


def _counted(program: Program, step: int) -> str:
    low, high = program.bounds[step]
    return f"{low:,} or more" if high == ENDLESS else f"{low:,} to {high:,}"


def shown(node: RowPattern, clause: Clause) -> str:
    """A pattern as text."""
    if isinstance(node, Variable):
        return clause.variables[node.name]
    if isinstance(node, Anchor):
        return "^" if node.at_start else "$"
    if isinstance(node, Concatenation):
        return " ".join(shown(each, clause) for each in node.parts) or "()"
    if isinstance(node, Alternation):
        return f"({' | '.join(shown(each, clause) for each in node.choices)})"
    if isinstance(node, Permutation):
        return f"PERMUTE({', '.join(shown(each, clause) for each in node.parts)})"
    if isinstance(node, Exclusion):
        return f"{{- {shown(node.body, clause)} -}}"
    body = shown(node.body, clause)
    if not isinstance(node.body, (Variable, Alternation, Permutation)):
        body = f"({body})"
    known = {(0, None): "*", (1, None): "+", (0, 1): "?"}
    high = "" if node.high is None else node.high
    count = known.get((node.low, node.high)) or (
        f"{{{node.low}}}" if node.low == node.high else f"{{{node.low},{high}}}"
    )
    return f"{body}{count}{'' if node.greedy else '?'}"


def longest(node: RowPattern) -> int | None:
    """The most rows that a pattern takes, None without a bound."""
    if isinstance(node, Variable):
        return 1
    if isinstance(node, Anchor):
        return 0
    if isinstance(node, (Concatenation, Permutation)):
        parts = [longest(each) for each in node.parts]
        return None if None in parts else sum(each for each in parts if each is not None)
    if isinstance(node, Alternation):
        parts = [longest(each) for each in node.choices]
        return None if None in parts else max((each for each in parts if each is not None), default=0)
    inner = longest(node.body)
    if isinstance(node, Exclusion):
        return inner
    if inner == 0:
        return 0
    return None if node.high is None or inner is None else inner * node.high


def memory_bound(meaning: Meaning) -> str:
    """What a continuous run keeps of each partition."""
    clause = meaning.clause
    back, ahead = reach_of(meaning)
    around = back + sum(ahead)
    rows = longest(clause.pattern)
    if clause.within is not None:
        more = f" and {around:,} more" if around else ""
        return f"per partition, at most the rows of WITHIN {clause.within.text}{more}"
    if rows is not None:
        return f"per partition, at most {max(1, rows) + around:,} rows"
    loops = [
        shown(each, clause)
        for each in nodes(clause.pattern)
        if isinstance(each, Quantified) and each.high is None and longest(each.body) != 0
    ]
    return f"unbounded: {', '.join(dict.fromkeys(loops))}; WITHIN, or {{n,m}} instead, would bound it"


def shared(found: list[Meaning]) -> list[str]:
    """What several clauses have in common."""
    if len(found) < 2:
        return []
    sorts: dict[tuple[str, ...], int] = {}
    for meaning in found:
        key = tuple(each.text for each in (*meaning.partition, *meaning.order))
        sorts[key] = sorts.get(key, 0) + 1
    return ["", f"{len(found)} clauses, {len(sorts)} orders of rows: clauses of one table and one order share its sort"]
