"""The page that shows how row patterns will be matched: ``hamlet explain --html`` of a file of SQL."""

from __future__ import annotations

import os
from typing import Any

from hamlet.errors import WorkloadError
from hamlet.pages.drawing import Arrow, State, drawing
from hamlet.pages.page import EXPLAINED, GRAPHS, render, write
from hamlet.patterns.automaton.compile import ACCEPT, AT_END, AT_START, COUNTED, ENDLESS, SPLIT, Program
from hamlet.patterns.match.evaluate import Meaning
from hamlet.patterns.match.explain import conditions_of, facts_of
from hamlet.patterns.match.run import meanings, parsed

_MOST_DRAWN = 60  # states; a pattern that counts to a thousand is no drawing


def write_explanation(text: str, source: str, path: str | os.PathLike[str], dialect: str = "duckdb") -> None:
    """Write the page.

    Raises
    ------
    OutputError
        The page cannot be written there.
    WorkloadError
        With all mistakes in the text that can be seen without tables.
    """
    script = parsed(text, dialect, source)
    reports = script.reports()
    found = meanings(script, reports)
    if reports.errors:
        raise WorkloadError(reports.errors)
    graphs: list[dict[str, Any]] = []
    clauses = []
    for number, meaning in enumerate(found, 1):
        states = meaning.program.positions
        graph = None
        if states <= _MOST_DRAWN:
            graph = len(graphs)
            graphs.append(_automaton(meaning, f"The automaton of clause {number}"))
        clauses.append(
            {
                "number": number,
                "place": reports.place(meaning.clause.span),
                "facts": facts_of(meaning, reports),
                "conditions": conditions_of(meaning),
                "graph": graph,
                "states": states,
            }
        )
    page = render(
        "row_patterns.html",
        (*GRAPHS[0], "explain.css"),
        GRAPHS[1],
        {"graphs": graphs},
        workload=source,
        text=text.strip(),
        clauses=clauses,
    )
    write(page, path, EXPLAINED, [source])


def _automaton(meaning: Meaning, label: str) -> dict[str, Any]:
    """States take rows; arrows are numbered by preference where there are several."""
    program, names = meaning.program, list(meaning.clause.variables.values())
    places: dict[int, int] = {}
    waiting = [step for step, _ in _behind(program, program.start) if step is not None]
    while waiting:
        step = waiting.pop(0)
        if step not in places:
            places[step] = len(places) + 1
            waiting += [each for each, _ in _behind(program, program.first[step]) if each is not None]
    states = [State("", tip="start")]
    arrows = _arrows(program, program.start, 0, places)
    for step in places:
        ways = _behind(program, program.first[step])
        ends = [place for place, (target, _) in enumerate(ways, 1) if target is None]
        condition = meaning.conditions.get(list(meaning.clause.variables)[program.variables[step]])
        tip = "takes every row" if condition is None else condition.read.expression.text
        classes = "final" if ends else ""
        tip += f"\na match may end here (choice {ends[0]} of {len(ways)})" if ends else ""
        below = ("left out of the rows",) if program.excluded[step] else ()
        name = names[program.variables[step]]
        if program.kinds[step] == COUNTED:
            low, high = program.bounds[step]
            name += f"{{{low:,},{'' if high == ENDLESS else f'{high:,}'}}}"
        states.append(State(name, "", below, classes, tip))
        arrows += _arrows(program, program.first[step], places[step], places)
    return drawing(label, states, arrows)


def _arrows(program: Program, entry: int, source: int, places: dict[int, int]) -> list[Arrow]:
    ways = _behind(program, entry)
    found = []
    for number, (target, said) in enumerate(ways, 1):
        if target is not None:
            label = " ".join([*([str(number)] if len(ways) > 1 else []), *said])
            tip = f"choice {number} of {len(ways)}" if len(ways) > 1 else ""
            found.append(Arrow(source, places[target], (label,) if label else (), "", tip))
    return found


def _behind(program: Program, entry: int) -> list[tuple[int | None, tuple[str, ...]]]:
    """The steps that take the next row behind a step, the preferred first, and anchors before them; None: the end."""
    found: list[tuple[int | None, tuple[str, ...]]] = []
    seen = set()
    waiting: list[tuple[int, tuple[str, ...]]] = [(entry, ())]
    while waiting:
        step, said = waiting.pop()
        if (step, said) in seen:
            continue
        seen.add((step, said))
        kind = program.kinds[step]
        if kind == SPLIT:
            waiting += [(program.second[step], said), (program.first[step], said)]
        elif kind in (AT_START, AT_END):
            waiting.append((program.first[step], (*said, "^" if kind == AT_START else "$")))
        else:
            found.append((None if kind == ACCEPT else step, said))
    return found
