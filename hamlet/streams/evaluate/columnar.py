"""Which streams are computed in columns, a batch at once, instead of event by event.

An event-driven stream without instances can be, where all that it reads are inputs, other such streams, and their
earlier values: its value at an event then depends on columns that are known before. Whatever reads its own past, a
window, or an instance is left to the loop over events. Where only the conditions of a stream are of that kind (a
trigger with a message made of values) the columns say at which events the rest is computed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hamlet.streams.evaluate._tasks import Task
from hamlet.streams.program import ir
from hamlet.streams.program.compile_clauses import bound_values

_READABLE = (ir.Access.NOW, ir.Access.OFFSET, ir.Access.HOLD, ir.Access.GET, ir.Access.FRESH)


def column_tasks(program: ir.Program, tasks: Mapping[int, Task]) -> list[Task]:
    """The tasks to compute in columns, each after those that it reads.

    Parameters
    ----------
    program : ir.Program
    tasks : mapping of int to Task
        The evaluations by stream. Those that are chosen are told what is to be computed of them.
    """
    known = {each.id for each in program.streams[: program.inputs]}
    waiting = [each for each in program.streams[program.inputs :] if _plain(each) and tasks[each.id].columnar()[0]]
    found: list[Task] = []
    added = True
    while added:
        added, rest = False, []
        for stream in waiting:
            conditions = [each.condition for each in stream.evals if each.condition is not None]
            values = [each.expression for each in stream.evals]
            if tasks[stream.id].columnar()[1] and _reads_only(known, *conditions, *values):
                tasks[stream.id].compute_in_columns(True)
                found.append(tasks[stream.id])
                known.add(stream.id)
                added = True
            else:
                rest.append(stream)
        waiting = rest
    for stream in waiting:
        conditions = [each.condition for each in stream.evals if each.condition is not None]
        if len(conditions) == len(stream.evals) and _reads_only(known, *conditions):
            tasks[stream.id].compute_in_columns(False)
            found.append(tasks[stream.id])
    return found


def in_segments(program: ir.Program) -> bool:
    """Whether inputs and close clauses let events be taken together."""
    tuples = any(not isinstance(each.type, ir.Scalar) for each in program.streams[: program.inputs])
    closing = any(each.close is not None and isinstance(each.close.pacing, ir.EventPacing) for each in program.streams)
    return not tuples and not closing


def inputs_of_instances(program: ir.Program) -> Iterator[tuple[int, int]]:
    """Inputs whose value says which instance of a stream an event extends, and the stream."""
    for stream in program.streams:
        for clause in stream.evals:
            binding, _ = bound_values(stream, clause.condition)
            if binding is not None and len(binding) == 1 and isinstance(binding[0], ir.Read):
                read = binding[0]
                if read.stream < program.inputs and read.access is ir.Access.NOW:
                    yield read.stream, stream.id
                    break


def _plain(stream: ir.Stream) -> bool:
    """Whether a stream has one instance, which is always there, and is extended by events."""
    return not (stream.parameters or stream.spawn or stream.close or stream.periodic)


def _reads_only(known: set[int], *expressions: ir.Expression) -> bool:
    """Whether expressions read nothing but values of these streams."""
    for each in ir.walk(*expressions):
        if isinstance(each, (ir.ReadWindow, ir.ReadInstances, ir.Parameter)):
            return False
        if isinstance(each, ir.Read) and (each.stream not in known or each.access not in _READABLE):
            return False
    return True
