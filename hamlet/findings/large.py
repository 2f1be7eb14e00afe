"""What counts beyond all measure usually mean: trends that mix the events of all users."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from hamlet.findings.beside import Beside, Words, row_text, with_groups
from hamlet.language.meaning import AnalysedQuery
from hamlet.language.printing import name_text, to_text
from hamlet.language.query import Aggregate, Query, ReturnItem, Semantics
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


@dataclass(frozen=True)
class Tally:
    """What is to be known of the rows of a query.

    Attributes
    ----------
    rows : int
    most : int
        The largest COUNT among them, 0 without any.
    """

    rows: int = 0
    most: int = 0

    def plus(self, other: Tally) -> Tally:
        """Of the rows of both."""
        return Tally(self.rows + other.rows, max(self.most, other.most))


def tally_of(query: Query, rows: QueryRows) -> Tally:
    """What is to be known of some rows of a query."""
    counts = [
        place
        for place, item in enumerate(query.items)
        if isinstance(item.value, Aggregate) and item.value.function == "COUNT" and rows.columns[place].kind == "count"
    ]
    largest = [largest_of(piece.values[place]) for place in counts for piece in rows.pieces]
    return Tally(len(rows), max((each for each in largest if each is not None), default=0))


def may_explode(query: AnalysedQuery) -> bool:
    """Whether the trends of a query are all selections of events, of which there can be 2^n."""
    return query.query.semantics is Semantics.ANY and len(query.patterns) == 1


def may_mix(query: AnalysedQuery, keys: Sequence[str]) -> bool:
    """Whether trends of a query combine events that `keys` would tell apart: only their counts raise doubts."""
    return bool(keys) and not query.equivalence and not set(query.grouping) & set(keys)


def keys_of(schema: Schema) -> list[str]:
    """The columns that seem to say whose an event is, by their names."""
    special = {schema.clock.column, schema.type_column, schema.order_column}
    return [name for name in schema.columns if name not in special and _KEY.fullmatch(name)]


def doubts_of_counts(workload: Workload, schema: Schema, tallies: Sequence[Tally]) -> Iterator[str]:
    """A sentence for each query that counts more than 2^64 trends, over events that somebody could have told apart.

    Parameters
    ----------
    workload : Workload
    schema : Schema
        Of the input.
    tallies : sequence of Tally
        Of the results of each query.
    """
    keys = keys_of(schema)
    for query, found in zip(workload.analysis.queries, tallies, strict=True):
        if found.most >= LARGE and may_mix(query, keys):
            shown = ", ".join(name_text(name, free=True) for name in keys[:3])
            yield (
                f"{query.query.name}: counts up to {short_text(found.most)}, because trends combine the events of all "
                f"{keys[0]} values; the input has {shown}: WHERE [{name_text(keys[0], free=True)}] counts within each"
            )


def doubts_of_selections(
    workload: Workload, schema: Schema, tallies: Sequence[Tally], beside: Beside, found: Sequence[QueryRows] | None
) -> Iterator[str]:
    """A sentence for each query within keys that counts more than 2^64 trends, where SEMANTICS NEXT counts visits.

    Parameters
    ----------
    workload : Workload
    schema : Schema
        Of the input.
    tallies : sequence of Tally
        Of the results of each query.
    beside : Beside
        Runs queries in other words.
    found : sequence of QueryRows, optional
        The rows of each query, where they are at hand.
    """
    keys = keys_of(schema)
    words: dict[int, Words] = {}
    for query, tally in zip(workload.analysis.queries, tallies, strict=True):
        if tally.most >= LARGE and may_explode(query) and not may_mix(query, keys):
            items = [ReturnItem(each, alias=f"n{i}") for i, each in enumerate(_counts(query))]
            own = tuple(ReturnItem(each, alias=f"o{i}") for i, each in enumerate(_counts(query)))
            visits = replace(
                query.query,
                items=(*with_groups(query.query), *items),
                having=None,
                top=None,
                semantics=Semantics.NEXT,
            )
            words[query.index] = Words(visits, own, LARGE)
    settled: set[int] = set()
    for query, rows in beside.rows(words, found, settled):
        for row, (number, each) in product(rows, enumerate(_counts(query))):
            value, visited = row[f"o{number}"], row[f"n{number}"]
            if value is not None and value >= LARGE and visited < LARGE:
                yield (
                    f"{query.query.name}: {to_text(each)} is {short_text(value)} in {row_text(query.query, row)}, "
                    "since every selection of events is a trend; SEMANTICS NEXT, whose trends skip nothing that "
                    f"they could take, counts {short_text(visited)} there"
                )
                settled.add(query.index)
                break


def _counts(query: AnalysedQuery) -> list[Aggregate]:
    counts = (item.value for item in query.query.items if isinstance(item.value, Aggregate))
    return [each for each in counts if each.function == "COUNT" and not each.events]
