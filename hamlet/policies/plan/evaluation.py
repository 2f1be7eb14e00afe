"""The evaluation of policies over time-points, batch after batch: what `run` and `Monitor` are made of.

Contract
--------
**Order**: rows come in the order of time-points, within one by values; each as soon as its time-point is decided.
**Batches make no difference**: any cutting of the time-points gives the same rows in the same order.
**End**: behind the last time-point of a complete input stand others without tuples, each infinitely later. They are
made here with distances beyond all bounds of the formulas; rows at them are not given.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from hamlet.arrays import np, npt, pa
from hamlet.errors import Span
from hamlet.frontend.reports import Reports
from hamlet.policies.analysis.bounds import check_bounds
from hamlet.policies.analysis.comparisons import sort_key
from hamlet.policies.analysis.policy import Policy
from hamlet.policies.analysis.recursion import check_recursions
from hamlet.policies.analysis.rewriting import Rewriter, goal
from hamlet.policies.analysis.typecheck import recursion_types, types_within
from hamlet.policies.changes.made import rows_of, serves
from hamlet.policies.changes.running import FEW, MOST, Changing, Found, Tuples, goes_on, is_few, is_slow, is_time
from hamlet.policies.operators.node import NEVER, Node, Timeline, stamps_at
from hamlet.policies.operators.nodes import Event
from hamlet.policies.plan.planned_operands import Built, UnsafeError
from hamlet.policies.plan.planning import Planner
from hamlet.policies.relations.relation import Ints, Relation
from hamlet.policies.relations.values import POOLED, Pool, floats_of
from hamlet.policies.syntax import formula as mfotl
from hamlet.policies.syntax.diagnostics import PolicyError, deep_recursion
from hamlet.policies.syntax.formula import Type
from hamlet.policies.syntax.signature import PredicateSchema, Signature

Tables: TypeAlias = "Mapping[tuple[str, int], tuple[Ints, Sequence[pa.Array]]]"
_LARGEST_BOUND = 1 << 53
_ROWS_AT_ONCE = 1 << 18  # of an answer that is in pieces
_FEW_VALUES = 4096  # of the pool, which are never looked through
_MOST_UNSAFE = 20  # parts of one policy that are told
_LONG_TEXT = 400  # characters from which terms may be too deep for Python's own limit of recursion


@dataclass(slots=True)
class Goal:
    """One policy of an evaluation.

    Attributes
    ----------
    policy : Policy
    names : tuple of str
        The columns of its rows.
    types : tuple of str
    violations : bool
        Whether the rows break it.
    built : Built
    """

    policy: Policy
    names: tuple[str, ...]
    types: tuple[Type, ...]
    violations: bool
    built: Built


@dataclass(slots=True)
class Answer:
    """Rows of one policy.

    Attributes
    ----------
    times, points : int64 arrays of shape (rows,)
        Time-stamps and time-points.
    codes : list of int64 arrays of shape (rows,)
        An array per free variable, of the codes of its values.
    types : tuple of str
        Of the free variables.
    pool : Pool
        Whose codes they are.
    decided : (int, int64 array), optional
        The first time-point that is decided with this answer, and the time-stamps of all of them, where that is asked.
    rest : iterable of Answer
        The rows that follow, of an answer in pieces; made when they are asked for.
    """

    times: Ints
    points: Ints
    codes: list[Ints]
    types: tuple[Type, ...]
    pool: Pool
    decided: tuple[int, Ints] | None = None
    rest: Iterable[Answer] = ()

    def __len__(self) -> int:
        return len(self.points)

    @property
    def columns(self) -> list[list[Any]]:
        """Values, a list per free variable."""
        return [self.pool.decode(codes, kind) for codes, kind in zip(self.codes, self.types, strict=True)]

    def column(self, place: int, part: slice) -> pa.Array | list[Any]:
        """Values of a free variable in some rows; a list where one of them is an integer of more than 64 bits."""
        return self.pool.array(self.codes[place][part], self.types[place])

    def plain_column(self, place: int, part: slice) -> npt.NDArray[Any] | None:
        """Values of a free variable in some rows, None where they are texts or one has more than 64 bits."""
        return self.pool.plain(self.codes[place][part], self.types[place])


class Evaluation:
    """Some policies over one stream of time-points.

    Parameters
    ----------
    policies : sequence of Policy
        With equal signatures.
    per_second : int
        Ticks of the stream's time.
    negate : bool
        Whether rows are the valuations that do not satisfy a formula.

    Attributes
    ----------
    points : int
        Time-points so far.
    tells_points : bool
        Whether answers say which time-points they decide; False unless set.
    in_pieces : bool
        Whether answers of many rows are in pieces; False unless set.
    by_changes : bool
        Whether small batches may be worked out row by row; False unless set.

    Raises
    ------
    PolicyError
        With all policies' mistakes, where they cannot be evaluated.
    """

    def __init__(self, policies: Sequence[Policy], *, per_second: int = 1, negate: bool = False) -> None:
        self.policies = tuple(policies)
        self.negate = negate
        self.per_second = per_second
        self.pool = Pool()
        self.goals: list[Goal] = []
        self.points = 0
        self.tells_points = False
        self.in_pieces = False
        self._is_deep = any(len(policy.text) > _LONG_TEXT for policy in policies)
        problems = []
        planner = Planner(_merged(policies), per_second, self.pool)
        with deep_recursion():
            for policy in self.policies:
                reports = Reports(policy.text, policy.source)
                self._plan(policy, planner, reports)
                problems += reports.errors
        if problems:
            raise PolicyError(problems)
        self.nodes: list[Node] = _needed(planner.nodes, [goal.built.node for goal in self.goals])
        self._distance = planner.longest + 1
        self._depth = _nesting(self.nodes)
        self.by_changes = False
        self._changing: Changing | None = None
        self._small = 0  # batches in a row that had better be worked out row by row
        self._large = 0  # rows of large batches in a row, where small ones are
        self._changes = serves(self.nodes)
        self._constants = len(self.pool.values)  # whose codes the operators know
        self._most_values = _FEW_VALUES
        self._by_key: dict[tuple[str, int], set[int]] = {}  # the places that are read, by predicate
        for each in self.nodes:
            if isinstance(each, Event):
                self._by_key.setdefault(each.key, set()).update(each.places)

    @cached_property
    def _line(self) -> Timeline:
        """The time-points, where they are in columns."""
        return Timeline()

    def _plan(self, policy: Policy, planner: Planner, reports: Reports) -> None:
        asked, names, violations = goal(policy.formula, self.negate)
        check_bounds(asked, reports)
        unbounded = len(reports.errors)
        check_recursions(asked, reports)
        if len(reports.errors) > unbounded:
            return
        types = recursion_types(policy.formula, policy.signature)
        formula = Rewriter(types).rewrite(asked)
        try:
            built = planner.build(formula)
        except UnsafeError as error:
            hint = error.hint
            if not (unbounded or self.negate or violations) and self._negation_works(policy, planner, types):
                hint = "its negation can be monitored: ask for it (--negate, negate=True), or let it begin with ALWAYS"
            reports.error(error.message, error.span, hint)
            if hint == error.hint:
                self._others(policy, asked, error.span, reports)
            return
        if unbounded:
            return
        if planner.longest > _LARGEST_BOUND:
            reports.error("a bound of an interval is too large", policy.formula.span, "use * for no bound")
            return
        built = planner.keep(built, names)
        self.goals.append(Goal(policy, names, built.node.types, violations, built))

    def _others(self, policy: Policy, asked: mfotl.Formula, span: Span, reports: Reports) -> None:
        """Report what else has no finite relation: with a predicate in the place of each part that is found."""
        signature, stand_in = policy.signature, None
        for count in range(_MOST_UNSAFE):
            part = _at(asked, span, stand_in)
            if part is None:
                return
            names, types = mfotl.free_variables(part), types_within(asked, part, signature)
            known = PredicateSchema(f"\0{count}", types, names)
            signature = Signature((*signature, known))
            stand_in = mfotl.Predicate(known.name, tuple(map(mfotl.Variable, names)), span=span)
            asked = mfotl.replaced(asked, part, stand_in)
            formula = Rewriter(recursion_types(asked, signature)).rewrite(asked)
            try:
                Planner(signature, self.per_second, Pool()).build(formula)
                return
            except UnsafeError as error:
                if error.span != span:
                    reports.error(error.message, error.span, error.hint)
                span = error.span

    def _negation_works(self, policy: Policy, planner: Planner, types: Mapping[int, tuple[Type, ...]]) -> bool:
        try:
            planner.build(Rewriter(types).rewrite(goal(policy.formula, True)[0]))
        except UnsafeError:
            return False
        return True

    # ------------------------------------------------------------------------------------------ running

    @property
    def parts(self) -> list[Node]:
        """All operators that have a state, those within others, too."""
        return [part for node in self.nodes for part in node.parts]

    @property
    def last_time(self) -> int | None:
        """The time-stamp of the last time-point, None where there is none."""
        if self._changing is not None:
            return self._changing.last_time
        return int(self._line.times[-1]) if len(self._line.times) else None

    @property
    def wanted(self) -> frozenset[tuple[str, int]]:
        """The predicates that are read, by name and arity."""
        return frozenset(self._by_key)

    def encode(self, tables: Tables, first: int) -> dict[tuple[str, int], tuple[list[Ints], Ints]]:
        """Tables of values as tables of codes."""
        found = {}
        signature = _merged(self.policies)
        for key, (points, fields) in tables.items():
            if key in self._by_key and len(points):
                types, read = signature[key].types, self._by_key[key]
                places = np.asarray(points, np.int64) + first
                columns = [
                    self.pool.encode(each, kind) if place in read else places  # any numbers: nobody reads them
                    for place, (each, kind) in enumerate(zip(fields, types, strict=True))
                ]
                found[key] = columns, places
        return found

    def feed(self, times: Ints, tables: Tables, bound: int | None = None) -> list[Answer]:
        """Take time-points; give the rows that are decided by them, per policy.

        Parameters
        ----------
        times : int64 array of shape (points,)
            Not decreasing, within a batch and after the ones before.
        tables : mapping of (str, int) to (int64 array, sequence of pyarrow.Array)
            For each predicate the time-point of each tuple, counted from the first of `times`; and its fields.
        bound : int, optional
            A time that no later time-point is before.
        """
        rows = len(times) + sum(len(points) for points, _ in tables.values())
        if self._serves_changes(rows):
            return self._fed_by_row(times, tables, bound)
        started = time.thread_time()
        line = self._line
        line.fresh = line.known
        line.tables = self.encode(tables, line.known)
        line.extend(np.asarray(times, np.int64))
        line.known += len(times)
        self.points = line.known
        if len(times):
            line.bound = max(line.bound, int(times[-1]))
        if bound is not None:
            line.bound = max(line.bound, bound)
        found = self._advance()
        if rows > FEW and not is_slow(rows, time.thread_time() - started):
            self._small = 0
        return found

    def _serves_changes(self, rows: int) -> bool:
        """Whether a batch of so many rows is worked out row by row; what is kept is moved to where it is needed."""
        if self._changing is not None:
            self._large = 0 if rows <= MOST else self._large + rows
            if not self._large or goes_on(self._large, self._changing.rows):
                return True
            self.settle()
            return False
        if not (self.by_changes and self._changes) or self.tells_points or not rows:
            return False
        kept = self.kept_rows
        self._small = self._small + 1 if is_few(rows, kept) else 0
        if not self._small or not is_time(self._small, kept):
            return False
        self._large = 0
        self._changing = Changing(self.nodes, [goal.built.node for goal in self.goals], self._line)
        return True

    @property
    def goes_by_changes(self) -> bool:
        """Whether small batches are worked out row by row."""
        return self._changing is not None

    def feed_rows(self, times: Sequence[int], tuples: Tuples, bound: int | None) -> list[Found]:
        """Take a small batch whose tuples are codes, where the evaluation goes by changes; the rows, as `Changing`."""
        changing = self._changing
        assert changing is not None
        found = changing.feed(times, tuples, bound)
        self.points = changing.known
        return found

    @property
    def has_idle_values(self) -> bool:
        """Whether most values of the pool may be those of rows that are gone."""
        return len(self.pool.values) > self._most_values

    def forget_values(self) -> None:
        """Let the pool forget the values that nothing here has; answers from before know their values no more."""
        self.settle()
        used = np.zeros(len(self.pool.values), np.bool_)
        used[: self._constants] = True
        for node in self.parts:
            node.settle()
            for rows, types in node.relations():
                for column in _pooled(rows, types):
                    used[column[column >= POOLED] - POOLED] = True
        fresh = self.pool.keep(used)
        for node in self.parts:
            node.recode(lambda rows, types: _recoded(rows, types, fresh))
        self._most_values = len(self.pool.values) + max(_FEW_VALUES, len(self.pool.values), self.kept_rows)

    def settle(self) -> None:
        """Let `nodes` have all that is kept."""
        if self._changing is not None:
            self._changing.give_back(self._line)
            self._changing, self._small = None, 0

    def go_by_columns(self) -> None:
        """Work out all batches in columns from now on."""
        self.settle()
        self._changes = False

    def _fed_by_row(self, times: Ints, tables: Tables, bound: int | None) -> list[Answer]:
        changing = self._changing
        assert changing is not None
        tuples = {
            key: list(zip(points.tolist(), rows_of(Relation(columns, points, points)), strict=True))
            for key, (columns, points) in self.encode(tables, changing.known).items()
        }
        found = self.feed_rows(np.asarray(times, np.int64).tolist(), tuples, bound)
        return [self._found_answer(each, goal.types) for each, goal in zip(found, self.goals, strict=True)]

    def _found_answer(self, found: Found, types: tuple[Type, ...]) -> Answer:
        counts = np.array([len(rows) for _, _, rows in found], np.int64)
        times = np.repeat(np.array([time for time, _, _ in found], np.int64), counts)
        points = np.repeat(np.array([point for _, point, _ in found], np.int64), counts)
        codes = [
            np.array([row[place] for _, _, rows in found for row in rows], np.int64) for place in range(len(types))
        ]
        return self._ordered(times, points, codes, types)

    def close(self) -> list[Answer]:
        """The end of a complete input: the rows that it decides."""
        self.settle()
        line = self._line
        real = line.known
        last = max(line.bound, 0) if real == 0 or not len(line.times) else int(line.times[-1])
        extra = self._depth + 1
        line.tables, line.fresh = {}, real
        beyond = last + self._distance * np.arange(1, extra + 1, dtype=np.int64)
        line.extend(beyond)
        line.known += extra
        line.bound = NEVER
        answers = self._advance(real)
        self.points = real
        return answers

    def _advance(self, limit: int | None = None) -> list[Answer]:
        line = self._line
        before = [goal.built.node.done for goal in self.goals]
        with deep_recursion() if self._is_deep else nullcontext():
            for node in self.nodes:
                node.step(line)
        answers = [self._answer(goal.built.node, goal.types, limit) for goal in self.goals]
        if self.tells_points:
            for goal, first, answer in zip(self.goals, before, answers, strict=True):
                end = min(goal.built.node.done, line.known if limit is None else limit)
                answer.decided = first, line.times[first - line.base : max(first, end) - line.base].copy()
        line.tables = {}
        self._forget()
        return answers

    def _forget(self) -> None:
        """Drop the time-stamps that nobody needs any more."""
        line = self._line
        oldest = min((each.oldest for each in self.nodes if each.oldest is not None), default=line.known)
        oldest = min(oldest, *(goal.built.node.done for goal in self.goals), line.known - 1)
        if oldest - line.base > len(line.times) // 2:
            line.forget(oldest)

    def _answer(self, node: Node, types: tuple[Type, ...], limit: int | None) -> Answer:
        rows = node.output
        if limit is not None:
            rows = rows.clip(0, limit)
        if self.in_pieces and not self.tells_points:
            stamps, base = self._line.times, self._line.base  # the line may have gone on when the rest is asked for
            pieces = (self._expanded(part, types, stamps, base) for part in _pieces(rows, _ROWS_AT_ONCE))
            first = next(pieces)
            first.rest = pieces
            return first
        return self._expanded(rows, types, self._line.times, self._line.base)

    def _expanded(self, rows: Relation, types: tuple[Type, ...], stamps: Ints, base: int) -> Answer:
        """The rows at each time-point of some periods; later time-points may be known by then."""
        lengths = rows.last - rows.first + 1
        if len(rows) and int(lengths.max()) > 1:
            which = np.repeat(np.arange(len(rows)), lengths)
            begin = np.cumsum(lengths) - lengths
            points = rows.first[which] + (np.arange(len(which)) - begin[which])
            columns = [column[which] for column in rows.columns]
        else:
            points, columns = rows.first, rows.columns
        return self._ordered(stamps_at(points, stamps, base) if len(points) else points, points, columns, types)

    def _ordered(self, times: Ints, points: Ints, columns: list[Ints], types: tuple[Type, ...]) -> Answer:
        if len(points) > 1:
            order = np.lexsort([*(self._ranks(*each) for each in zip(columns[::-1], types[::-1], strict=True)), points])
            times, points, columns = times[order], points[order], [column[order] for column in columns]
        return Answer(times, points, columns, types, self.pool)

    def _ranks(self, codes: Ints, kind: Type) -> Ints:
        """Numbers that order a column as its values."""
        if kind == "bool" or (kind == "int" and int(codes.max()) < 1 << 62):
            return codes
        kinds, places = np.unique(codes, return_inverse=True)
        if kind == "float":
            floats = np.argsort(np.argsort(floats_of(kinds)))
            return np.asarray(floats[places], np.int64)
        values = self.pool.decode(kinds, kind)
        order = sorted(range(len(values)), key=lambda place: sort_key((values[place],)))
        ranks = np.empty(len(values), np.int64)
        ranks[order] = np.arange(len(values))
        return ranks[places]

    @property
    def nbytes(self) -> int:
        """Bytes that are kept between batches, an estimate."""
        if self._changing is not None:
            return self._changing.nbytes + 120 * len(self.pool.values)
        return sum(node.nbytes for node in self.nodes) + self._line.nbytes + 120 * len(self.pool.values)

    @property
    def kept_rows(self) -> int:
        """Periods that are kept between batches."""
        if self._changing is not None:
            return self._changing.rows
        return sum(node.indexed_rows + sum(map(len, node.kept.values())) for node in self.parts)


def _pooled(rows: Relation, types: Sequence[Type | None]) -> list[Ints]:
    """The columns whose values may be in the pool."""
    return [column for column, kind in zip(rows.columns, types, strict=True) if kind in ("int", "string")]


def _recoded(rows: Relation, types: Sequence[Type | None], fresh: Ints) -> Relation:
    """A relation with new codes of pooled values."""
    columns = []
    for column, kind in zip(rows.columns, types, strict=True):
        places = column >= POOLED if kind in ("int", "string") else np.zeros(0, np.bool_)
        if places.any():
            column = column.copy()
            column[places] = fresh[column[places] - POOLED]
        columns.append(column)
    return Relation(columns, rows.first, rows.last)


def _pieces(rows: Relation, most: int) -> Iterator[Relation]:
    """Periods cut into stretches of time-points with at most so many rows each, or one time-point; at least one."""
    if not len(rows) or int((rows.last - rows.first).sum()) + len(rows) <= most:
        yield rows
        return
    order = np.argsort(rows.first)
    rows = rows.take(order)
    low, ends = int(rows.first[0]), np.sort(rows.last)
    changes = np.unique(np.concatenate([rows.first, ends + 1]))  # between them the number of rows is the same
    counts = np.searchsorted(rows.first, changes, "right") - np.searchsorted(ends, changes, "left")
    high = int(ends[-1]) + 1
    while low < high:
        place = int(np.searchsorted(changes, low, "right")) - 1
        room, end = most, low
        while end < high:
            count = int(counts[place])
            until = int(changes[place + 1])
            taken = until - end if not count else min(until - end, room // count)
            end += taken
            room -= taken * count
            if end < until:
                break
            place += 1
        end = max(end, low + 1)
        begun = int(np.searchsorted(rows.first, end, "left"))
        part = rows.cut(0, begun)
        yield part.clip(low, end)
        left = rows.last >= end
        if not left.all():
            rows = rows.take(left)
        low = end


def _needed(nodes: list[Node], roots: list[Node]) -> list[Node]:
    """The nodes below some roots, children before parents; attempts that were given up leave others."""
    wanted: set[int] = set()
    todo = list(roots)
    while todo:
        node = todo.pop()
        if id(node) not in wanted:
            wanted.add(id(node))
            todo.extend(node.children)
    return [node for node in nodes if id(node) in wanted]


def _nesting(nodes: Sequence[Node]) -> int:
    """How many operators that look at other time-points are nested; children come before parents."""
    depths: dict[int, int] = {}
    for node in nodes:
        depths[id(node)] = node.nesting + max((depths[id(child)] for child in node.children), default=0)
    return max(depths.values(), default=0)


def _at(formula: mfotl.Formula, span: Span, stand_in: mfotl.Formula | None) -> mfotl.Formula | None:
    """The part of a formula that a message about a place means: what is around it where a predicate stands in for it.

    The place of a negation may be that of what it negates.
    """
    for each in mfotl.descendants(formula):
        below = next((child for child in mfotl.children(each) if child.span == span), None)
        if below is not None:
            return each if below is stand_in or isinstance(each, mfotl.Not) else below
        if each.span == span and each is not stand_in:
            return each
    return None


def _merged(policies: Sequence[Policy]) -> Signature:
    return policies[0].signature
