"""SUM, AVG and COUNT(v) that take an event once for every trend, and COUNT(*) of a funnel, which counts combinations:
where each event once was probably meant."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hamlet.findings.beside import Beside, Words, row_text, value_text, with_groups
from hamlet.findings.large import Tally
from hamlet.findings.watch import named
from hamlet.language.meaning import AnalysedQuery
from hamlet.language.printing import to_text
from hamlet.language.query import (
    Aggregate,
    Alternation,
    Atom,
    Conjunction,
    Negation,
    Pattern,
    Repetition,
    ReturnItem,
    Semantics,
)
from hamlet.language.query import Sequence as Steps
from hamlet.language.result_checks import aggregates_of
from hamlet.output.fitting import largest_of
from hamlet.output.query_rows import QueryRows
from hamlet.planner.workload import Workload

_CLOSE = 1e-9  # doubles that are added up in another order
_TRENDS = Aggregate("COUNT")
_MOST_FUNNELS = 5  # with other first or last events, that are looked at


def doubts_of_sums(
    workload: Workload, beside: Beside, tallies: Sequence[Tally], found: Sequence[QueryRows] | None
) -> Iterator[str]:
    """A sentence for each SUM, AVG and COUNT(v) that differs from the one over EVENTS, with both numbers of a row.

    Parameters
    ----------
    workload : Workload
    beside : Beside
        Runs queries in other words.
    tallies : sequence of Tally
        Of the rows of each query.
    found : sequence of QueryRows, optional
        The rows themselves, where they are at hand.
    """
    asked = {}
    for query, tally in zip(workload.analysis.queries, tallies, strict=True):
        doubtful = _doubtful(query)
        if doubtful and tally.rows and not (found and _one_trend_each(query, found[query.index])):
            items = (ReturnItem(replace(each, events=True), alias=f"e{i}") for i, each in enumerate(doubtful))
            own = tuple(ReturnItem(each, alias=f"s{i}") for i, each in enumerate(doubtful))
            asked[query.index] = Words(replace(query.query, items=(*with_groups(query.query), *items)), own)
    said: dict[tuple[str, ...], tuple[list[str], str]] = {}
    settled: set[int] = set()
    for query, again in beside.rows(asked, found, settled):
        for texts, sentence in _different(query, again):
            settled.add(query.index)
            said.setdefault(texts, ([], sentence))[0].append(query.query.name)
    return (f"{named(queries)}: {sentence}" for queries, sentence in said.values())


def doubts_of_combinations(
    workload: Workload, beside: Beside, tallies: Sequence[Tally], found: Sequence[QueryRows] | None
) -> Iterator[str]:
    """A sentence for each COUNT(*) of a funnel that is more than its first events, and more than its last ones.

    Parameters
    ----------
    workload : Workload
    beside : Beside
        Runs queries in other words.
    tallies : sequence of Tally
        Of the rows of each query.
    found : sequence of QueryRows, optional
        The rows themselves, where they are at hand.
    """
    asked: dict[int, Words] = {}
    known: set[tuple[Aggregate, ...]] = set()
    for query, tally in zip(workload.analysis.queries, tallies, strict=True):
        ends = _ends_of_funnel(query)
        if not ends or ends in known or not tally.rows or (found and _one_trend_each(query, found[query.index])):
            continue
        known.add(ends)
        items = [ReturnItem(each, alias=f"n{place}") for place, each in enumerate(ends, 1)]
        words = replace(query.query, items=(*with_groups(query.query), *items))
        asked[query.index] = Words(words, (ReturnItem(_TRENDS, alias="n0"),))
        if len(asked) == _MOST_FUNNELS:
            break
    settled: set[int] = set()
    for query, again in beside.rows(asked, found, settled):
        row = next((row for row in again if row["n0"] > max(row["n1"], row["n2"])), None)
        if row is not None and query.index not in settled:
            settled.add(query.index)
            first, last = map(to_text, _ends_of_funnel(query))
            yield (
                f"{query.query.name}: COUNT(*) is {value_text(row['n0'])} in {row_text(query.query, row)}, since every "
                f"combination of events in that order is a trend; {first}, each event once, is "
                f"{value_text(row['n1'])} there, and {last} {value_text(row['n2'])}"
            )


def _ends_of_funnel(query: AnalysedQuery) -> tuple[Aggregate, ...]:
    """Of COUNT(*) by user, or by what a trend took, of steps that follow each other: how many first, and last, events.

    Who repeats a step counts trends, unless they are of a session or by what they took. Nothing where a query says by
    itself which trends it counts, or what it counts beside them.
    """
    text = query.query
    asked = aggregates_of(text)
    steps = text.pattern.parts if isinstance(text.pattern, Steps) else ()
    steps = tuple(each for each in steps if not isinstance(each, Negation))
    if len(steps) < 2 or text.semantics is not Semantics.ANY or set(asked) != {_TRENDS}:
        return ()
    if not (query.equivalence or text.group_by) or text.top is not None or text.having is not None:
        return ()
    told = text.session or any(each.function != "COUNT" for each in query.taken)
    variables = [_variable(each, repeated=bool(told)) for each in steps]
    if None in variables or any(each.function == "COUNT" for each in query.taken):
        return ()
    return tuple(Aggregate("COUNT", variable, events=True) for variable in (variables[0], variables[-1]))


def _variable(pattern: Pattern, *, repeated: bool) -> str | None:
    """What one event, or where it may be repeated some events, are bound to."""
    if repeated and isinstance(pattern, Repetition):
        pattern = pattern.body
    return pattern.variable if isinstance(pattern, Atom) else None


def _different(query: AnalysedQuery, rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[tuple[str, ...], str]]:
    """For each aggregate the first row in which it differs; those that differ in one row are one sentence."""
    by_row: dict[int, list[tuple[Aggregate, Any, Any]]] = {}
    for place, each in enumerate(_doubtful(query)):
        for number, row in enumerate(rows):
            ordinary, once = row[f"s{place}"], row[f"e{place}"]
            if not _equal(ordinary, once):
                by_row.setdefault(number, []).append((each, ordinary, once))
                break
    for number, different in by_row.items():
        texts = tuple(to_text(each) for each, _, _ in different)
        first, *others = different
        text = (
            f"{texts[0]} is {value_text(first[1])} in {row_text(query.query, rows[number])}, since an event counts "
            f"once for every trend that takes it; {_once(first[0])}, each event once, is {value_text(first[2])} there"
        )
        for each, ordinary, once in others:
            text += f", and {to_text(each)} is {value_text(ordinary)}, {_once(each)} {value_text(once)}"
        yield texts, text


def _once(each: Aggregate) -> str:
    return to_text(replace(each, events=True))


def _doubtful(query: AnalysedQuery) -> list[Aggregate]:
    """The ordinary sums, means and counts of a query whose events can be in several trends."""
    if _longest(query.query.pattern) < 2:  # every event is a trend of its own
        return []
    return [
        each
        for each in aggregates_of(query.query)
        if each.variable is not None and not each.events and each.function in ("SUM", "AVG", "COUNT")
    ]


def _longest(pattern: Pattern) -> int:
    """How many events a trend has, at most; 2 stands for two and more."""
    match pattern:
        case Atom():
            return 1
        case Negation():
            return 0
        case Repetition(body=body, high=high):
            return min(2, _longest(body) * (2 if high is None else high))
        case Alternation(branches=branches):
            return max(map(_longest, branches))
        case Conjunction():
            return 2
    return min(2, sum(map(_longest, pattern.parts)))


def _one_trend_each(query: AnalysedQuery, rows: QueryRows) -> bool:
    """Whether the rows say of themselves that none has more than one trend."""
    for place, item in enumerate(query.query.items):
        if item.value == _TRENDS and not item.log2:
            return all(largest_of(piece.values[place]) == 1 for piece in rows.pieces if len(piece.starts))
    return False


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, (int, float)):
        return math.isclose(one, other, rel_tol=_CLOSE, abs_tol=_CLOSE)
    return bool(one == other)
