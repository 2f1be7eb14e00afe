"""Attributes that are probably misspelled, where events are dicts and a missing attribute is NULL.

Columns of files and tables are known, and a name that is not among them is a mistake. A dict may leave attributes out,
so a name that no dict has may be right: it is a mistake where events of the type have come and one of their attributes
has nearly this name, which no query means.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from hamlet.errors import Diagnostic, in_order
from hamlet.frontend.reports import Reports
from hamlet.language.conditions import references, walk
from hamlet.language.meaning import AnalysedQuery, Analysis
from hamlet.language.printing import name_text
from hamlet.language.query import Aggregate, Attribute, Equivalence, Span
from hamlet.language.schema import Schema

SHORTEST = 4  # letters of a name in which a slip is believed


def misspelled(analysis: Analysis, schema: Schema, types: Collection[str]) -> list[Diagnostic]:
    """The attributes of a workload that no event has, and that nearly have the name of one that events have.

    Parameters
    ----------
    analysis : Analysis
    schema : Schema
        Of dicts: the attributes that some of them have.
    types : collection of str
        The types that they have.
    """
    reports = Reports(analysis.text.text, analysis.text.source)
    known = schema.columns.keys() | {schema.clock.column, schema.type_column}
    named = {name for query in analysis.queries for _, name, _ in _named(query)}
    choices = [name for name in schema.columns if name not in named]
    for query in analysis.queries:
        for variable, name, span in _named(query):
            variables = query.types if variable is None else {variable: query.types.get(variable, "")}
            carriers = [each for each in variables if each not in query.declared and query.types.get(each) in types]
            if name in known or not carriers or any(name in declared for declared in query.declared.values()):
                continue
            meant = _typed_wrongly(name, choices)
            if meant is not None:
                hint = f"did you mean {name_text(meant, free=True)}?"
                reports.error(f"no event has the attribute '{name}'", span, hint)
    return list(in_order(reports.errors))


def _typed_wrongly(name: str, choices: Iterable[str]) -> str | None:
    """The one of `choices` that differs as much as a slip of the fingers makes it.

    An event may simply lack an attribute, so that names that are only alike (rider, driver; weight, height) are two.
    """
    plain = _plainly(name)
    for choice in choices:
        other = _plainly(choice)
        if plain == other or (min(len(plain), len(other)) >= SHORTEST and _one_slip(plain, other)):
            return choice
    return None


def _plainly(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def _one_slip(one: str, other: str) -> bool:
    """Whether a letter that is not the first one is missing, too many, another, or swapped with the next."""
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    mine, theirs = one[start:], other[start:]
    slips = (
        (mine[1:], theirs, mine[:1]),
        (mine, theirs[1:], theirs[:1]),
        (mine[1:], theirs[1:], mine[:1] + theirs[:1]),
        (mine[2:], theirs[2:], mine[:2] if mine[:2] == theirs[1::-1] else ""),
    )
    return start > 0 and any(a == b and letters.isalpha() for a, b, letters in slips)


def _named(query: AnalysedQuery) -> Iterator[tuple[str | None, str, Span]]:
    """Every attribute that a query names, with its variable where it is that of single events."""
    for item in query.query.items:
        value = item.value
        if isinstance(value, Aggregate) and value.variable is not None and value.attribute is not None:
            yield value.variable, value.attribute, value.span
    for group in query.query.group_by:
        if isinstance(group, Attribute):
            yield None, group.name, group.span
        elif group.attribute is not None:
            yield group.variable, group.attribute, group.span
    if query.query.condition is not None:
        for reference in references(query.query.condition):
            yield reference.variable, reference.attribute, reference.span
        for part in walk(query.query.condition):
            if isinstance(part, Equivalence):
                yield from ((None, name, part.span) for name in part.attributes)
