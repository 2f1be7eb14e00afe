"""Why a query has no rows: the first reason that holds, found by reading the events once more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hamlet.errors import one_of
from hamlet.findings.local import LocalPredicate, of_type
from hamlet.findings.watch import Watch
from hamlet.input.buffers import from_numpy, to_numpy
from hamlet.input.columns import Int64Array, column, integers
from hamlet.language.meaning import AnalysedQuery
from hamlet.language.printing import name_text
from hamlet.language.query import Alternation, Atom, Conjunction, Duration, Negation, Pattern, Repetition, Sequence
from hamlet.language.schema import Schema
from hamlet.planner.timeline import line_of

MOST_EVENTS = 2_000_000  # of a source that is read again
_MOST_QUERIES = 20  # that are looked at
_MOST_WINDOWS = 1000  # that one event may lie in


class Again(Protocol):
    """Events that can perhaps be read again.

    Attributes
    ----------
    schema : Schema
    rows : int or None
        How many there are, where that is known.
    repeatable : bool
    """

    @property
    def schema(self) -> Schema: ...  # noqa: D102
    @property
    def rows(self) -> int | None: ...  # noqa: D102
    @property
    def repeatable(self) -> bool: ...  # noqa: D102

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """The events with these columns, and their times and types; in any order."""
        ...


def reasons(
    queries: Iterable[AnalysedQuery],
    source: Again,
    watch: Watch,
    rejected: Callable[[list[AnalysedQuery]], Mapping[str, str]] = lambda _: {},
) -> dict[str, str]:
    """The first reason why each of some queries has no rows, as a clause.

    Parameters
    ----------
    queries : iterable of AnalysedQuery
        Those without rows.
    source : Again
        The events; where they cannot be read again, or are many, only what `watch` knows is said.
    watch : Watch
        Has seen all events.
    rejected : callable, optional
        Says of some queries that HAVING rejects all their rows, by name, where it does.
    """
    found: dict[str, str] = {}
    rest: list[AnalysedQuery] = []
    for query in queries:
        text = _unmet(query, watch)
        if text is not None:
            found[query.query.name] = text
        elif query.upstream:  # its rows are not among the events that can be read again
            rows = one_of([name_text(each) for each in query.upstream], "and")
            found[query.query.name] = f"the events and the rows of {rows} make no trend"
        else:
            rest.append(query)
    again = source.repeatable and source.rows is not None and source.rows <= MOST_EVENTS
    rest = rest[: _MOST_QUERIES if again else 0]
    by_having = rejected(rest) if rest else {}
    for query in rest:
        found[query.query.name] = by_having.get(query.query.name) or _together(query, source)
    return found


def required(pattern: Pattern) -> dict[str, None]:
    """The variables that every trend of a pattern has."""
    match pattern:
        case Atom(variable=variable):
            return {variable: None}
        case Sequence(parts=parts) | Conjunction(operands=parts):
            return {name: None for part in parts for name in required(part)}
        case Alternation(branches=branches):
            first, *others = map(required, branches)
            return {name: None for name in first if all(name in other for other in others)}
        case Repetition(body=body, low=low):
            return required(body) if low else {}
        case Negation():
            return {}


def _unmet(query: AnalysedQuery, watch: Watch) -> str | None:
    """That an event is missing which every trend needs."""
    unmet = watch.unmet(query)
    for variable in required(query.query.pattern):
        if variable in unmet:
            return unmet[variable]
    positive = [name for name in query.types if name not in query.negated]
    if positive and all(name in unmet for name in positive):
        return " and ".join(dict.fromkeys(unmet[name] for name in positive))
    return None


def _together(query: AnalysedQuery, source: Again) -> str:
    """Where events occur and trends do not: what keeps the events apart."""
    needed = list(required(query.query.pattern))
    windows = _windows(query, source.schema)
    if len(needed) > 1 and windows is not None:
        events = _events(query, needed, source)
        names = [name_text(each) for each in needed]
        listed = f"both {names[0]} and {names[1]}" if len(names) == 2 else f"all of {one_of(names, 'and')}"
        window = "no window" if query.query.within is None else f"no window of {_length(query.query.within)}"
        line = line_of(query.query, source.schema.clock)[0]
        events = {
            name: table.set_column(0, "0", from_numpy(line.places(to_numpy(table.column(0)))))
            for name, table in events.items()
        }
        if not _common(events, windows, ()):
            return f"{window} has {listed}; perhaps WITHIN is too short"
        carried = all(v not in query.declared or set(query.partition) <= set(query.declared[v]) for v in needed)
        if query.partition and carried and not _common(events, windows, query.partition):
            keys = one_of([name_text(each, free=True) for each in query.partition], "and")
            return f"{window} has {listed} with the same {keys}"
    causes = ["the order of the pattern"]
    causes += ["conditions on neighbours (NEXT, PREV)"] if query.adjacent else []
    causes += ["NOT"] if query.negated else []
    left = "row" if query.query.having is not None else "trend"
    causes += ["HAVING"] if query.query.having is not None else []
    if len(causes) == 1 and not len(needed) > 1:
        return "no window has enough events for a trend"
    return f"the events occur, but no {left} is left by {one_of(causes, 'and')}"


def _length(duration: Duration) -> str:
    return f"{float(duration.amount):g} {duration.unit}"


def _windows(query: AnalysedQuery, schema: Schema) -> tuple[int, int] | None:
    """Length and slide on the query's line of time; None where an event lies in too many windows to look at."""
    text = query.query
    if getattr(text, "session", False) or getattr(text, "longest", None) is not None:
        return None
    _, within, slide = line_of(text, schema.clock)
    return (within, slide) if within <= _MOST_WINDOWS * slide else None


