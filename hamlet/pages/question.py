"""A query as a sentence."""

from __future__ import annotations

from hamlet.errors import one_of
from hamlet.language.printing import to_text
from hamlet.language.query import Aggregate, Attribute, Query, Semantics, Taken

_OF = {"SUM": "the sum of", "AVG": "the mean of", "MIN": "the least", "MAX": "the greatest"}
_HOW = {
    Semantics.ANY: "",
    Semantics.NEXT: ", which skip nothing that they could take",
    Semantics.CONTIGUOUS: ", which skip nothing",
}


def question(query: Query) -> str:
    """What a query asks, in words.

    Examples
    --------
    >>> from hamlet.language.parser import parse
    >>> text = "RETURN user, COUNT(*), MAX(buy.price) PATTERN SEQ(view+, buy) GROUP-BY user WITHIN 1 d"
    >>> question(parse(text).queries[0])
    'In each 1 d, for each user: how many trends SEQ(view+, buy) are there, and what is the greatest buy.price?'
    """
    asked = [_asked(item.value) for item in query.items if not isinstance(item.value, Attribute | Taken)]
    trends = f"trends {to_text(query.pattern)}{_HOW[query.semantics]}"
    if query.longest is not None:
        trends += f", no longer than {to_text(query.longest)}"
    counted = "how many trends are there"
    if counted in asked:
        asked.remove(counted)
        text = f"how many {trends} are there" + (f", and what is {one_of(asked, 'and')}" if asked else "")
    elif asked:
        text = f"over all {trends}: what is {one_of(asked, 'and')}"
    else:
        text = f"are there {trends}"
    if query.condition is not None:
        text += f", where {to_text(query.condition)}"
    groups = list(dict.fromkeys(to_text(each) for each in query.group_by))
    start = _window(query) + (f", for each {one_of(groups, 'and')}" if groups else "")
    text = f"{start}: {text}?"
    if query.having is not None:
        text += f" Only where {to_text(query.having)}."
    if query.top is not None:
        which = "least" if query.top.ascending else "largest"
        text += f" The {query.top.count} with the {which} {to_text(query.top.by)}."
    return text


def _window(query: Query) -> str:
    if query.within is None:
        return "Over everything"
    if query.session:
        return f"In each session, which ends after {to_text(query.within)} without events"
    every = "" if query.slide is None else f" that begins every {to_text(query.slide)}"
    return f"In each {to_text(query.within)}{every}"


def _asked(value: object) -> str:
    match value:
        case Aggregate(function="COUNT", variable=None):
            return "how many trends are there"
        case Aggregate(function="COUNT", events=events, attribute=None, variable=variable):
            return f"the number of {variable} events{', each once' if events else ' in all trends'}"
        case Aggregate(function=function, events=events, variable=variable, attribute=name) if function in _OF:
            return f"{_OF[function]} {variable}.{name}{', each event once' if events else ''}"
    return to_text(value)  # type: ignore[arg-type]
