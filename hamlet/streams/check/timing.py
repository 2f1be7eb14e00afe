"""The pacing of every clause: read where it is written, found out where it is not, and checked against all accesses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hamlet.frontend.reports import Reports
from hamlet.streams.check.declarations import Declared, Table
from hamlet.streams.check.graphs import components
from hamlet.streams.check.pacing import (
    SOME_PERIOD,
    MixedError,
    Paced,
    Paces,
    TooComplexError,
    both,
    either,
    implies,
    pace_text,
)
from hamlet.streams.check.unresolved import ClauseDraft, Node
from hamlet.streams.program.ir import Access, EventPacing, PeriodicPacing
from hamlet.streams.syntax import tree as s


@dataclass
class Clauses:
    """The clauses of one output as nodes, and their pacing as it is found.

    Attributes
    ----------
    stream : Declared
    spawn, close : ClauseDraft or None
    evals : list of ClauseDraft
    spawn_pace, close_pace : Pacing or None
        None where there is no such clause, or after a mistake.
    eval_paces : list of (Pacing or None)
        One for each eval.
    """

    stream: Declared
    spawn: ClauseDraft | None
    evals: list[ClauseDraft]
    close: ClauseDraft | None
    spawn_pace: Paced = None
    close_pace: Paced = None
    eval_paces: list[Paced] = None  # type: ignore[assignment]  # set by `find_pacing`

    def all(self) -> Iterator[tuple[ClauseDraft, s.Pace | None, Paced]]:
        """Every clause with what is written and what was found of its pacing."""
        output = self.stream.output
        assert output is not None
        if self.spawn is not None and output.spawn is not None:
            yield self.spawn, output.spawn.pace, self.spawn_pace
        for draft, clause, pace in zip(self.evals, output.evals, self.eval_paces, strict=True):
            yield draft, clause.pace, pace
        if self.close is not None and output.close is not None:
            yield self.close, output.close.pace, self.close_pace


def find_pacing(table: Table, clauses: dict[int, Clauses], reports: Reports) -> dict[int, Paced]:
    """Find the pacing of all clauses.

    Parameters
    ----------
    table : Table
        All names.
    clauses : dict of int to Clauses
        By number of the output; their pacing is filled in.
    reports : Reports
        Receives the mistakes.

    Returns
    -------
    dict of int to Pacing or None
        When each stream is extended; None after a mistake.
    """
    known: dict[int, Paced] = {each.id: EventPacing((1 << each.id,)) for each in table.streams if each.output is None}
    timing = _Timing(table, reports, known)
    edges = {number: timing.sources(each) for number, each in clauses.items()}
    for group in components(list(clauses), lambda number: edges.get(number, ())):
        members = [clauses[number] for number in group]
        circular = len(group) > 1 or group[0] in edges[group[0]]
        timing.solve(members, circular)
    for each in clauses.values():
        timing.spawn_and_close(each)
    for each in clauses.values():
        for draft, written, pace in each.all():
            timing.check(each, draft, written, pace)
    return known


class _Timing:
    def __init__(self, table: Table, reports: Reports, known: dict[int, Paced]) -> None:
        self.table = table
        self.reports = reports
        self.known = known
        self.paces = Paces(table, reports, known)
        self.failed: set[int] = set()  # streams with a mistake in their pacing

    # ------------------------------------------------------------------------------------------ streams

    def sources(self, clauses: Clauses) -> list[int]:
        """The outputs whose pacing decides about that of this one."""
        output = clauses.stream.output
        assert output is not None
        if any(clause.pace is not None for clause in output.evals):
            return [number for clause in output.evals if clause.pace for number in self.paces.named(clause.pace)]
        reads = (node for draft in clauses.evals for node in draft.nodes() if _binds(node))
        return list(dict.fromkeys(node.stream.id for node in reads if node.stream and node.stream.output))

    def solve(self, members: list[Clauses], circular: bool) -> None:
        """Find the pacing of streams that depend on each other, all others being known."""
        written = [each for each in members if _written(each)]
        if written and circular:
            for each in members:
                self.known[each.stream.id] = None
                self.failed.add(each.stream.id)
                each.eval_paces = [None] * len(each.evals)
            names = ", ".join(each.stream.name for each in members)
            self.reports.error(f"the pacing of {names} refers to itself", members[0].stream.span, "name inputs instead")
            return
        if written:
            self._from_annotations(members[0])
            return
        pace: Paced = None
        failed = False
        group = {member.stream.id for member in members}
        for each in members:
            if len(each.evals) > 1:
                self._need_annotations(each)
                failed = True
                continue
            nodes = [node for node in each.evals[0].nodes() if not (node.stream and node.stream.id in group)]
            shared = self._shared(nodes)
            failed |= shared is _MISTAKE
            if isinstance(shared, _Mistake):
                continue
            try:
                pace = both(pace, shared)
            except MixedError:
                message = f"{each.stream.name} reads what is extended by events and what is periodic"
                self.reports.error(
                    message, each.stream.span, "read one of them with .hold(or: ...) and state the pacing"
                )
                failed = True
        for each in members:
            if failed:
                self.failed.add(each.stream.id)
                each.eval_paces = [None] * len(each.evals)
                self.known[each.stream.id] = None
                continue
            settled = self._stated(pace, each.evals[0], each.stream, None)
            each.eval_paces = [settled]
            self.known[each.stream.id] = settled

    def _from_annotations(self, clauses: Clauses) -> None:
        """The pacing of a stream whose evals say it."""
        stream, output = clauses.stream, clauses.stream.output
        assert output is not None
        if any(clause.pace is None for clause in output.evals):
            self._need_annotations(clauses)
            clauses.eval_paces = [None] * len(clauses.evals)
            self.known[stream.id] = None
            self.failed.add(stream.id)
            return
        paces = [self.paces.read(clause.pace, "eval", stream) for clause in output.evals if clause.pace is not None]
        clauses.eval_paces = paces
        self.known[stream.id] = self._united(clauses, paces)
        if self.known[stream.id] is None:
            self.failed.add(stream.id)

    def _united(self, clauses: Clauses, paces: list[Paced]) -> Paced:
        """When a stream of several evals is extended."""
        whole = paces[0]
        for pace, draft in zip(paces[1:], clauses.evals[1:], strict=True):
            if whole is None or pace is None:
                return None
            if isinstance(whole, EventPacing) and isinstance(pace, EventPacing):
                try:
                    whole = either(whole, pace)
                except TooComplexError:
                    self.reports.error("this pacing is too complex", draft.span, "use fewer evals")
                    return None
            elif whole != pace:
                both_kinds = isinstance(whole, EventPacing) != isinstance(pace, EventPacing)
                what = "event-driven and periodic" if both_kinds else "at different frequencies"
                hint = "all evals of a stream are event-driven, or periodic at one frequency"
                self.reports.error(f"the evals of {clauses.stream.name} are {what}", draft.span, hint)
                return None
        return whole

    def _need_annotations(self, clauses: Clauses) -> None:
        output = clauses.stream.output
        assert output is not None
        for clause in output.evals:
            if clause.pace is None:
                hint = "write eval @1Hz when ..., or eval @(a && b) when ..."
                self.reports.error("each of several evals states its pacing", clause.span, hint)

    def spawn_and_close(self, clauses: Clauses) -> None:
        """The pacing of the spawn and close clauses of a stream; all streams are known."""
        output = clauses.stream.output
        assert output is not None
        if clauses.spawn is not None and output.spawn is not None:
            clauses.spawn_pace = self._of_clause(clauses.spawn, output.spawn.pace, clauses.stream)
        if clauses.close is not None and output.close is not None:
            clauses.close_pace = self._of_clause(clauses.close, output.close.pace, clauses.stream)

    def _of_clause(self, draft: ClauseDraft, written: s.Pace | None, stream: Declared) -> Paced:
        if written is not None:
            return self.paces.read(written, draft.word, stream)
        shared = self._shared(draft.nodes())
        return None if isinstance(shared, _Mistake) else self._stated(shared, draft, stream, draft.word)

    def _stated(self, pace: Paced, draft: ClauseDraft, stream: Declared, word: str | None) -> Paced:
        """A pacing that was found out; a mistake where none was, and None."""
        if pace is not None and pace != SOME_PERIOD:
            return pace
        if any(node.kind == "wrong" for node in draft.nodes()):
            return None
        what = stream.name if word is None else f"the {word} of {stream.name}"
        example = "@1Hz" if pace == SOME_PERIOD else self._example()
        where = f"output {stream.name} {example} := ..." if word is None else f"{word} {example} ..."
        if word is None and stream.output is not None and (stream.trigger or stream.output.spawn is not None):
            where = (
                f"trigger {example} ..." if stream.trigger and stream.output.spawn is None else f"eval {example} ..."
            )
        window = next((node for node in draft.nodes() if self._needed(node) == SOME_PERIOD), None)
        if window is not None:
            message = f"a window over a duration stands in a periodic stream, and {what} has no frequency"
            self.reports.error(message, window.span, f"state it: {where}, or use over_discrete: a number of values")
        else:
            message = f"{what} has nothing that says when it is evaluated"
            self.reports.error(message, draft.span, f"state it: {where}")
        return None

    def _example(self) -> str:
        first = next((each.name for each in self.table.streams if each.output is None), None)
        return f"@{first}" if first else "@1Hz"

    # ------------------------------------------------------------------------------------------- clauses

    def _shared(self, nodes: Iterable[Node]) -> Paced | _Mistake:
        """When all that some nodes read synchronously is there."""
        pace: Paced = None
        first: Node | None = None
        for node in nodes:
            needed = self._needed(node)
            if isinstance(needed, _Mistake):
                return _MISTAKE
            if needed is None:
                continue
            try:
                pace = both(pace, needed)
            except MixedError:
                assert first is not None
                self._mixed(first, node)
                return _MISTAKE
            except TooComplexError:
                self.reports.error("the pacing of this is too complex", node.span, "state it behind @")
                return _MISTAKE
            first = first or node
        return pace

    def _needed(self, node: Node) -> Paced | _Mistake:
        """What a node demands of the pacing of its clause."""
        if node.kind == "window" and node.window is not None and node.window.count is None:
            return SOME_PERIOD
        if not _binds(node) or node.stream is None:
            return None
        if node.stream.id in self.failed:
            return _MISTAKE
        pace = self.known.get(node.stream.id)
        return pace if pace is not None else _MISTAKE

    def _mixed(self, first: Node, second: Node) -> None:
        one, other = self._needed(first), self._needed(second)
        assert not isinstance(one, _Mistake)
        assert not isinstance(other, _Mistake)
        if isinstance(one, PeriodicPacing) and isinstance(other, PeriodicPacing):
            message = f"{self._quote(first)} and {self._quote(second)} count their periods from different beginnings"
            hint = "write @Global(...) for the start, or read one of them with .hold(or: ...)"
        elif SOME_PERIOD in (one, other):
            read = second if one == SOME_PERIOD else first
            message = "a window over a duration stands in a periodic stream"
            hint = f"state the pacing, @1Hz, and read {self._read_name(read)}.hold(or: ...), or use over_discrete"
            second = first if one == SOME_PERIOD else second
        else:
            message = f"{self._quote(first)} is {self._kind(one)}, and {self._quote(second)} {self._kind(other)}"
            hint = f"read one of them with .hold(or: ...), as in {self._read_name(second)}.hold(or: ...)"
        self.reports.error(message, second.span, hint)

    def _quote(self, node: Node) -> str:
        return self.reports.quote(node.span)

    def _kind(self, pace: Paced) -> str:
        return "periodic" if isinstance(pace, PeriodicPacing) else "extended by events"

    def _read_name(self, node: Node) -> str:
        assert node.stream is not None
        names = ", ".join(node.stream.parameters)
        return f"{node.stream.name}({names})" if names else node.stream.name

    def check(self, clauses: Clauses, draft: ClauseDraft, written: s.Pace | None, pace: Paced) -> None:
        """Check every access of a clause against its pacing."""
        if pace is None:
            return
        for node in draft.nodes():
            target = node.stream
            if target is None or target.id in self.failed:
                continue
            other = self.known.get(target.id)
            if node.kind == "read" and node.access in (Access.GET, Access.FRESH) and other is not None:
                self._check_fresh(node, pace, other)
            elif node.kind == "window" and node.window is not None and node.window.count is None:
                if isinstance(pace, EventPacing) and written is not None:
                    hint = "state a frequency, @1Hz, or use over_discrete: a number of values"
                    self.reports.error("a window over a duration stands in a periodic stream", node.span, hint)
            elif node.kind == "instances" and _binds(node) and isinstance(other, PeriodicPacing) and other.local:
                message = f"the periods of the instances of {target.name} begin with their spawns: they share no step"
                hint = f"write over_instances: all, or let {target.name} be evaluated @Global(...)"
                self.reports.error(message, node.span, hint)
            elif _binds(node) and written is not None and not implies(pace, other):
                self._missing(clauses, draft, node, pace, other)

    def _check_fresh(self, node: Node, pace: Paced, other: Paced) -> None:
        if isinstance(pace, EventPacing) == isinstance(other, EventPacing):
            return
        assert node.stream is not None
        word = "get" if node.access is Access.GET else "is_fresh"
        message = (
            f"{word} of {node.stream.name} is never anything: {node.stream.name} is {self._kind(other)}, "
            f"and this {self._kind(pace)}"
        )
        self.reports.error(message, node.span, f"write {self._read_name(node)}.hold()")

    def _missing(self, clauses: Clauses, draft: ClauseDraft, node: Node, pace: Paced, other: Paced) -> None:
        """Say that a stream is not always there when a clause reads it."""
        assert node.stream is not None
        what = clauses.stream.name if draft.word == "eval" else f"the {draft.word} of {clauses.stream.name}"
        name = self._read_name(node)
        if node.kind == "instances":
            message, hint = f"fresh instances of {node.stream.name} are there {pace_text(other, self.table)} only", None
        else:
            message = (
                f"{node.stream.name} is not always there: it is {pace_text(other, self.table)}, "
                f"and {what} {pace_text(pace, self.table)}"
            )
            hint = f"write {name}.hold(or: ...) for its newest value"
            if isinstance(pace, EventPacing) and isinstance(other, EventPacing):
                hint += f", or {name}.get(or: ...) for one of this event"
            local = isinstance(pace, PeriodicPacing) and isinstance(other, PeriodicPacing) and pace.local != other.local
            if node.kind == "window":
                hint = (
                    f"a window over a number of values stands in a stream that is {pace_text(other, self.table)}, too; "
                    "in a periodic one write over: 5s, which takes the values of a time"
                )
            elif local:
                hint = (
                    "periods of a spawned stream begin with its spawn: write @Global(...), or read with .hold(or: ...)"
                )
        self.reports.error(message, node.span, hint)


class _Mistake:
    """Stands for a pacing that has a mistake, which is reported."""


_MISTAKE = _Mistake()


def _binds(node: Node) -> bool:
    """Whether a node demands that the pacing of its clause implies that of its target."""
    fresh = node.kind == "instances" and node.window is not None and node.window.selection == "fresh"
    return node.synchronous or fresh


def _written(clauses: Clauses) -> bool:
    output = clauses.stream.output
    return output is not None and any(clause.pace is not None for clause in output.evals)
