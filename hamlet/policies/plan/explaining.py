"""How a policy will be evaluated: the tree of its formula, and for each node what it keeps between batches.

The classes of memory, from the least: none; independent of the event rate; linear in the events of its interval; linear
in the distinct valuations; unbounded.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hamlet.errors import OptionError, one_of
from hamlet.policies.analysis.rewriting import Defined, Rewriter, goal
from hamlet.policies.changes.running import ROW_BYTES
from hamlet.policies.syntax import formula as mfotl
from hamlet.policies.syntax.printing import print_formula, print_interval

CLASSES = (
    "none",
    "independent of the event rate",
    "linear in the events of its interval",
    "linear in the distinct valuations",
    "unbounded",
)
NONE, INDEPENDENT, INTERVAL, VALUATIONS, UNBOUNDED = CLASSES
_FUTURE = ("EVENTUALLY", "ALWAYS", "NEXT")


@dataclass(frozen=True)
class Shown:
    """A node of the tree.

    Attributes
    ----------
    operator : str
        What it does: ``ONCE``, ``AND``, or the text of an atom.
    free : tuple of str
        Its free variables.
    interval : str or None
        As it is written.
    keeps : str
        What it holds between batches, in words.
    memory : str
        One of `CLASSES`.
    below : tuple of Shown
    """

    operator: str
    free: tuple[str, ...]
    interval: str | None
    keeps: str
    memory: str
    below: tuple[Shown, ...]

    @property
    def head(self) -> str:
        """The operator with its interval."""
        return self.operator if self.interval is None else f"{self.operator} {self.interval}"

    def as_dict(self) -> dict[str, Any]:
        """The node, and all below it, as JSON has them."""
        found: dict[str, Any] = {"operator": self.operator, "free_variables": list(self.free)}
        if self.interval is not None:
            found["interval"] = self.interval
        return found | {"keeps": self.keeps, "memory": self.memory, "below": [each.as_dict() for each in self.below]}

    def walk(self, depth: int = 0) -> Iterator[tuple[int, Shown]]:
        """The nodes with their depths, each before those below it."""
        yield depth, self
        for each in self.below:
            yield from each.walk(depth + 1)


def tree(formula: mfotl.Formula) -> Shown:
    """The tree of a formula."""
    operator, interval = _operator(formula)
    keeps, memory = _keeps(formula)
    inner = mfotl.children(formula)
    if isinstance(formula, Defined) and formula.meaning is not None:
        inner = (formula.meaning.formula,)  # of a LET
    below = tuple(map(tree, inner))
    return Shown(_plain(operator), tuple(map(_plain, mfotl.free_variables(formula))), interval, keeps, memory, below)


def _plain(text: str) -> str:
    """Without the marks that tell bound variables of one name apart."""
    parts = text.split("\0")
    return parts[0] + "".join(part.lstrip("0123456789") for part in parts[1:])


def _operator(formula: mfotl.Formula) -> tuple[str, str | None]:
    match formula:
        case mfotl.Predicate() | mfotl.Comparison() | mfotl.Substring() | mfotl.Matches() | mfotl.Truth():
            return print_formula(formula), None
        case mfotl.Exists(variables, _):
            return f"EXISTS {', '.join(variables)}", None
        case mfotl.Forall(variables, _):
            return f"FORALL {', '.join(variables)}", None
        case mfotl.Temporal(operator, interval, _):
            return operator, _interval(interval)
        case mfotl.Since() | mfotl.Until() | mfotl.Trigger() | mfotl.Release():
            return type(formula).__name__.upper(), _interval(formula.interval)
        case mfotl.TemporalMatch(operator, interval, _):
            return operator, _interval(interval)
        case mfotl.Aggregation(result, operator, variable, groups, _):
            by = f"; {', '.join(groups)}" if groups else ""
            return f"{result} <- {operator} {variable}{by}", None
        case mfotl.Let(name, parameters, _, _):
            return f"{'LETPAST' if isinstance(formula, mfotl.LetPast) else 'LET'} {name}({', '.join(parameters)})", None
    return type(formula).__name__.upper(), None


def _interval(interval: mfotl.Interval) -> str:
    return print_interval(interval) or "[0,*)"


def _keeps(formula: mfotl.Formula) -> tuple[str, str]:
    """What a node keeps, in words, and the class of its memory."""
    match formula:
        case mfotl.Temporal("PREV", _, _):
            return "the body's valuations at the last time-point", _one_point(formula)
        case mfotl.Temporal("NEXT", _, _):
            return "the last time-point, until the next one comes", INDEPENDENT
        case mfotl.Temporal(operator, interval, body):
            return _bounded(operator, interval, bool(mfotl.free_variables(body)))
        case mfotl.TemporalMatch("MATCHP", _, _):
            what = "for each valuation the states of the expression that it is in, and when they began"
            return what, VALUATIONS if mfotl.free_variables(formula) else INDEPENDENT
        case mfotl.TemporalMatch(_, interval, _) | mfotl.Release(interval, _, _):
            return _bounded("UNTIL", interval, bool(mfotl.free_variables(formula)))
        case mfotl.Since(interval, _, _) | mfotl.Trigger(interval, _, _):
            return _bounded("SINCE", interval, bool(mfotl.free_variables(formula)))
        case mfotl.Until(interval, _, _):
            return _bounded("UNTIL", interval, bool(mfotl.free_variables(formula)))
        case mfotl.And() | mfotl.Or() | mfotl.Equiv():
            return "what one side has said and the other has not", NONE
    return "nothing", NONE


def _one_point(formula: mfotl.Formula) -> str:
    return INTERVAL if mfotl.free_variables(formula) else INDEPENDENT


def _bounded(operator: str, interval: mfotl.Interval, binds: bool) -> tuple[str, str]:
    future = operator in (*_FUTURE, "UNTIL")
    shown = _interval(interval)
    if interval.high is None:
        if future:
            return "every time-point, for it never ends", UNBOUNDED
        what = "the first and the last time-point of each valuation that may still hold"
        return what, VALUATIONS if binds else INDEPENDENT
    if not binds:
        return f"the periods of the last {shown}" if not future else f"the periods of {shown} to come", INDEPENDENT
    if future:
        return f"the time-points of {shown}, and the periods of valuations in it", INTERVAL
    return f"the periods of valuations in the last {shown}", INTERVAL


def evaluated(formula: mfotl.Formula, negate: bool = False) -> tuple[mfotl.Formula, tuple[str, ...], bool]:
    """The formula that is evaluated for a policy, the columns of a row's valuation, and whether rows are violations."""
    found, names, violations = goal(formula, negate)
    return Rewriter().rewrite(found), names, violations