def _events(query: AnalysedQuery, variables: list[str], source: Again) -> Mapping[str, pa.Table]:
    """Per variable the events that may be bound to it: times and keys."""
    schema = source.schema
    predicates = {each: LocalPredicate(query, each, schema) for each in variables if query.local.get(each)}
    read = [*query.partition, *(name for each in predicates.values() for name in each.columns)]
    found: dict[str, list[pa.Table]] = {each: [] for each in variables}
    clock = schema.clock.column
    for batch in source.batches([name for name in dict.fromkeys(read) if name in schema.columns]):
        times = from_numpy(integers(batch.column(clock), clock)[0])
        keys = [column(batch, name) for name in query.partition]
        values = [pa.nulls(batch.num_rows) if each is None else _decoded(each) for each in keys]
        table = pa.table([times, *values], names=[str(place) for place in range(1 + len(values))])
        for each in variables:
            chosen = of_type(batch, schema.type_column, query.types[each])
            if each in predicates:
                chosen &= predicates[each].accepts(batch)
            found[each].append(table.filter(from_numpy(chosen)))
    return {each: pa.concat_tables(parts, promote_options="permissive") for each, parts in found.items()}


def _decoded(array: pa.Array) -> pa.Array:
    return array.cast(array.type.value_type) if pa.types.is_dictionary(array.type) else array


def _common(events: Mapping[str, pa.Table], windows: tuple[int, int], keys: Iterable[str]) -> bool:
    """Whether some window (of one key, where keys are given) has an event of every variable."""
    places = [str(place) for place in range(1, 1 + len(tuple(keys)))]
    whole = pa.concat_tables(events.values(), promote_options="permissive")
    codes: Int64Array = np.zeros(whole.num_rows, np.int64)
    for place in places:
        encoded = whole.column(place).combine_chunks().dictionary_encode("encode")
        numbers = to_numpy(encoded.indices)
        codes = np.unique(codes * (len(encoded.dictionary) + 1) + numbers, return_inverse=True)[1]
    times = [to_numpy(table.column("0")) for table in events.values()]
    if not all(len(each) for each in times):
        return False
    within, slide = windows
    begin = (min(int(each.min()) for each in times) - within) // slide
    end = max(int(each.max()) for each in times) // slide
    count = int(codes.max()) + 1
    if (end - begin + 1) * count >= 2**63:
        return True  # too many to be numbered: nothing is said of windows or keys
    start = 0
    edges: list[Int64Array] = []  # of the windows with events of a variable
    steps: list[Int64Array] = []  # one variable more from there on, or one less
    for each in times:
        first, past = _merged(each, codes[start : start + len(each)], within, slide, begin, end)
        edges += [first, past]
        steps += [np.ones(len(first), np.int64), np.full(len(past), -1, np.int64)]
        start += len(each)
    edge, step = np.concatenate(edges), np.concatenate(steps)
    order = np.lexsort((step, edge))  # ranges are half-open: what ends somewhere ends before what begins there
    return int(np.cumsum(step[order]).max(initial=0)) == len(times)


def _merged(
    times: npt.NDArray[Any], codes: Int64Array, within: int, slide: int, begin: int, end: int
) -> tuple[Int64Array, Int64Array]:
    """The windows that events lie in, key by key, as numbers: the ranges that they come to, and where these end.

    An event lies in windows that follow one another, so that what is looked at does not grow with their number.
    """
    last = times // slide
    first = (times - within) // slide + 1
    held = last >= first
    before = (codes * (end - begin + 1) - begin)[held]
    first, past = first[held] + before, last[held] + before + 1
    order = np.argsort(first, kind="stable")
    first, past = first[order], np.maximum.accumulate(past[order])
    if not len(first):
        return first, past
    apart: npt.NDArray[np.bool_] = np.append(True, first[1:] > past[:-1])
    return first[apart], past[np.append(apart[1:], True)]
