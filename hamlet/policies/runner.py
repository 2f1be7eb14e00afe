"""Policies over time-points, their rows as Arrow batches: what the command line and the tasks of a job run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

from hamlet.arrays import np, pa
from hamlet.errors import DataError, MemoryLimitError, option
from hamlet.output.plain_rows import Rows
from hamlet.policies.analysis.comparisons import sort_key
from hamlet.policies.analysis.policy import Policy
from hamlet.policies.analysis.rewriting import goal as asked_of
from hamlet.policies.changes.running import Tuples
from hamlet.policies.logs.batching import gathered
from hamlet.policies.logs.reader import LogChunk
from hamlet.policies.plan.evaluation import Answer, Evaluation
from hamlet.policies.relations.relation import TooManyRowsError, room
from hamlet.policies.rows import MOST_ROWS, batch_of, batch_with_points, plain_rows, schema_of
from hamlet.policies.syntax.columns import column_names
from hamlet.policies.syntax.printing import printed_order
from hamlet.policies.verdicts.modes import Mode
from hamlet.runtime.sizes import Size, bytes_of, size_text

if TYPE_CHECKING:
    from hamlet.policies.verdicts.automata import VerdictRunner

Found = TypeVar("Found")


class PolicyRunner:
    """Some policies over one stream.

    Parameters
    ----------
    policies : sequence of Policy
        With equal signatures.
    time_type : pyarrow.DataType, optional
        Of the time in rows; int64 by default.
    per_second : int
        Ticks of the stream's time.
    negate : bool
        Whether rows satisfy the negation.
    open_end : bool
        Whether the stream may go on behind its end.
    max_memory : int, str or None
        The most that may be kept between chunks.
    every_time_point : bool
        Whether batches have a column more, `HOLDS`, and time-points without rows a row in which it is False.
    arrow : bool
        Whether rows are Arrow's; else they are plain ones (`hamlet.output.plain_rows`) where that can be.

    Attributes
    ----------
    columns : list of list of str
        The free variables of each policy, as its rows have them.
    tuples : list of tuple of str
        The free variables of each policy, in the order in which MonPoly prints their values.
    violations : list of bool
        Whether rows break the policy.
    events : int
        Tuples read.

    Raises
    ------
    PolicyError
        If a policy cannot be monitored.
    """

    def __init__(
        self,
        policies: Sequence[Policy],
        time_type: pa.DataType | None,
        per_second: int,
        *,
        negate: bool = False,
        open_end: bool = False,
        max_memory: Size | None = None,
        every_time_point: bool = False,
        arrow: bool = True,
    ) -> None:
        self._arrow = arrow or time_type is not None
        self._evaluation = Evaluation(policies, per_second=per_second, negate=negate)
        self._evaluation.tells_points = every_time_point
        self._evaluation.in_pieces = True
        goals = self._evaluation.goals
        self._time_type = time_type
        self._open_end = open_end
        self._limit = bytes_of(max_memory)
        self._policies = policies
        self.events = 0
        columns = [dict(zip(goal.names, column_names(goal.names), strict=True)) for goal in goals]
        self.tuples: list[tuple[str, ...]] = [
            tuple(named[name] for name in printed_order(asked_of(each.formula, negate)[0]))
            for each, named in zip(policies, columns, strict=True)
        ]
        self.violations = [goal.violations for goal in goals]
        self.columns = [[named[name] for name in goal.names] for goal, named in zip(goals, columns, strict=True)]

    @property
    def names(self) -> list[list[str]]:
        """The columns of each policy's rows."""
        return [["time", "time_point", *each] for each in self.columns]

    @cached_property
    def schemas(self) -> list[pa.Schema]:
        """Of each policy's rows: time, time_point and the free variables."""
        kind = pa.int64() if self._time_type is None else self._time_type
        goals = self._evaluation.goals
        return [schema_of(names, goal.types, kind) for names, goal in zip(self.columns, goals, strict=True)]

    @property
    def predicates(self) -> frozenset[tuple[str, int]]:
        """Name and arity of the predicates that are read."""
        return self._evaluation.wanted

    def run(self, chunks: Iterable[LogChunk]) -> Iterator[tuple[int, Rows]]:
        """The rows of all policies, each with the place of its policy, as they are decided.

        The numbers of time-points are those of the chunks: a stream that begins later begins with that number.

        Raises
        ------
        MemoryLimitError
            If more has to be kept than may be.
        """
        first: int | None = None
        for chunk in gathered(chunks, self._evaluation):
            first = chunk.first if first is None else first
            self._check_order(chunk)
            self.events += sum(len(points) for points, _ in chunk.relations.values())
            yield from self._rows(self._worked(self._evaluation.feed, chunk.times, chunk.relations), first)
            self._forget_values()
            self._check_memory()
        if not self._open_end and self.points:
            yield from self._rows(self._worked(self._evaluation.close), first or 0)

    def _check_order(self, chunk: LogChunk) -> None:
        """A stream that goes on from a saved state goes on behind it."""
        last = self._evaluation.last_time
        if last is not None and len(chunk.times) and int(chunk.times[0]) < last:
            raise DataError(
                f"the input begins at time {int(chunk.times[0])}, and what was loaded ends at {last}\n"
                "hint: go on with the events that follow those of the saved state"
            )

    def feed(self, chunks: Sequence[LogChunk], bound: int | None, beside: int = 0) -> Iterator[tuple[int, Rows]]:
        """The rows that more time-points decide; of a stream that begins with time-point 0.

        Parameters
        ----------
        chunks : sequence of LogChunk
        bound : int, optional
            A time that no later time-point is before.
        beside : int
            Bytes of events that are held back, which count against the limit, too.
        """
        self._evaluation.by_changes = True
        for chunk in chunks:
            self.events += sum(len(points) for points, _ in chunk.relations.values())
            yield from self._rows(self._worked(self._evaluation.feed, chunk.times, chunk.relations), 0)
        if bound is not None:
            yield from self._rows(self._worked(self._evaluation.feed, np.zeros(0, np.int64), {}, bound), 0)
        self._forget_values()
        self._check_memory(beside)

    def feed_rows(
        self, times: Sequence[int], tuples: Tuples, bound: int, beside: int, present: Callable[[int], Any]
    ) -> list[dict[str, Any]]:
        """The rows, as dicts, that few more time-points decide; as `feed`, of an evaluation that goes by changes.

        `present` gives times as rows show them.
        """
        rows: list[dict[str, Any]] = []
        value = self._evaluation.pool.value
        for place, found in enumerate(self._worked(self._evaluation.feed_rows, times, tuples, bound)):
            if not found:
                continue
            types, names = self._evaluation.goals[place].types, self.columns[place]
            policy = self._policies[place].name
            for time, point, valuations in found:
                decoded = [tuple(map(value, row, types)) for row in valuations]
                if len(decoded) > 1:
                    decoded.sort(key=sort_key)
                for values in decoded:
                    row = {"policy": policy, "time": present(time), "time_point": point}
                    row.update(zip(names, values, strict=True))
                    rows.append(row)
        if tuples:
            self.events += sum(map(len, tuples.values()))
        self._check_memory(beside)
        return rows

    def _forget_values(self) -> None:
        """Let values go that came in rows that are gone; no answer is open, and no event waits as codes."""
        if self._evaluation.has_idle_values:
            self._evaluation.forget_values()

    def close(self) -> Iterator[tuple[int, Rows]]:
        """The rows that the end of the stream decides; none where it is open."""
        if not self._open_end and self.points:
            yield from self._rows(self._worked(self._evaluation.close), 0)

    @property
    def points(self) -> int:
        """Time-points so far."""
        return self._evaluation.points

    @property
    def nbytes(self) -> int:
        """Bytes that are kept between batches, an estimate."""
        return self._evaluation.nbytes

    @property
    def evaluation(self) -> Evaluation:
        """The operators."""
        return self._evaluation

    def _rows(self, answers: Sequence[Answer], first: int) -> Iterator[tuple[int, Rows]]:
        for place, answer in enumerate(answers):
            if answer.decided is not None:
                if len(answer.decided[1]):
                    yield place, batch_with_points(answer, self.schemas[place], first)
                continue
            for part in chain((answer,), answer.rest):
                for begin in range(0, len(part), MOST_ROWS):
                    some = slice(begin, begin + MOST_ROWS)
                    plain = None if self._arrow else plain_rows(part, self.columns[place], first, some)
                    yield place, batch_of(part, self.schemas[place], first, some) if plain is None else plain

    @property
    def kept_rows(self) -> int:
        """Periods that are kept between batches."""
        return self._evaluation.kept_rows

    def _worked(self, call: Callable[..., list[Found]], *arguments: Any) -> list[Found]:
        """What a call of the evaluation gives; a relation that would pass the limit while it is made is told."""
        try:
            with room(self._limit):
                return call(*arguments)
        except TooManyRowsError as error:
            raise MemoryLimitError(
                f"the run stops, since it needs more memory than its limit, {size_text(self._limit or 0)}; of "
                f"{self._named()} a conjunction has more than {error.args[0]:,} rows in one batch of events\n"
                "hint: relate the two sides of the AND by more variables, or raise the limit "
                f"({option('max_memory')})"
            ) from None

    def _named(self) -> str:
        names = " and ".join(f"'{policy.name}'" for policy in self._policies)
        return f"polic{'y' if len(self._policies) == 1 else 'ies'} {names}"

    def _check_memory(self, beside: int = 0) -> None:
        if self._limit is None or self._evaluation.nbytes + beside <= self._limit:
            return
        self._evaluation.go_by_columns()  # they need less
        if self._evaluation.nbytes + beside <= self._limit:
            return
        node = max(self._evaluation.nodes, key=lambda each: each.nbytes)
        kind = type(node).__name__.upper()
        most = f"of {self._named()} an operator ({kind}) holds the most, {size_text(node.nbytes)}"
        remedy = "shorten the intervals (hamlet explain says what each keeps)"
        if beside > self._evaluation.nbytes:
            most = f"events held back for earlier ones take {size_text(beside)}"
            remedy = f"shorten {option('lateness')}"
        raise MemoryLimitError(
            f"the run stops, since it needs more memory than its limit, {size_text(self._limit)}; {most}\n"
            f"hint: {remedy}, or raise the limit ({option('max_memory')})"
        )


def runner_of(
    policies: Sequence[Policy],
    automaton: Mode | None,
    time_type: pa.DataType | None,
    per_second: int,
    *,
    every_time_point: bool = False,
    **options: Any,
) -> PolicyRunner | VerdictRunner:
    """What runs policies: to valuations, or to verdicts where there is a mode of an automaton; as `PolicyRunner`."""
    if automaton is None:
        return PolicyRunner(policies, time_type, per_second, every_time_point=every_time_point, **options)
    from hamlet.policies.verdicts.automata import VerdictRunner  # whose automata nothing else needs

    return VerdictRunner(policies, automaton, time_type, per_second, **options)