def worst(shown: Shown) -> str:
    """The largest class of memory of a tree."""
    return max((each.memory for _, each in shown.walk()), key=CLASSES.index)


def explain(
    name: str, source: str, formula: mfotl.Formula, rows: Sequence[str], *, violations: bool, shown_as: str = "text"
) -> str:
    """Show how a policy will be evaluated.

    Parameters
    ----------
    name, source : str
        The policy and its file.
    formula : Formula
        As it is evaluated.
    rows : sequence of str
        The columns of a row's valuation.
    violations : bool
        Whether rows are violations.
    shown_as : {'text', 'json', 'dot'}

    Raises
    ------
    OptionError
        Another rendering.
    """
    shown = tree(formula)
    facts = {
        "policy": name,
        "file": source,
        "rows": "violations" if violations else "satisfying valuations",
        "columns": ["time", "time_point", *rows],
        "memory": worst(shown),
    }
    if shown_as == "json":
        return json.dumps({**facts, "formula": shown.as_dict()}, ensure_ascii=False, indent=2)
    if shown_as == "dot":
        return _dot(name, shown)
    if shown_as != "text":
        raise OptionError(f"the format is {shown_as!r}; it must be {one_of(('text', 'json', 'dot'))}")
    return _text(facts, shown)


def _text(facts: Mapping[str, Any], shown: Shown) -> str:
    by_row = f"    row by row  {ROW_BYTES} bytes for each valuation that a node keeps"
    lines = [
        f"policy {facts['policy']} ({facts['file']})",
        f"    rows        {facts['rows']}: {', '.join(facts['columns'])}",
        f"    memory      {facts['memory']}",
        *([] if facts["memory"] == NONE else [by_row]),
        "    evaluated",
    ]
    heads = [
        f"{'  ' * depth}{each.operator}{f' {each.interval}' if each.interval else ''}" for depth, each in shown.walk()
    ]
    width = min(60, max(map(len, heads)))
    for head, (_, each) in zip(heads, shown.walk(), strict=True):
        free = f"({', '.join(each.free)})"
        kept = "" if each.memory == NONE else f"  keeps {each.keeps}; {each.memory}"
        lines.append(f"        {head:<{width}}  {free}{kept}".rstrip())
    return "\n".join(lines)


def _dot(name: str, shown: Shown) -> str:
    lines = [f"digraph {_quoted(name)} {{", "  node [shape=box, fontname=monospace];"]
    numbers: list[Shown] = []

    def add(node: Shown) -> int:
        number = len(numbers)
        numbers.append(node)
        kept = "" if node.memory == NONE else f"\n{node.memory}"
        lines.append(f"  n{number} [label={_quoted(f'{node.head}{kept}')}];")
        for each in node.below:
            lines.append(f"  n{number} -> n{add(each)};")
        return number

    add(shown)
    return "\n".join([*lines, "}"])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
