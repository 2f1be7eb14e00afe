"""The page that shows a specification: what ``hamlet explain SPEC.lola --html`` writes.

It draws the annotated dependency graph, layer by layer, and lists what is kept of every stream.
Source: Faymonville et al., Real-time Stream-based Monitoring, §3.1 (memory), Fig. 3.
"""

from __future__ import annotations

import os
from typing import Any

from hamlet.output.place import check_place
from hamlet.pages.page import EXAMPLE, render, write
from hamlet.streams.explain import amount_text, edges, kept_text, total_lines, window_text
from hamlet.streams.ir import Program
from hamlet.streams.memory import Memory, StreamMemory, memory, pacing_text
from hamlet.streams.specification import Specification

OPTION = "--html"
_MOST_DRAWN = 200  # streams
_STEP = 230, 62  # from box to box
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
    check_place(path, OPTION, keep=(specification.source,), example=EXAMPLE)
    write(page(specification), path, OPTION)


def page(specification: Specification) -> str:
    """The page as text."""
    program = specification.program
    found = memory(program)
    outputs = len(program.streams) - program.inputs - len(program.triggers)
    return render(
        "specification.html",
        "specification.css",
        "specification.js",
        {},
        workload=specification.source,
        counts=[(program.inputs, "input"), (outputs, "output"), (len(program.triggers), "trigger")],
        total="no bounded total" if found.total is None else amount_text(found.total),
        totals=total_lines(found),
        streams=[_row(program, each) for each in found.streams],
        drawing=_drawing(program, found) if len(program.streams) <= _MOST_DRAWN else None,
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
    """Boxes in columns, one for each layer, and arrows between them."""
    layer = {stream.id: 0 for stream in program.streams}
    for number, tasks in enumerate(program.layers):
        layer.update({task.stream: max(number, 1) for task in tasks if not task.spawn})
    heights: dict[int, int] = {}
    places: dict[str, tuple[int, int]] = {}
    boxes = []
    for each in found.streams:
        stream = each.stream
        column = layer[stream.id]
        row = heights[column] = heights.get(column, 0) + 1
        x, y = 95 + column * _STEP[0], row * _STEP[1] - 26
        places[stream.name] = x, y
        pacing = pacing_text(program, stream)
        style = f"{stream.kind.value}{' open' if each.bytes is None else ''}"
        tip = "\n".join([stream.name, *_row(program, each)["keeps"]])
        boxes.append({"x": x, "y": y, "title": _cut(stream.name), "subtitle": _cut(pacing), "tip": tip, "style": style})
    ways: dict[tuple[str, str, bool], list[str]] = {}
    for edge in edges(program):
        ways.setdefault((edge.reader, edge.target, edge.clause != "eval"), []).append(edge.access)
    arrows = [_arrow(places[reader], places[target], said, aside) for (reader, target, aside), said in ways.items()]
    width = (max(layer.values(), default=0) + 1) * _STEP[0]
    return {
        "boxes": boxes,
        "arrows": arrows,
        "width": width,
        "height": (max(heights.values(), default=1)) * _STEP[1] + 30,
    }


def _arrow(start: tuple[int, int], end: tuple[int, int], said: list[str], aside: bool) -> dict[str, Any]:
    (x, y), (to_x, to_y) = start, end
    if start == end:  # a loop above the box
        path = f"M{x - 25} {y - 21}C{x - 40} {y - 52} {x + 40} {y - 52} {x + 25} {y - 21}"
        middle = x, y - 40
    else:
        left, right = x - 75, to_x + 75
        if to_x >= x:
            left, right = x + 75, to_x + 75
        bend = max(40, abs(left - right) // 2)
        one, two = (left - bend, right + bend) if to_x < x else (left + bend, right + bend)
        path = f"M{left} {y}C{one} {y} {two} {to_y} {right} {to_y}"
        middle = (left + right) // 2 + (40 if to_x >= x else 0), (y + to_y) // 2 - 4
    label = ", ".join(dict.fromkeys(said))
    style = "dashed" if aside else "plain"
    return {"path": path, "x": middle[0], "y": middle[1], "label": _cut(label, 30), "style": style}


def _cut(text: str, longest: int = _LONGEST) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
