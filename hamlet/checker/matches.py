"""Matches of row patterns against their definition (ISO/IEC TR 19075-5), for the checker.

It labels the rows of the partition by itself, all ways in the order of preference, from the first row on, and
evaluates conditions and measures over the labels by what they say.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hamlet.checker.errors import EvidenceError
from hamlet.checker.scalars import Unknown, compared, value_of
from hamlet.patterns.clause import tree
from hamlet.patterns.clause.expressions import LABEL, NUMBER, Aggregation, Navigation, Read, placeholder

BOUND = 1_000_000  # steps of labelling in a partition; where they do not suffice, evidence is not accepted

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Around:
    """What stands around a clause: a projection and a filter.

    Attributes
    ----------
    measures : sequence of str
        The measures that rows of the result have, in lower case.
    columns : sequence of str
        The columns of the result: ``*`` for those of the clause, and empty for one without a name.
    condition : str or None
        The filter.
    """

    measures: Sequence[str]
    columns: Sequence[str]
    condition: str | None


class Checker:
    """Checks evidence of one clause.

    Parameters
    ----------
    clause : Clause
    reads : dict of str to list of Read
        ``partition``, ``order``, ``measures`` and ``conditions``, the last beside the folded variables.
    conditions : mapping of str to Read
        By folded variable.
    within : Read or None
    events : sequence of dict
        The rows that the clause reads, in their order.
    around : Around or None
        None where rows of the result are no rows of the clause.
    show : callable
        A value as JSON has it.
    """

    def __init__(
        self,
        clause: tree.Clause,
        reads: Mapping[str, Sequence[Read]],
        conditions: Mapping[str, Read],
        within: Read | None,
        events: Sequence[dict[str, Any]],
        around: Around | None,
        show: Callable[[Any], Any],
    ) -> None:
        self._clause, self._reads, self._conditions, self._within = clause, reads, conditions, within
        self._around, self._show = around, show
        self._events = [{name.lower(): value for name, value in event.items()} for event in events]
        self._shown = [show(event) for event in events]
        self._steps = 0

    def check(self, data: Mapping[str, Any]) -> None:
        """Accept the evidence, or raise what is wrong with it.

        Raises
        ------
        EvidenceError
        """
        if not isinstance(data.get("holds"), bool):
            raise EvidenceError("holds is true or false")
        told = data.get("rows")
        if not isinstance(told, list):
            raise EvidenceError("rows is a list")
        places = [self._place(each, number) for number, each in enumerate(told)]
        start = data.get("start") or data.get("empty_at") or data.get("unmatched")
        if not places and start is None:
            raise EvidenceError("there is neither a row nor a start")
        anchor = places[0] if places else self._place(start, None)
        asked = anchor if data["holds"] or data.get("start") is None else self._place(data["start"], None)
        self._rows = self._partition(anchor)
        keys = list(map(self._key, (anchor, asked)))
        if keys[0] != keys[1] or self._show(list(keys[0])) != list((data.get("partition") or {}).values()):
            raise EvidenceError("the partition is another one")
        self._time = self._horizons()
        if strange := set(places) - set(self._rows):
            raise EvidenceError(f"row {min(strange)} is in another partition")
        self._columns(data, asked)
        matches = list(self._matches())
        own = [self._rows.index(place) for place in places]
        if not data["holds"]:
            self._not_given(data, matches, asked)
        if data["holds"] or data.get("taken") or "values" in data:
            self._match(data, matches, own, told, self._rows.index(asked))
        else:
            self._absence(data, matches, own, told, self._rows.index(asked))

    # Rows.

    def _columns(self, data: Mapping[str, Any], asked: int) -> None:
        """Whether the row that evidence is about has columns of the result, or names the row of the table."""
        event, row = self._shown[asked], data["row"] if isinstance(data.get("row"), Mapping) else {}
        known = {"query", *(name.lower() for name in data["partition"])}
        if not data["holds"]:
            if row.get("at", asked) != asked and "at" not in event:
                raise EvidenceError(f"the row that is asked for is not at {asked}")
            known |= {"at", *(name.lower() for name in event)}
        if self._around is None or "" in self._around.columns:
            return
        known |= {*self._around.columns, *self._around.measures}
        if "*" in self._around.columns and self._clause.rows != "one":
            known |= {name.lower() for name in event}
        if unknown := {name for name in row if name.lower() not in known}:
            raise EvidenceError(f"rows have no column {min(unknown)}")

    def _place(self, told: Any, node: int | None) -> int:
        at = told.get("at") if isinstance(told, Mapping) else None
        if type(at) is not int or not 0 <= at < len(self._events):
            raise EvidenceError(f"there is no row {at!r}", node)
        if "event" in told and told["event"] != self._shown[at]:
            raise EvidenceError(f"row {at} is another one", node)
        return at

    def _key(self, place: int) -> tuple[Any, ...]:
        return tuple(value_of(read.text, self._events[place]) for read in self._reads["partition"])

    def _partition(self, place: int) -> list[int]:
        """The places of the rows of a row's partition, in order."""
        key = self._key(place)
        rows = [each for each in range(len(self._events)) if not self._reads["partition"] or self._key(each) == key]
        values = {each: [value_of(read.text, self._events[each]) for read in self._reads["order"]] for each in rows}

        def order(one: int, other: int) -> int:
            for item, left, right in zip(self._clause.order, values[one], values[other], strict=True):
                if left is None or right is None:
                    found = 0 if left is right else (-1 if (left is None) == item.nulls_first else 1)
                else:
                    found = compared(left, right) * (-1 if item.descending else 1)
                if found:
                    return found
            return one - other

        return sorted(rows, key=functools.cmp_to_key(order))

    def _horizons(self) -> Callable[[int, int], bool]:
        """Whether a row is within the time of a start."""
        if self._within is None:
            return lambda _start, _row: True
        bound = value_of(self._within.text, {})
        times = [value_of(self._reads["order"][0].text, self._events[each]) for each in self._rows]

        def reaches(start: int, row: int) -> bool:
            first, last = times[start], times[row]
            if first is None or last is None:
                return False
            pair = (last - first, bound) if isinstance(first, float) else (last, first + bound)
            return compared(*pair) <= 0

        return reaches

    # Labelling.

    def _matches(self) -> Iterator[tuple[int, list[str], int | None]]:
        """All matches: first row, labels, and the row at which matching goes on (None: an error)."""
        start, number = 0, 1
        while start < len(self._rows):
            labels = self._preferred(start, number)
            if labels is None:
                start += 1
                continue
            behind = self._behind(start, labels)
            yield start, labels, behind
            if behind is None:
                return
            start, number = behind, number + 1

    def _behind(self, start: int, labels: Sequence[str]) -> int | None:
        clause = self._clause
        if not labels or clause.skip == "next":
            return start + 1
        if clause.skip == "past":
            return start + len(labels)
        carried = [place for place, label in enumerate(labels) if label in clause.members(clause.skip_to)]
        place = carried[0 if clause.skip == "first" else -1] if carried else 0
        return start + place if place else None

    def _preferred(self, start: int, number: int) -> list[str] | None:
        """The first way of labelling rows from a start in which every row meets its variable's condition."""
        labels: list[str] = []
        for length in self._ways(start, number, labels):
            return labels[:length]
        return None

    def _ways(self, start: int, number: int, labels: list[str], furthest: list[int] | None = None) -> Iterator[int]:
        """Ways of labelling in the order of preference: how many labels stand for each; `labels` has them."""
        todo: list[tuple[Any, int]] = [((self._clause.pattern, None), 0)]  # what is left, linked; rows taken
        while todo:
            left, taken = todo.pop()
            del labels[taken:]
            self._steps += 1
            if self._steps > BOUND:
                raise EvidenceError(f"not checked: the partition needs more than {BOUND:,} steps of labelling")
            if left is None:
                yield taken
                continue
            node, rest = left
            if isinstance(node, tree.Variable):
                row = start + taken
                if row < len(self._rows) and self._time(start, row):
                    labels.append(node.name)
                    if self._holds(start, labels, number):
                        if furthest is not None and taken + 1 > furthest[0]:
                            furthest[0] = taken + 1
                        todo.append((rest, taken + 1))
            elif isinstance(node, tree.Anchor):
                if start + taken == (0 if node.at_start else len(self._rows)):
                    todo.append((rest, taken))
            elif isinstance(node, tree.Concatenation):
                todo.append((_linked(node.parts, rest), taken))
            elif isinstance(node, tree.Alternation):
                todo += [((each, rest), taken) for each in reversed(node.choices)]
            elif isinstance(node, tree.Permutation):
                orders = list(itertools.permutations(node.parts))
                todo += [(_linked(order, rest), taken) for order in reversed(orders)]
            elif isinstance(node, tree.Exclusion):
                todo.append(((node.body, rest), taken))
            else:
                todo += reversed(self._rounds(node, rest, taken))
        return

    @staticmethod
    def _rounds(node: Any, rest: Any, taken: int) -> list[tuple[Any, int]]:
        """The ways on before a round of a quantifier, the preferred one first."""
        body, done, began = (node.body, 0, None) if isinstance(node, tree.Quantified) else (None, node[1], node[2])
        quantified = node if body is not None else node[0]
        if began is not None and done > quantified.low and began == taken:
            return [(rest, taken)]  # a round beyond the lower bound that took no row ends it
        again = ((quantified.body, ((quantified, done + 1, taken), rest)), taken)
        if done < quantified.low:
            return [again]
        if quantified.high is not None and done >= quantified.high:
            return [(rest, taken)]
        return [again, (rest, taken)] if quantified.greedy else [(rest, taken), again]

    # Conditions and measures.

    def _holds(self, start: int, labels: Sequence[str], number: int) -> bool:
        read = self._conditions.get(labels[-1])
        if read is None:
            return True
        return value_of(read.text, self._view(read, start, labels, len(labels) - 1, number, False)) is True

    def _view(
        self, read: Read, start: int, labels: Sequence[str], current: int | None, number: int, final: bool
    ) -> dict[str, Any]:
        """The columns that an expression sees at a row of a match."""
        last = None if current is None else len(labels) - 1 if final else current
        found: dict[str, Any] = {}
        if last is not None:
            found.update(self._events[self._rows[start + last]])
        else:
            found.update(dict.fromkeys(self._events[self._rows[start]]))
        found[NUMBER] = number
        for place, reading in enumerate(read.readings):
            found[placeholder(place)] = self._reading(reading, start, labels, current, number, final)
        return found

    def _reading(
        self, reading: Any, start: int, labels: Sequence[str], current: int | None, number: int, final: bool
    ) -> Any:
        whole = final if reading.mode is None else reading.mode == "FINAL"
        count = 0 if current is None else len(labels) if whole else current + 1
        members = self._clause.members(reading.variable)
        seen = [place for place in range(count) if reading.variable is None or labels[place] in members]

        def row(place: int) -> dict[str, Any]:
            inside = 0 <= place < len(labels)
            label = self._clause.variables[labels[place]] if inside else None
            return {**self._events[self._rows[start + place]], LABEL: label, NUMBER: number}

        if isinstance(reading, Navigation):
            if reading.inwards >= len(seen):
                return None
            place = seen[-1 - reading.inwards if reading.last else reading.inwards] + reading.step
            return value_of(reading.value, row(place)) if 0 <= start + place < len(self._rows) else None
        return _aggregate(reading, [row(place) for place in seen])

    # What is claimed.

    def _match(self, data: Any, matches: Sequence[Any], own: Sequence[int], told: Sequence[Any], asked: int) -> None:
        """Whether the rows are a match, and what else is said of it."""
        if data.get("unmatched") is not None:
            if not data["holds"] or data.get("skipped_to") is not None:
                raise EvidenceError("a row of no match is one of the result, and matching goes on nowhere behind it")
            row = self._rows.index(self._place(data["unmatched"], None))
            if any(start <= row < start + max(1, len(labels)) for start, labels, _ in matches):
                raise EvidenceError("the row is in a match")
            self._row(data, row, [], None, 0, True)
            return
        first = own[0] if own else self._rows.index(self._place(data.get("empty_at"), None))
        for number, (start, labels, behind) in enumerate(matches, 1):
            if start != first:
                continue
            self._labels(own, told, start, labels)
            if data.get("match_number") != number:
                raise EvidenceError(f"the match is number {number} of its partition")
            ended = behind is None or behind >= len(self._rows)
            if data.get("skipped_to") != (None if ended or behind is None else self._rows[behind]):
                raise EvidenceError("matching goes on at another row")
            self._told(data, start, labels, number)
            if data["holds"]:
                self._row(data, start, labels, data.get("current"), number, False)
            elif data.get("taken"):
                if not (start < asked and (behind is None or asked < behind)):
                    raise EvidenceError("the match does not go past the row")
            elif asked != start:
                raise EvidenceError("the match begins at another row")
            else:
                self._others(data, start, labels, number)
            return
        raise EvidenceError("no match begins there")

    def _labels(self, own: Sequence[int], told: Sequence[Any], start: int, labels: Sequence[str]) -> None:
        """Whether the rows and labels are those of a labelling."""
        for place, (row, each) in enumerate(zip(own, told, strict=True)):
            if place >= len(labels):
                raise EvidenceError("the labelling is shorter", place)
            if row != start + place or each.get("label") != self._clause.variables[labels[place]]:
                raise EvidenceError(f"this is row {self._rows[start + place]}, labelled {labels[place]}", place)
        if len(own) < len(labels):
            raise EvidenceError("the labelling is longer")

    def _told(self, data: Mapping[str, Any], start: int, labels: Sequence[str], number: int) -> None:
        """Whether conditions read what is said."""
        told = data.get("conditions")
        if not isinstance(told, list) or len(told) != len(labels):
            raise EvidenceError("conditions has what the condition of each row read")
        for place, values in enumerate(told):
            if not isinstance(values, Mapping):
                raise EvidenceError("conditions are objects", place)
            for text, value in self._seen(start, labels[: place + 1], number).items():
                if text not in values or not _alike(values[text], self._show(value)):
                    raise EvidenceError(f"{text} is {self._show(value)!r}", place)
            if set(values) - set(self._seen(start, labels[: place + 1], number)):
                raise EvidenceError("the condition reads less", place)

    def _seen(self, start: int, labels: Sequence[str], number: int) -> dict[str, Any]:
        """What the condition of the last label reads, by its text."""
        read = self._conditions.get(labels[-1])
        if read is None:
            return {}
        view = self._view(read, start, labels, len(labels) - 1, number, False)
        whole, offset = read.expression.text, read.expression.span.start
        found = {
            whole[each.span.start - offset : each.span.end - offset]: view[placeholder(place)]
            for place, each in enumerate(read.readings)
        }
        event = self._shown[self._rows[start + len(labels) - 1]]
        names = {name.lower(): name for name in event}
        for name in _bare(read.text):
            if name in names:
                found[names[name]] = view[name]
        return found

    def _row(
        self, data: Mapping[str, Any], start: int, labels: Sequence[str], current: int | None, number: int, bare: bool
    ) -> None:
        """Whether the clause gives the row, and what is around it leaves it."""
        if self._around is None:
            return
        told = {name.lower(): value for name, value in data["row"].items()}
        if missing := [name for name in self._around.measures if name not in told]:
            raise EvidenceError(f"the row lacks {missing[0]}")
        if self._clause.rows != "one" and labels and not (type(current) is int and 0 <= current < len(labels)):
            raise EvidenceError("current is the place of the row in its match")
        right = self._computed(data, start, labels, current, number, bare)
        for name, value in right.items():
            if name in told and not _alike(told[name], self._show(value)):
                raise EvidenceError(f"{name} is {self._show(value)!r}, not {told[name]!r}")
        if not self._leaves(right):
            raise EvidenceError("the filter leaves no such row")

    def _leaves(self, row: Mapping[str, Any]) -> bool:
        condition = None if self._around is None else self._around.condition
        return condition is None or value_of(condition, row) is True

    def _computed(
        self, data: Mapping[str, Any], start: int, labels: Sequence[str], current: int | None, number: int, bare: bool
    ) -> dict[str, Any]:
        """The row that the clause gives, columns in lower case."""
        one = self._clause.rows == "one"
        place = None if not labels else len(labels) - 1 if one else current
        row = {} if one else dict(self._events[self._rows[start + (place or 0)]])
        row |= zip(map(str.lower, data["partition"]), self._key(self._rows[start]), strict=True)
        for measure, read in zip(self._clause.measures, self._reads["measures"], strict=True):
            view = None if bare else self._view(read, start, labels, place, number, one)
            row[measure.name.lower()] = None if view is None else value_of(read.text, view)
        return row

    def _given(
        self, data: Mapping[str, Any], start: int, labels: Sequence[str], number: int
    ) -> Iterator[dict[str, Any]]:
        """The rows that the clause gives for a match, those of exclusions among them."""
        places: Sequence[int | None] = range(len(labels))
        if self._clause.rows == "one" or not labels:
            places = [] if self._clause.rows == "omit" else [None]
        for place in places:
            yield self._computed(data, start, labels, place, number, False)

    def _fits(self, row: Row, told: Row) -> bool:
        return all(name in row and _alike(value, self._show(row[name])) for name, value in told.items())

    def _not_given(self, data: Mapping[str, Any], matches: Sequence[Any], asked: int) -> None:
        """Whether the row that is asked for is one of the table, and none that the partition's matches give."""
        if not isinstance(data.get("row"), Mapping):
            raise EvidenceError("evidence has the row that it is about")
        wanted = {name.lower(): value for name, value in data["row"].items() if name != "query"}
        event = self._events[asked]
        named = {name: value for name, value in wanted.items() if name in event}
        by_place = "at" in wanted and "at" not in event
        if not by_place and (not named or sum(self._fits(each, named) for each in self._events) != 1):
            raise EvidenceError("an absent row is named by columns of one row of the table, or by its place")
        if not self._fits(event, named):
            raise EvidenceError("the row that is asked for is another one")
        if self._around is None or _excludes(self._clause.pattern) or not self._shows(wanted):
            return
        for number, (start, labels, _) in enumerate(matches, 1):
            for row in self._given(data, start, labels, number):
                if self._fits(row, wanted) and self._leaves(row):
                    raise EvidenceError("the result has the row")
        matched = {start + place for start, labels, _ in matches for place in range(max(1, len(labels)))}
        for place in range(len(self._rows)) if self._clause.rows == "unmatched" else ():
            row = self._computed(data, place, [], None, 0, True)
            if place not in matched and self._fits(row, wanted) and self._leaves(row):
                raise EvidenceError("the result has the row")

    def _shows(self, names: Iterable[str]) -> bool:
        """Whether rows of the result have all these columns, as far as is known."""
        columns = () if self._around is None else self._around.columns
        return "*" in columns or "" in columns or all(name in columns for name in names)

    def _others(self, data: Mapping[str, Any], start: int, labels: Sequence[str], number: int) -> None:
        """Whether a match gives the rows that are told."""
        told = data["values"]
        if self._around is None:
            return
        if not isinstance(told, list) or not all(isinstance(each, Mapping) for each in told):
            raise EvidenceError("values are rows")
        given = list(self._given(data, start, labels, number))
        left = iter(given)
        for each in told:
            values = {name.lower(): value for name, value in each.items()}
            if not any(row.keys() == values.keys() and self._fits(row, values) for row in left):
                raise EvidenceError("the match gives other rows")
        if len(told) < len(given) and not _excludes(self._clause.pattern):
            raise EvidenceError("the match gives more rows")

    def _absence(
        self, data: Mapping[str, Any], matches: Sequence[Any], own: Sequence[int], told: Sequence[Any], asked: int
    ) -> None:
        """Whether no match begins at a row, and the labelling is a longest one."""
        if any(start == asked for start, _, _ in matches):
            raise EvidenceError("a match begins there")
        if any(start < asked and (behind is None or asked < behind) for start, _, behind in matches):
            raise EvidenceError("an earlier match goes past that row")
        number = sum(start < asked for start, _, _ in matches) + 1
        labels: list[str] = []
        furthest = [0]
        for _ in self._ways(asked, number, labels, furthest):
            raise EvidenceError("a labelling from there fits the pattern")
        if furthest[0] != len(own):
            raise EvidenceError(f"the longest labelling from there has {furthest[0]} rows")
        names = {written: name for name, written in self._clause.variables.items()}
        own_labels = [names.get(each.get("label"), "") for each in told]
        if "" in own_labels:
            raise EvidenceError("no such variable", own_labels.index(""))
        if list(own) != list(range(asked, asked + len(own))):
            raise EvidenceError("the rows of a labelling stand one behind the other")
        for place in range(len(own)):
            if not self._holds(asked, own_labels[: place + 1], number):
                raise EvidenceError("the condition does not hold", place)
        self._told(data, asked, own_labels, number)
        ended = (data.get("ended") or {}).get("at")
        row = asked + len(own)
        if ended != (self._rows[row] if row < len(self._rows) else None):
            raise EvidenceError("the labelling ended at another row")


