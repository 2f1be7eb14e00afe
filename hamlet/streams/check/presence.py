"""Synchronous accesses to streams that are not always there: spawned, with conditions, or closed.

A value of this step can be read only where it is certain to exist: the reader is spawned under conditions that imply
the target's, is evaluated under a condition that implies the target's, and is closed when the target is. Conditions
are compared as they are written: a condition implies another where that follows from ``&&`` and ``||`` alone.
"""

from __future__ import annotations

from collections.abc import Hashable

from hamlet.frontend.reports import Reports
from hamlet.streams.check.declarations import Declared, Table
from hamlet.streams.check.pacing import MixedError, Paced, TooComplexError, both, implies, pace_text
from hamlet.streams.check.timing import Clauses
from hamlet.streams.check.unresolved import ClauseDraft, Node
from hamlet.streams.program.ir import PeriodicPacing

TRUE: Hashable = ("true",)
Key = Hashable


def check_agreement(table: Table, clauses: dict[int, Clauses], reports: Reports) -> None:
    """Check all synchronous accesses; mistakes go to `reports`."""
    agreement = _Agreement(table, clauses, reports)
    for each in clauses.values():
        for draft, _, pace in each.all():
            for node in draft.nodes():
                if node.synchronous and node.stream is not None and node.stream.output is not None:
                    agreement.check(each, draft, pace, node, node.stream)


