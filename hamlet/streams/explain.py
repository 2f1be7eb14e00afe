"""The annotated dependency graph and the memory of a specification, as text, JSON and a drawing for Graphviz."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hamlet.frontend.units import duration_text
from hamlet.streams.memory import Kept, Memory, StreamMemory, memory, pacing_text
from hamlet.streams.program.ir import Access, Expression, Program, Read, ReadInstances, ReadWindow, Stream, Window, walk
from hamlet.streams.specification import Specification

FORMATS = ("text", "json", "dot")


@dataclass(frozen=True)
class Edge:
    """One stream reads another.

    Attributes
    ----------
    reader, target : str
        Their names.
    clause : str
        Where: ``spawn``, ``eval``, ``close``.
    access : str
        How: ``now``, ``-2``, ``hold``, ``get``, ``is_fresh``, ``-2s``, ``avg over 5s``, ``sum over all instances``.
    """

    reader: str
    target: str
    clause: str
    access: str


def edges(program: Program) -> tuple[Edge, ...]:
    """Who reads whom, in the order of the text, each way once."""
    found: dict[Edge, None] = {}
    for stream in program.streams[program.inputs :]:
        for clause, expressions in _clauses(stream):
            for each in walk(*expressions):
                if isinstance(each, Read):
                    target, access = each.stream, _read_text(each)
                elif isinstance(each, ReadWindow):
                    target, access = program.windows[each.window].target, window_text(program.windows[each.window])
                elif isinstance(each, ReadInstances):
                    chosen = program.aggregates[each.aggregate]
                    target = chosen.target
                    access = f"{_function(chosen.function, chosen.percentile)} over {chosen.selection} instances"
                else:
                    continue
                found[Edge(stream.name, program.streams[target].name, clause, access)] = None
    return tuple(found)


def _clauses(stream: Stream) -> list[tuple[str, list[Expression]]]:
    found: list[tuple[str, list[Expression | None]]] = []
    if stream.spawn is not None:
        found.append(("spawn", [stream.spawn.condition, *stream.spawn.arguments]))
    found += [("eval", [each.condition, each.expression]) for each in stream.evals]
    if stream.close is not None:
        found.append(("close", [stream.close.condition]))
    return [(word, [part for part in parts if part is not None]) for word, parts in found]


def _read_text(read: Read) -> str:
    if read.access is Access.OFFSET:
        return f"-{read.amount}"
    if read.access is Access.TIME:
        return f"-{duration_text(Fraction(read.amount, 10**9))}"
    return {Access.NOW: "now", Access.HOLD: "hold", Access.GET: "get"}.get(read.access, "is_fresh")


def _function(function: str, percentile: int) -> str:
    if function != "pctl":
        return function
    return "median" if percentile == 50 else f"pctl{percentile}"


def window_text(window: Window) -> str:
    """``avg over 5s``, ``sum over exactly 10 values``."""
    exactly = "exactly " if window.exactly else ""
    extent = f"{window.count} values" if window.duration is None else duration_text(window.duration)
    return f"{_function(window.function, window.percentile)} over {exactly}{extent}"


def explain(specification: Specification, shown_as: str = "text") -> str:
    """What a specification computes from what, when, and how much it keeps.

    Parameters
    ----------
    specification : Specification
    shown_as : {'text', 'json', 'dot', 'html'}

    Returns
    -------
    str
        Text for people, all facts for programs, a drawing for Graphviz, or a page.
    """
    program = specification.program
    found = memory(program)
    if shown_as == "html":
        from hamlet.streams.page import page  # brings in jinja2, which nothing else needs

        return page(specification)
    if shown_as == "json":
        return json.dumps(facts(specification, found), indent=2, ensure_ascii=False)
    return _drawing(program, found) if shown_as == "dot" else _text(specification, found)


# ---------------------------------------------------------------------------------------------------------- text


def amount_text(count: int | None) -> str:
    """Bytes as people read them: ``120 B``, ``1.5 KiB``."""
    if count is None:
        return "unbounded"
    size, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"


def _text(specification: Specification, found: Memory) -> str:
    program = specification.program
    reads: dict[str, list[str]] = {}
    for edge in edges(program):
        where = "" if edge.clause == "eval" else f" in {edge.clause}"
        reads.setdefault(edge.reader, []).append(f"{edge.target} ({edge.access}{where})")
    lines = [f"{specification.source}: {_counts(program)}", ""]
    for each in found.streams:
        lines += [*_stream_lines(program, each, reads.get(each.stream.name, [])), ""]
    layers = [[_task_text(program, task.stream, task.spawn) for task in layer] for layer in program.layers]
    lines.append("order of a step:")
    layers[:1] = [["inputs", *layer] for layer in layers[:1]]
    for number, layer in enumerate(layers):
        lines.append(f"  {number}  {', '.join(layer[:20])}{', ...' * (len(layer) > 20)}")
    lines += ["", *total_lines(found)]
    return "\n".join(lines)


def _counts(program: Program) -> str:
    outputs = len(program.streams) - program.inputs - len(program.triggers)
    parts = [(program.inputs, "input"), (outputs, "output"), (len(program.triggers), "trigger")]
    return ", ".join(f"{count} {word}{'s' if count != 1 else ''}" for count, word in parts)


def _task_text(program: Program, stream: int, spawn: bool) -> str:
    return f"{'spawn of ' if spawn else ''}{program.streams[stream].name}"


def _stream_lines(program: Program, each: StreamMemory, reads: list[str]) -> list[str]:
    stream = each.stream
    parameters = ", ".join(f"{name}: {kind}" for name, kind in stream.parameters)
    name = f"{stream.name}({parameters})" if parameters else stream.name
    word = "" if stream.kind.value == "trigger" else f"{stream.kind.value} "
    lines = [f"{word}{name}: {stream.type}  {pacing_text(program, stream)}"]
    if reads:
        lines.append(f"  reads     {', '.join(reads)}")
    if each.spawned:
        lines.append(f"  begins    {each.spawned}")
    if each.closed:
        lines.append(f"  ends      {each.closed}")
    elif each.never_closed:
        lines.append("  ends      never: warning: every new instance stays; add close @... when ...")
    per = " for each instance" if each.instances else ""
    if each.values.count != 0:
        lines.append(f"  keeps     {kept_text(each.values)}{per}")
    for window, kept in each.windows:
        reader = program.streams[window.reader].name
        lines.append(f"  window    {window_text(window)} of {reader}: {kept_text(kept)}{per}")
    return lines


def kept_text(kept: Kept) -> str:
    """``3 values, 24 B: b reads 3 back``."""
    if kept.count is None:
        return f"unbounded: {kept.unbounded}"
    what = kept.what if kept.count != 1 else kept.what.replace("values", "value").replace("panes", "pane")
    return f"{kept.count} {what}, {amount_text(kept.bytes)}: {kept.why}"


def total_lines(found: Memory) -> list[str]:
    """The sum, or why there is none."""
    if found.total is not None:
        letters = ", and the letters of texts" if found.texts else ""
        return [f"total: {amount_text(found.total)}{letters}"]
    lines = []
    for each in found.streams:
        kept = [each.values, *(part for _, part in each.windows)]
        lines += [f"no total: {each.stream.name} is unbounded: {part.unbounded}" for part in kept if part.count is None]
        if each.instances and each.bytes is not None:
            lines.append(f"no total: {each.stream.name} keeps {amount_text(each.bytes)} for each instance")
    return lines or ["no total: windows of parameterised streams are kept for each instance"]


# --------------------------------------------------------------------------------------------------------- others


def facts(specification: Specification, found: Memory | None = None) -> dict[str, Any]:
    """All of it as JSON has it."""
    program = specification.program
    found = found or memory(program)
    return {
        "specification": specification.source,
        "streams": [_stream_facts(program, each) for each in found.streams],
        "edges": [{"from": e.reader, "to": e.target, "clause": e.clause, "access": e.access} for e in edges(program)],
        "layers": [
            [{"stream": program.streams[task.stream].name, "spawn": task.spawn} for task in layer]
            for layer in program.layers
        ],
        "total_bytes": found.total,
        "warnings": [warning for each in found.streams for warning in _warnings(each)],
    }


def _stream_facts(program: Program, each: StreamMemory) -> dict[str, Any]:
    stream = each.stream
    return {
        "name": stream.name,
        "kind": stream.kind.value,
        "type": str(stream.type),
        "pacing": pacing_text(program, stream),
        "parameters": {name: str(kind) for name, kind in stream.parameters},
        "spawned": each.spawned or None,
        "closed": each.closed or None,
        "per_instance": each.instances,
        "values": each.values.count,
        "bytes": each.values.bytes,
        "why": each.values.unbounded or each.values.why or None,
        "windows": [
            {
                "reader": program.streams[window.reader].name,
                "window": window_text(window),
                "keeps": kept.what,
                "count": kept.count,
                "bytes": kept.bytes,
                "why": kept.unbounded or kept.why,
            }
            for window, kept in each.windows
        ],
    }


def _warnings(each: StreamMemory) -> list[str]:
    return [f"instances of {each.stream.name} are never closed"] if each.never_closed else []


def _drawing(program: Program, found: Memory) -> str:
    """The graph in the language of Graphviz: an arrow from a reader to what it reads."""
    lines = ["digraph specification {", "  rankdir=RL;", '  node [shape=box, fontname="sans-serif"];']
    for each in found.streams:
        shape = {"input": "ellipse", "trigger": "octagon"}.get(each.stream.kind.value, "box")
        label = f"{each.stream.name}\n{pacing_text(program, each.stream)}\n{amount_text(each.bytes)}"
        lines.append(f"  {_quoted(each.stream.name)} [label={_quoted(label)}, shape={shape}];")
    for edge in edges(program):
        style = "" if edge.clause == "eval" else ", style=dashed"
        label = edge.access if edge.clause == "eval" else f"{edge.clause}: {edge.access}"
        lines.append(f"  {_quoted(edge.reader)} -> {_quoted(edge.target)} [label={_quoted(label)}{style}];")
    return "\n".join([*lines, "}"])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