def _excludes(pattern: Any) -> bool:
    """Whether some rows of a match may be left out of what ALL ROWS gives."""
    if isinstance(pattern, tree.Exclusion):
        return True
    parts = getattr(pattern, "parts", None) or getattr(pattern, "choices", None) or [getattr(pattern, "body", None)]
    return any(_excludes(each) for each in parts if each is not None)


def _linked(parts: Sequence[Any], rest: Any) -> Any:
    for each in reversed(parts):
        rest = (each, rest)
    return rest


@functools.cache
def _bare(text: str) -> tuple[str, ...]:
    """The columns in a text that stand for no reading, in lower case."""
    import sqlglot

    columns = sqlglot.parse_one(text, dialect="duckdb").find_all(sqlglot.exp.Column)
    names = [each.parts[0].name.lower() for each in columns]
    return tuple(each for each in dict.fromkeys(names) if not each.startswith("__hamlet_"))


def _alike(told: Any, right: Any) -> bool:
    if isinstance(right, float) and isinstance(told, (int, float)) and not isinstance(told, bool):
        return abs(told - right) <= 1e-9 * max(1.0, abs(right))
    if isinstance(told, bool) is not isinstance(right, bool):
        return False
    if told == right:
        return True
    try:  # 3 and "3" are one number, which the host may have wider
        return right is not None and told is not None and compared(_number(told), _number(right)) == 0
    except (ValueError, ArithmeticError, Unknown):
        return False


