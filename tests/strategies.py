"""Small random workloads and bursty random streams, for tests that compare an executor with the oracle.

One description of the distribution (`Draft`), two sources of chance: `random_case(seed)` uses a seeded generator, so
that thousands of cases can be run and named by a number; `case_strategy()` uses Hypothesis, which shrinks. Workloads
are drawn as text, so that a failing case can be read and pasted. They are valid by construction but for a few (an
ambiguous guard, say), which `hamlet.language.analysis` rejects and which are drawn again.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

from hypothesis import assume
from hypothesis import strategies as st

from hamlet.errors import WorkloadError
from hamlet.language import analysis
from hamlet.language.parser import parse
from hamlet.language.query import Conjunction, Pattern, atoms
from tests import pattern_parts
from tests.conditions import Conditions
from tests.result_expressions import Expressions

T = TypeVar("T")


class Chance(Protocol):
    """Where random decisions come from."""

    def integer(self, low: int, high: int) -> int:
        """Any of ``low..high``, both included; small ones are simple."""
        ...


@dataclass(frozen=True)
class Features:
    """What random cases may contain; a caller switches off what an executor does not run.

    Attributes
    ----------
    queries : int
        At most so many queries in a workload.
    events : int
        At most so many events in a stream; brute force takes exponential time in it.
    negation, alternation, counted : bool
        NOT; OR; ``{n,m}``.
    local, adjacent : bool
        Predicates on one event; on neighbours.
    equivalence, grouping : bool
        ``[k]``; GROUP-BY.
    nulls : bool
        NULL and NaN among values and keys, attributes left out, events without a type.
    ties, order : bool
        Events of equal time; an order column among them.
    windows : bool
        SLIDE, gaps, negative times, milliseconds; else one window holds everything.
    aggregates : bool
        All aggregates and LOG2; else COUNT(*) only.
    conjunction, broadcast : bool
        AND of patterns; declared types that lack a key.
    tumbling : bool
        Every query has the same window, without SLIDE.
    semantics, span, session : bool
        SEMANTICS; SPAN; WITHIN SESSION.
    everything : bool
        WITHIN ALL.
    expressions, having, top, distinct : bool
        Arithmetic in RETURN; HAVING; TOP; COUNT(DISTINCT ..) and APPROX_COUNT_DISTINCT.
    matched, taken : bool
        Aggregates over EVENTS; FIRST, LAST and COUNT in GROUP-BY.
    once : bool
        No aggregates over all trends but COUNT(*).
    chained : bool
        Queries that ask about the rows of earlier ones.
    large : bool
        Integers near 2^63, doubles near both ends of their range and infinite ones; not together with arithmetic in
        predicates.
    """

    queries: int = 3
    events: int = 10
    negation: bool = True
    alternation: bool = True
    counted: bool = True
    local: bool = True
    adjacent: bool = True
    equivalence: bool = True
    grouping: bool = True
    nulls: bool = True
    ties: bool = True
    order: bool = True
    windows: bool = True
    aggregates: bool = True
    conjunction: bool = False
    broadcast: bool = False
    tumbling: bool = False
    large: bool = False
    semantics: bool = False
    span: bool = False
    session: bool = False
    everything: bool = False
    expressions: bool = False
    having: bool = False
    top: bool = False
    distinct: bool = False
    matched: bool = False
    taken: bool = False
    once: bool = False
    chained: bool = False


DEFAULT = Features()
CORE = Features(queries=1, events=7, local=False, adjacent=False, equivalence=False, grouping=False, nulls=False)

Case = tuple[str, list[dict[str, Any]], dict[str, Any]]  # workload text, events, options of hamlet.run


def random_case(seed: int, features: Features = DEFAULT) -> Case:
    """The case of a number: workload text, events, and the options of `hamlet.run` that it needs.

    The same seed and features give the same case as long as this file stays the same.
    """
    chance = SeededChance(random.Random(seed))
    while True:
        case = Draft(chance, features).case()
        if is_valid(case[0]):
            return case


def case_strategy(features: Features = DEFAULT) -> st.SearchStrategy[Case]:
    """The same distribution for Hypothesis."""

    @st.composite
    def draw_case(draw: Callable[[st.SearchStrategy[int]], int]) -> Case:
        case = Draft(DrawnChance(draw), features).case()
        assume(is_valid(case[0]))
        return case

    return draw_case()


def is_valid(text: str) -> bool:
    """Whether the checks accept a workload."""
    try:
        analysis.analyse(parse(text))
    except WorkloadError:
        return False
    return True


@dataclass
class SeededChance:
    """Decisions of a seeded generator."""

    source: random.Random

    def integer(self, low: int, high: int) -> int:
        return self.source.randint(low, high)


@dataclass
class DrawnChance:
    """Decisions of Hypothesis."""

    draw: Callable[[st.SearchStrategy[int]], int]

    def integer(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))


@dataclass
class Draft:
    """Draws one case."""

    chance: Chance
    features: Features
    positive: list[str] = field(default_factory=list)  # "A" or "A x": what patterns are made of
    negated: list[str] = field(default_factory=list)
    shared: list[str] = field(default_factory=list)  # Kleene parts that queries have in common
    types: list[str] = field(default_factory=list)  # types that some query asks for, often ones more than once
    lacking: list[str] = field(default_factory=list)  # types declared without a key
    atoms_left: int = 0
    asked: int = 0  # the number of the query whose rows the query drawn now asks about
    last: tuple[list[str], list[str], list[str]] | None = None  # of a query: variables, groups, and all but its RETURN

    # -------------------------------------------------------------------------------------------- decisions

    def percent(self, share: int) -> bool:
        """True in `share` of a hundred cases; False is the simple answer."""
        return self.chance.integer(0, 99) >= 100 - share

    def pick(self, choices: Sequence[T]) -> T:
        """One of the choices; the first is the simplest."""
        return choices[self.chance.integer(0, len(choices) - 1)]

    # ------------------------------------------------------------------------------------------------ cases

    def case(self) -> Case:
        """Workload text, events, options."""
        options: dict[str, Any] = {}
        if self.features.windows and self.percent(10):
            options["time_unit"] = "ms"
        if self.features.order and self.percent(25):
            options["order_column"] = "o"
        self.variables()
        count = self.pick([7, 9, 10, 8, 6, 4, 12, 2])
        times = self.times(min(count, self.features.events))
        span = times[-1] - times[0] + 1
        lines = self.declarations()
        lines += [self.query(number, span, options) for number in range(self.chance.integer(1, self.features.queries))]
        return "\n".join(lines), self.stream(times, "order_column" in options), options

    def variables(self) -> None:
        """Few variables, so that they meet; a negated one is never positive."""
        pool = self.pick([["A", "B"], ["A", "B", "C"], ["A x", "A y", "B"], ["A", "B", "C", "D"], ["A x", "B", "A z"]])
        self.positive = pool
        types = ["C", "D", "A", "B"]
        self.negated = [t if t not in {v.split()[-1] for v in pool} else f"{t} n{t.lower()}" for t in types]
        if not self.percent(30):
            self.negated = self.negated[:2]

    def declarations(self) -> list[str]:
        """Some types lack a key; mostly such as stand in NOT, so that every trend has an event with the key."""
        if not (self.features.broadcast and self.percent(80)):
            return []
        positive = {atom[0] for atom in self.positive}
        others = [type_ for type_ in "DCBA" if type_ not in positive] or ["B"]
        self.lacking = [self.pick(others)] if self.percent(65) else list({self.pick("ABCD"), self.pick(others)})
        lines = []
        for type_ in sorted(self.lacking):
            keys = self.pick([["g STRING"], ["k INT"], []])
            lines.append(f"EVENT {type_}({', '.join(['v INT', 'w DOUBLE', 's STRING', *keys])});")
        return lines

    # --------------------------------------------------------------------------------------------- patterns

    def pattern(self) -> str:
        """A pattern; where it is ambiguous a few times in a row, one without NOT."""
        for _ in range(4):
            text = self.some_pattern()
            if "NOT" not in text or is_valid(pattern_only(text)):
                return text
        draft = replace(self, features=replace(self.features, negation=False))
        return draft.some_pattern()

    def some_pattern(self) -> str:
        self.atoms_left = self.pick([2, 3, 3, 4, 4, 5, 6])
        if self.features.conjunction and self.percent(40):
            first = self.part(1)
            self.atoms_left = max(self.atoms_left, 2)
            return f"({first}) AND ({self.part(1)})"
        return self.sequence(2) if self.percent(60) else self.part(3)

    def atom(self) -> str:
        """One positive event, with or without a repetition."""
        self.atoms_left -= 1
        return self.pick(self.positive) + self.repetition(55)

    def repetition(self, share: int) -> str:
        if not self.percent(share):
            return ""
        return self.pick(
            ["+"] * 6 + ["*", "?"] + ["{2}", "{1,2}", "{2,}", "{0,2}"] * (self.features.counted and self.percent(50))
        )

    def part(self, depth: int) -> str:
        """A pattern with at least one positive event in it."""
        shape = self.chance.integer(0, 99)
        if depth == 0 or self.atoms_left <= 1 or shape < 25:
            return self.atom()
        if shape < 35 and self.shared:
            return self.pick(self.shared)
        if shape < 55 and self.features.alternation:
            return f"({self.part(depth - 1)} OR {self.part(depth - 1)}){self.repetition(40)}"
        repeated = self.repetition(40)
        return f"({self.sequence(depth)}){repeated}" if repeated else self.sequence(depth)

    def sequence(self, depth: int) -> str:
        parts: list[str] = []
        for _ in range(self.pick([2, 2, 3, 1])):
            if not parts or self.atoms_left > 0:
                parts.append(self.part(depth - 1))
        if self.features.negation:
            for _ in range(self.pick([0, 1, 0, 1, 2])):
                parts.insert(self.chance.integer(0, len(parts)), f"NOT {self.guard()}")
        return f"SEQ({', '.join(parts)})"

    def guard(self) -> str:
        """A negated pattern: mostly one event, sometimes longer."""
        one, two = self.pick(self.negated), self.pick(self.negated)
        forms = [one] * 4 + [f"SEQ({one}, {two})"] * 2 + [f"({one}+)", f"({one} OR {two})", f"({one}{{2}})"]
        rare = [f"SEQ({one}+, {two})", f"SEQ({one}, {two}?)", f"(SEQ({one}, {two}))", f"({one}*)"]
        return self.pick([*forms, *rare])

    # ---------------------------------------------------------------------------------------------- queries

    def query(self, number: int, span: int, options: dict[str, Any]) -> str:
        if not (self.features.chained and number > 0 and self.percent(65)):
            return self.some_query(number, span, options)
        return replace(self, asked=self.chance.integer(1, number)).of_rows().some_query(number, span, options)

    def of_rows(self) -> Draft:
        """The same decisions, for a query about the rows of another one."""
        self.positive = [f"q{self.asked} r", *self.positive[: self.pick([0, 1, 2])]]
        self.negated = [f"q{self.asked} nr", *self.negated[:1]]
        self.shared = []
        return self

    def some_query(self, number: int, span: int, options: dict[str, Any]) -> str:
        if self.last is not None and not self.asked and self.percent(20):  # like the one before, but for its RETURN
            present, group_by, lines = self.last
            return "\n".join([f"RETURN {', '.join(self.items(present, group_by))}", *lines])
        pattern = self.pattern()
        if number == 0 or self.percent(30):
            self.shared = [f"{self.pick(self.positive)}+"]
        parsed = parse(pattern_only(pattern)).queries[0].pattern
        self.types += [atom.type for atom in atoms(parsed) if not atom.type.startswith("q")]
        session = self.features.session and self.percent(30)
        present = sorted(pattern_parts.variables(parsed))
        group_by = self.pick([[], [], ["k"], ["g"], ["g", "k"]]) if self.features.grouping else []
        condition = (
            self.condition_of_rows(parsed) if self.asked else self.condition(parsed, group_by if session else None)
        )
        if self.features.taken and not isinstance(parsed, Conjunction) and self.percent(65):
            group_by = self.mixed([*group_by, *self.taken(present)])
        lines = [f"RETURN {', '.join(self.items(present, group_by))}", f"  PATTERN {pattern}"]
        if self.features.semantics and self.percent(60):
            lines.append(f"  SEMANTICS {self.pick(['NEXT', 'contiguous', 'skip-till-next-match', 'ANY'])}")
        lines += [f"  WHERE {condition}"] * bool(condition)
        lines += [f"  GROUP-BY {', '.join(group_by)}"] * bool(group_by)
        results = Expressions(self, present, group_by, self.features.matched)
        if self.features.having and self.percent(40):
            lines.append(f"  HAVING {results.condition()}")
        if self.features.top and not session and self.percent(40):
            lines.append(f"  TOP {self.pick([1, 2, 3])} BY {results.value()}{self.pick([' ASC', ' DESC', ''])}")
        unit = options.get("time_unit", "s")
        if self.features.span and self.percent(45):
            lines.append(f"  SPAN {self.pick([max(1, span // 3), 1, 2, max(1, span // 2), span])} {unit}")
        window = f"WITHIN SESSION {self.pick([1, 2, 3])} {unit}" if session else self.window(span, options)
        lines.append(f"  {window};")
        self.last = None if self.asked else (present, group_by, lines[1:])
        return "\n".join(lines)

    def taken(self, present: Sequence[str]) -> list[str]:
        """What trends took, as GROUP-BY names it."""
        found = []
        for _ in range(self.pick([1, 1, 2])):
            variable = self.pick(present)
            attribute = self.pick(["v", "w", "time"] if self.asked else ["v", "s", "w", "k", "g", "time"])
            found.append(
                self.pick([f"COUNT({variable})", f"FIRST({variable}.{attribute})", f"LAST({variable}.{attribute})"])
            )
        return list(dict.fromkeys(found))

    def mixed(self, items: list[str]) -> list[str]:
        """The items in some order."""
        left, found = list(items), []
        while left:
            found.append(left.pop(self.chance.integer(0, len(left) - 1)))
        return found

    def items(self, present: Sequence[str], group_by: Sequence[str]) -> list[str]:
        items = [name for name in group_by if self.percent(70)]
        if not self.features.aggregates:
            return [*items, "COUNT(*)"]
        items += ["COUNT(*)"] * self.percent(85)
        if self.features.chained:
            items += ["COUNT(*) AS v", f"{self.pick(['SUM', 'MIN', 'AVG'])}({self.pick(present)}.w) AS w"]
        if self.features.expressions:
            results = Expressions(self, present, group_by, self.features.matched)
            items += [results.item(number) for number in range(self.pick([1, 2, 0]))]
        if self.features.distinct:
            counted = (
                f"{self.pick(present)}.{self.pick(['v', 'w', 'time'] if self.asked else ['v', 's', 'w', 'k', 'g'])}"
            )
            items += self.pick([[f"COUNT(DISTINCT {counted})"], [f"APPROX_COUNT_DISTINCT({counted})"], []])
        for _ in range(self.pick([1, 2, 3] if not self.features.once else [0, 1, 2]) if self.features.matched else 0):
            variable, attribute = self.pick(present), self.pick(["v", "v", "w"])
            item = self.pick(
                [
                    f"COUNT(EVENTS {variable})",
                    *(f"{f}(EVENTS {variable}.{attribute})" for f in ("SUM", "AVG", "MIN", "MAX")),
                ]
            )
            items.append(f"LOG2({item})" if self.percent(10) else item)
        for _ in range(0 if self.features.once else self.pick([0, 1, 2, 3])):
            variable = self.pick(present)
            attribute = self.pick(["v", "v", "w", "time"])
            item = self.pick(
                [f"COUNT({variable})", *(f"{f}({variable}.{attribute})" for f in ("SUM", "AVG", "MIN", "MAX"))]
            )
            items.append(f"LOG2({item})" if self.percent(15) else item)
        return list(dict.fromkeys(items)) or ["COUNT(*)"]

    def window(self, span: int, options: dict[str, Any]) -> str:
        if not self.features.windows:
            return "WITHIN 1000 s"
        if self.features.tumbling:
            return f"WITHIN {3 + span // 4} {options.get('time_unit', 's')}"
        if self.features.everything and self.percent(40):
            return "WITHIN ALL"
        unit = options.get("time_unit", "s")
        width = self.pick([2 * span, span, span, max(2, span // 2), 2 + span // 3])
        slide = self.pick([0, 0, max(1, width // 2), 1 + width // 3, width + 2, max(1, width - 1)])
        return f"WITHIN {width} {unit}" + f" SLIDE {slide} {unit}" * bool(slide)

    def condition_of_rows(self, pattern: Pattern) -> str:
        """A condition on rows of other queries, which have v and w only."""
        terms = []
        for one in sorted(pattern_parts.variables(pattern)):
            if self.features.local and self.percent(25):
                terms.append(f"{one}.{self.pick('vw')} {self.pick(['>', '<=', '<>'])} {self.pick([0, 1, 2, 1.5])}")
        pairs = sorted(pattern_parts.neighbours(pattern))
        if self.features.adjacent and pairs and self.percent(40):
            one, two = self.pick(pairs)
            terms.append(f"{one}.v {self.pick(['<', '>=', '='])} NEXT({two}).{self.pick('vw')}")
        return " AND ".join(terms)

    def condition(self, pattern: Pattern, keys: Sequence[str] | None = None) -> str:
        terms = []
        if self.features.equivalence and self.percent(35):
            known = ["[k]", "[g]", "[k, g]"] if keys is None else [f"[{name}]" for name in keys]
            terms += [self.pick(known)] if known else []
        conditions = Conditions(self, keys=not self.lacking)
        negated = list(pattern_parts.negated(pattern))
        if self.features.local and self.percent(30):
            terms.append(conditions.local(self.pick(sorted(pattern_parts.variables(pattern)))))
        if self.features.adjacent and self.percent(35):
            pairs = sorted(pattern_parts.neighbours(pattern))
            terms += [conditions.adjacent(*self.pick(pairs)) for _ in range(self.pick([1, 1, 1, 2]) if pairs else 0)]
        if negated and self.features.local and self.percent(30):
            terms.append(conditions.local(self.pick(sorted(pattern_parts.variables(self.pick(negated))))))
        longer = [body for body in negated if pattern_parts.neighbours(body)]
        if longer and self.features.adjacent and self.percent(60):
            terms.append(conditions.adjacent(*self.pick(sorted(pattern_parts.neighbours(self.pick(longer))))))
        return " AND ".join(terms)

    # ---------------------------------------------------------------------------------------------- streams

    def times(self, count: int) -> list[int]:
        """Times in order, close together, some of them equal."""
        time = self.pick([0, 0, 0, -3, -20, 7]) if self.features.windows else 0
        times = [time]
        for _ in range(count - 1):
            time += self.pick([1, 1, 1, 1, 0, 0, 2, 4] if self.features.ties else [1, 1, 2, 4])
            times.append(time)
        return times

    def stream(self, times: Sequence[int], ordered: bool) -> list[dict[str, Any]]:
        """Bursts of one type, with few distinct values, so that comparisons go both ways."""
        types = [*self.types, "Z"] if self.percent(10) else self.types
        burstiness = self.pick([30, 60, 0, 80])
        nulls = self.pick([0, 0, 0, 10, 40]) if self.features.nulls else 0
        doubles = not self.lacking and self.percent(25)  # an INT column with floats in it is a DOUBLE column
        type_ = self.pick(types)
        widens = self.chance.integer(0, len(times)) if doubles and self.percent(50) else 0  # at this event
        events = []
        for place, time in enumerate(times):
            if not self.percent(burstiness):
                type_ = self.pick(types)
            event: dict[str, Any] = {"time": time, "type": None if nulls and self.percent(4) else type_}
            values = {
                "v": self.chance.integer(-2, 5) + (0.5 if doubles and place >= widens else 0),
                "w": self.chance.integer(-4, 8) / 4,
                "s": self.pick("xxyz"),
                "k": self.pick([1, 1, 1, 2]),
                "g": self.pick("pppq"),
            }
            if self.features.large:
                values["v"] = self.pick([2**63 - 1, -(2**63), 2**62 + 1, -1, 3])
                values["w"] = self.pick([1.7e308, 1e308, 2.0, -1.7e308, 5e-324, math.inf, -math.inf])
            for name, value in values.items():
                if not self.percent(nulls):
                    event[name] = value
                elif self.percent(70):
                    event[name] = float("nan") if name == "w" and self.percent(50) else None
            if ordered:
                event["o"] = self.chance.integer(0, 3)
            events.append(event)
        return events


def pattern_only(pattern: str) -> str:
    """The simplest workload with a pattern."""
    return f"RETURN COUNT(*) PATTERN {pattern} WITHIN 1 s"


def without(features: Features, *names: str) -> Features:
    """The same features, some of them switched off."""
    return replace(features, **dict.fromkeys(names, False))