class _Agreement:
    def __init__(self, table: Table, clauses: dict[int, Clauses], reports: Reports) -> None:
        self.table = table
        self.clauses = clauses
        self.reports = reports
        self._keys: dict[int, Key] = {}

    def check(self, reader: Clauses, draft: ClauseDraft, pace: Paced, node: Node, target: Declared) -> None:
        """Check one access."""
        own = target is reader.stream
        other = self.clauses[target.id]
        if not self._arguments_agree(reader, draft, node, other):
            return
        dynamic = other.spawn is not None or other.close is not None or self._filter(other) != TRUE
        if own or not dynamic:
            if own and draft.word == "spawn":
                self._refuse(draft, node, target)
            return
        if draft.word == "spawn" or (draft.word == "close" and not self._alike(reader, other)):
            self._refuse(draft, node, target)
            return
        if draft.word == "eval":
            self._check_spawn(reader, pace, node, other)
            self._check_condition(reader, draft, node, other)
            self._check_close(reader, pace, node, other)
        elif isinstance(pace, PeriodicPacing) and pace.local and not self._closed_alike(reader, other):
            self._differ(reader, node, other)

    # -------------------------------------------------------------------------------------------- parts

    def _arguments_agree(self, reader: Clauses, draft: ClauseDraft, node: Node, other: Clauses) -> bool:
        """Whether the instance that is read is the one with the reader's own parameters."""
        for place, argument in enumerate(node.parts):
            name = other.stream.name
            hint = f"write {self.reports.quote(node.span)[1:-1].partition('.')[0]}.hold(or: ...) for any instance"
            if argument.kind != "parameter":
                message = f"only parameters can choose the instance of {name} that is read now"
                self.reports.error(message, argument.span, hint)
                return False
            if draft.word == "spawn":
                return True
            if not isinstance(argument.value, int) or other.spawn is None or reader.spawn is None:
                continue
            own, others = reader.spawn.expressions, other.spawn.expressions
            if argument.value >= len(own) or place >= len(others):
                continue
            if self.key(own[argument.value], reader) != self.key(others[place], other):
                message = (
                    f"instances of {name} are spawned with {self.reports.quote(others[place].span)}, "
                    f"those of {reader.stream.name} with {self.reports.quote(own[argument.value].span)}"
                )
                self.reports.error(message, argument.span, hint)
                return False
        return True

    def _refuse(self, draft: ClauseDraft, node: Node, target: Declared) -> None:
        """Say that a stream which may not be there cannot be read in a spawn or close clause."""
        message = f"{target.name} is not always there, and a {draft.word} clause cannot make sure of it"
        self.reports.error(message, node.span, f"write {self._hold(node)}")

    def _hold(self, node: Node) -> str:
        name = self.reports.quote(node.span)[1:-1]
        return f"{name.partition('.')[0].partition('[')[0]}.hold(or: ...)"

    def _alike(self, one: Clauses, other: Clauses) -> bool:
        """Whether two streams exist and are evaluated under the same conditions."""
        return (
            one.spawn_pace == other.spawn_pace
            and self._condition(one.spawn, one) == self._condition(other.spawn, other)
            and self._filter(one) == self._filter(other)
            and self._condition(one.close, one) == self._condition(other.close, other)
        )

    def _check_spawn(self, reader: Clauses, pace: Paced, node: Node, other: Clauses) -> None:
        if other.spawn is None:
            return
        target, hint = other.stream.name, f"write {self._hold(node)}"
        where = self.reports.line(other.spawn.span)
        if reader.spawn is None:
            message = f"{target} is spawned ({where}), and {reader.stream.name} is there from the start"
            self.reports.error(message, node.span, f"{hint}, or spawn both alike")
            return
        if reader.spawn_pace is None or other.spawn_pace is None:
            return
        one, two = self._condition(reader.spawn, reader), self._condition(other.spawn, other)
        local = isinstance(pace, PeriodicPacing) and pace.local
        if local and (reader.spawn_pace != other.spawn_pace or one != two):
            message = f"the periods of {target} and {reader.stream.name} begin with different spawns"
            self.reports.error(message, node.span, f"{hint}, or spawn both alike")
        elif not implies(reader.spawn_pace, other.spawn_pace):
            message = (
                f"{target} is spawned {pace_text(other.spawn_pace, self.table)}, "
                f"{reader.stream.name} {pace_text(reader.spawn_pace, self.table)}"
            )
            self.reports.error(message, node.span, f"{hint}, or spawn both alike")
        elif not condition_implies(one, two):
            message = (
                f"{reader.stream.name} can be there without {target}, which is spawned under a condition ({where})"
            )
            self.reports.error(message, node.span, f"{hint}, or spawn both under the same condition")

    def _check_condition(self, reader: Clauses, draft: ClauseDraft, node: Node, other: Clauses) -> None:
        needed = self._filter(other)
        if not condition_implies(self._condition(draft, reader), needed):
            shown = " or ".join(
                self.reports.quote(each.condition.span) for each in other.evals[:3] if each.condition is not None
            )
            message = f"{other.stream.name} is only evaluated when {shown}"
            hint = (
                f"write {self._hold(node)}, or read it under the same condition: eval when {shown.replace(chr(39), '')}"
            )
            self.reports.error(message, node.span, hint)

    def _closed_alike(self, one: Clauses, other: Clauses) -> bool:
        """Whether two streams are closed by the same clause, or neither is."""
        if one.close is None or other.close is None:
            return one.close is None and other.close is None
        alike = self._condition(one.close, one) == self._condition(other.close, other)
        return alike and one.close_pace == other.close_pace

    def _differ(self, reader: Clauses, node: Node, other: Clauses) -> None:
        """Say that periods which begin with a spawn drift apart, since only one stream is spawned anew."""
        message = (
            f"the periods of {other.stream.name} and {reader.stream.name} begin with their spawns, "
            "and one can be closed and spawned anew without the other"
        )
        self.reports.error(message, node.span, f"write {self._hold(node)}, or close both alike")

    def _check_close(self, reader: Clauses, pace: Paced, node: Node, other: Clauses) -> None:
        local = isinstance(pace, PeriodicPacing) and pace.local
        if other.close is None:
            if local and reader.close is not None:
                self._differ(reader, node, other)
            return
        target, hint = other.stream.name, f"write {self._hold(node)}, or close both alike"
        where = self.reports.line(other.close.span)
        if reader.close is None:
            message = f"{target} is closed ({where}), and {reader.stream.name} is not"
            self.reports.error(message, node.span, hint)
            return
        one, two = self._condition(reader.close, reader), self._condition(other.close, other)
        if not condition_implies(two, one):
            message = f"{target} can be closed ({where}) where {reader.stream.name} is not"
            self.reports.error(message, node.span, hint)
        elif reader.close_pace is not None and not implies(self._closings(reader), reader.close_pace):
            message = (
                f"{target} is closed {pace_text(other.close_pace, self.table)}, "
                f"{reader.stream.name} {pace_text(reader.close_pace, self.table)}"
            )
            self.reports.error(message, node.span, hint)
        elif local and reader.close_pace is not None and not self._closed_alike(reader, other):
            self._differ(reader, node, other)

    def _closings(self, reader: Clauses) -> Paced:
        """When all closed streams that a stream reads are closed."""
        pace: Paced = None
        for draft in reader.evals:
            for node in draft.nodes():
                if node.synchronous and node.stream is not None and node.stream.output is not None:
                    other = self.clauses[node.stream.id]
                    try:
                        pace = both(pace, other.close_pace)
                    except (MixedError, TooComplexError):
                        return reader.close_pace  # reported where it is a mistake of its own
        return pace

    # --------------------------------------------------------------------------------------- conditions

    def _filter(self, clauses: Clauses) -> Key:
        """Under what condition a stream is evaluated where its pacing holds."""
        if any(each.condition is None for each in clauses.evals):
            return TRUE
        return _joined("||", [self._condition(each, clauses) for each in clauses.evals])

    def _condition(self, draft: ClauseDraft | None, clauses: Clauses) -> Key:
        if draft is None or draft.condition is None:
            return TRUE
        return self.key(draft.condition, clauses)

    def key(self, node: Node, clauses: Clauses) -> Key:
        """What an expression says, comparable between streams: a parameter is what it is spawned with."""
        known = self._keys.get(id(node))
        if known is not None:
            return known
        if node.kind == "parameter" and isinstance(node.value, int):
            spawn = clauses.spawn
            inside = spawn.expressions if spawn is not None else []
            found: Key = ("parameter", clauses.stream.id, node.value)
            if node.value < len(inside):
                found = ("parameter", self.key(inside[node.value], clauses))
        elif node.kind == "constant" and node.value is True:
            found = TRUE
        elif node.kind == "binary" and node.name in ("&&", "||"):
            found = _joined(node.name, [self.key(part, clauses) for part in node.parts])
        else:
            window = node.window
            extent = () if window is None else tuple(getattr(window, name) for name in window.__slots__)
            stream = None if node.stream is None else node.stream.id
            inside_keys = tuple(self.key(part, clauses) for part in node.parts)
            value = (type(node.value).__name__, node.value)
            found = (node.kind, node.name, value, stream, node.access, node.amount, extent, inside_keys)
        self._keys[id(node)] = found
        return found


def _joined(operator: str, keys: list[Key]) -> Key:
    """``&&`` or ``||`` of conditions, flat and without repetition."""
    parts: list[Key] = []
    for key in keys:
        inside = key[1] if isinstance(key, tuple) and key[0] == operator else (key,)
        parts += [part for part in inside if part not in parts]
    if TRUE in parts:
        parts = [TRUE] if operator == "||" else [part for part in parts if part != TRUE] or [TRUE]
    return parts[0] if len(parts) == 1 else (operator, tuple(parts))


def condition_implies(one: Key, other: Key) -> bool:
    """Whether one condition implies another, by what ``&&`` and ``||`` say of them."""
    if other == TRUE or one == other:
        return True
    first = one[0] if isinstance(one, tuple) else None
    second = other[0] if isinstance(other, tuple) else None
    if first == "||":
        return all(condition_implies(part, other) for part in one[1])  # type: ignore[index]
    if second == "&&":
        return all(condition_implies(one, part) for part in other[1])  # type: ignore[index]
    if first == "&&" and any(condition_implies(part, other) for part in one[1]):  # type: ignore[index]
        return True
    return second == "||" and any(condition_implies(one, part) for part in other[1])  # type: ignore[index]