def _number(value: Any) -> Any:
    from decimal import Decimal

    if isinstance(value, (int, float)):
        return value
    if isinstance(value, str):
        return Decimal(value)
    raise Unknown(repr(value))


def _aggregate(reading: Aggregation, rows: Sequence[Row]) -> Any:
    """An aggregate over rows of a match."""
    if reading.condition:
        rows = [each for each in rows if value_of(reading.condition, each) is True]
    name = reading.function.lower()
    if reading.order or reading.within:
        raise EvidenceError(f"not checked: {reading.function} with an order of its own")
    if reading.arguments.strip() == "*":
        return len(rows)
    if "," in reading.arguments and name not in ("string_agg", "listagg", "group_concat"):
        raise EvidenceError(f"not checked: {reading.function} of several values")
    first, _, more = reading.arguments.partition(",")
    values = [value_of(first, each) for each in rows]
    if reading.distinct:
        values = list(dict.fromkeys(values))
    known = [each for each in values if each is not None]
    if name == "count":
        return len(known)
    if name in ("array_agg", "list"):
        return values or None
    if not known:
        return None
    if name == "sum":
        return functools.reduce(lambda one, other: one + other, known)
    if name in ("avg", "mean"):
        return float(sum(known)) / len(known)
    if name in ("min", "max"):
        better = -1 if name == "min" else 1
        return functools.reduce(lambda one, other: other if compared(other, one) == better else one, known)
    if name in ("string_agg", "listagg", "group_concat"):
        return (value_of(more, {}) if more.strip() else ",").join(known)
    if name in ("bool_and", "bool_or"):
        return all(known) if name == "bool_and" else any(known)
    raise EvidenceError(f"not checked: the aggregate {reading.function}")
