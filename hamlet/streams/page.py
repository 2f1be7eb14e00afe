"""The page that shows a specification: what ``hamlet explain SPEC.lola --html`` writes.

It draws the annotated dependency graph and lists what is kept of every stream.
Source: Faymonville et al., Real-time Stream-based Monitoring, §3.1 (memory), Fig. 3.
"""

from __future__ import annotations

import os
from typing import Any

from hamlet.pages.drawing import Arrow, State, drawing
from hamlet.pages.page import EXPLAINED, GRAPHS, render, write
from hamlet.streams.explain import amount_text, edges, kept_text, total_lines, window_text
from hamlet.streams.memory import Memory, StreamMemory, declaration_text, memory, pacing_text
from hamlet.streams.program.ir import Kind, Program
from hamlet.streams.specification import Specification

_MOST_DRAWN = 200  # streams
_LONGEST = 22  # letters of a box


def write_specification(specification: Specification, path: str | os.PathLike[str]) -> None:
    """Write the page.

    Parameters
    ----------
    specification : Specification
    path : path

    Raises
    ------
    OutputError
        The page cannot be written there.
    """
    write(page(specification), path, EXPLAINED, [specification.source])


def page(specification: Specification) -> str:
    """The page as text."""
    program = specification.program
    found = memory(program)
    outputs = len(program.streams) - program.inputs - len(program.triggers)
    triggers = [(each.name, declaration_text(program, each), pacing_text(program, each)) for each in program.triggers]
    drawn = len(program.streams) <= _MOST_DRAWN
    return render(
        "specification.html",
        (*GRAPHS[0], "specification.css"),
        GRAPHS[1],
        {"graphs": [_drawing(program, found)] if drawn else []},
        workload=specification.source,
        drawn=drawn,
        counts=[(program.inputs, "input"), (outputs, "output"), (len(program.triggers), "trigger")],
        total="no bounded total" if found.total is None else amount_text(found.total),
        bounded=found.total is not None,
        triggers=triggers,
        totals=total_lines(found),
        streams=[_row(program, each) for each in found.streams],
    )


def _row(program: Program, each: StreamMemory) -> dict[str, Any]:
    stream = each.stream
    parameters = ", ".join(f"{name}: {kind}" for name, kind in stream.parameters)
    life = [line for line in (each.spawned, each.closed) if line]
    if each.never_closed:
        life.append("never closed: every new instance stays")
    keeps = [kept_text(each.values)] if each.values.count != 0 else []
    keeps += [
        f"{window_text(window)} of {program.streams[window.reader].name}: {kept_text(kept)}"
        for window, kept in each.windows
    ]
    return {
        "name": f"{stream.name}({parameters})" if parameters else stream.name,
        "type": str(stream.type),
        "pacing": pacing_text(program, stream),
        "life": life,
        "keeps": keeps,
        "bytes": amount_text(each.bytes) + (" each" if each.instances and each.bytes is not None else ""),
    }


def _drawing(program: Program, found: Memory) -> dict[str, Any]:
    """A box for each stream, and an arrow to each that it reads."""
    places = {each.stream.name: place for place, each in enumerate(found.streams)}
    boxes = [
        State(
            _cut(each.stream.name),
            _cut(pacing_text(program, each.stream)),
            classes=f"{each.stream.kind.value}{' open' if each.bytes is None else ''}",
            tip="\n".join([each.stream.name, *_row(program, each)["keeps"]]),
            round=7,
            last=each.stream.kind is Kind.INPUT,
        )
        for each in found.streams
    ]
    ways: dict[tuple[str, str, bool], list[str]] = {}
    for edge in edges(program):
        ways.setdefault((edge.reader, edge.target, edge.clause != "eval"), []).append(edge.access)
    arrows = [
        Arrow(places[reader], places[target], (_cut(", ".join(dict.fromkeys(said)), 30),), "aside" if aside else "")
        for (reader, target, aside), said in ways.items()
    ]
    return drawing("dependency graph", boxes, arrows, "RL")


def _cut(text: str, longest: int = _LONGEST) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
