"""Which input a specification can be cut by: every stream has a parameter that is this input's value.

Then an event matters only to the instances of its value, and events of different values can be evaluated apart from one
another. Spark routes by it.
"""

from __future__ import annotations

from hamlet.errors import UnsupportedError
from hamlet.streams.program import ir
from hamlet.streams.program.compile_clauses import bound_values, clauses_of

_NEVER = "hint: hamlet monitor runs any specification, in one process"


def routed_by(program: ir.Program) -> str:
    """The name of the input.

    Raises
    ------
    UnsupportedError
        If there is none; names the stream that stands in the way.

    Examples
    --------
    >>> from hamlet.streams import Specification
    >>> spec = Specification.parse('''input user: String
    ... output n(u: String) spawn with user eval when u = user with n(u).offset(by: -1).defaults(to: 0) + 1''')
    >>> routed_by(spec.program)
    'user'
    """
    outputs = program.streams[program.inputs :]
    refusals: list[tuple[int, str]] = []
    for each in program.streams[: program.inputs]:
        places: dict[int, int] = {}
        for stream in outputs:
            place = _place(stream, each.id)
            if place is not None:
                places[stream.id] = place
        refusal = next((said for stream in outputs if (said := _refusal(program, stream, each.id, places))), None)
        if refusal is None and outputs:
            return each.name
        refusals.append((len(places), refusal or "there is no output"))
    best = max(refusals, default=(0, "there is no input"), key=lambda pair: pair[0])
    raise UnsupportedError(f"this specification cannot be cut into slices: {best[1]}\n{_NEVER}")


def _place(stream: ir.Stream, column: int) -> int | None:
    """Which parameter is the value of an input at the spawn."""
    if stream.spawn is None:
        return None
    return next((place for place, each in enumerate(stream.spawn.arguments) if _is_now(each, column)), None)


def _is_now(expression: ir.Expression, column: int) -> bool:
    return isinstance(expression, ir.Read) and expression.stream == column and expression.access is ir.Access.NOW


def _refusal(program: ir.Program, stream: ir.Stream, column: int, places: dict[int, int]) -> str | None:
    """Why a stream cannot be cut by an input; None where it can."""
    name, by = stream.name, program.streams[column].name
    if stream.id not in places:
        return f"{name} has no parameter that is spawned with {by}"
    for each in stream.evals:
        if isinstance(each.pacing, ir.PeriodicPacing):
            continue
        values, _ = bound_values(stream, each.condition)
        if values is None or not _is_now(values[places[stream.id]], column):
            return f"{name} is not bound: its eval clause lacks a condition such as p = {by}"
    close = stream.close
    if close is not None and isinstance(close.pacing, ir.EventPacing):
        values, _ = bound_values(stream, close.condition)
        bound = values is not None and _is_now(values[places[stream.id]], column)
        own = close.condition is not None and not any(
            isinstance(each, ir.Read) and each.stream < program.inputs for each in ir.walk(close.condition)
        )
        if not bound and not own:
            return f"{name} closes at events of others"
        if not bound and not _mentions(close.pacing, column):
            return f"{name} closes at events without {by}"
    for _, expressions, spawning in clauses_of(stream):
        for part in ir.walk(*expressions):
            said = _reads_others(program, stream, part, places, spawning)
            if said is not None:
                return said
    return None


def _mentions(pacing: ir.EventPacing, column: int) -> bool:
    return all(term >> column & 1 for term in pacing.terms)


def _reads_others(
    program: ir.Program, stream: ir.Stream, each: ir.Expression, places: dict[int, int], spawning: bool
) -> str | None:
    """What an expression reads of other values of the input; None where it does not."""
    if isinstance(each, ir.ReadInstances):
        return f"{stream.name} reads all instances of {program.streams[program.aggregates[each.aggregate].target].name}"
    if isinstance(each, ir.Read):
        target = each.stream
        if target < program.inputs:
            if each.access in (ir.Access.NOW, ir.Access.GET, ir.Access.FRESH):
                return None
            return f"{stream.name} reads earlier values of input {program.streams[target].name}"
    elif isinstance(each, ir.ReadWindow):
        target = program.windows[each.window].target
        if target < program.inputs:
            return f"{stream.name} has a window over all events of input {program.streams[target].name}"
    else:
        return None
    name = program.streams[target].name
    if target not in places:
        return f"{name} has no parameter of this kind, and {stream.name} reads it"
    argument = each.arguments[places[target]]
    own = isinstance(argument, ir.Parameter) and argument.index == places[stream.id] and not spawning
    column = None if stream.spawn is None else stream.spawn.arguments[places[stream.id]]
    same_event = column is not None and argument == column
    return None if own or same_event else f"{stream.name} reads other instances of {name}"
