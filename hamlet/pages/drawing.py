"""Automata as drawings: states in columns from left to right, transitions as curves, all in numbers for SVG.

igraph places the states of each column so that few transitions cross (Sugiyama's method); the curves, and the room
that labels need, are made here. A transition that leads back is an arc below the states, one from a state to itself a
loop above it.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hamlet.errors import UnsupportedError

_LETTER = 6.7  # width of a letter of a label, generously
_HEIGHT = 42.0  # of a state
_ROW = 94.0  # between the middles of two states of a column: room for a loop and an arc
_LOOP = 26.0  # height of a loop above its state
_LINE = 15.0  # height of a line of a label
_MARGIN = 14.0
_START_WIDTH = 16.0


@dataclass(frozen=True)
class State:
    """A state of a drawing.

    Attributes
    ----------
    number : int
        0 is the start, which is a dot.
    title, subtitle : str
        Inside the state.
    below : tuple of str
        Lines below it.
    classes : str
        For its style.
    tip : str
        What is said of it where it is pointed at.
    queries : str
        The queries that have it, by place, with blanks between.
    """

    number: int
    title: str
    subtitle: str = ""
    below: tuple[str, ...] = ()
    classes: str = ""
    tip: str = ""
    queries: str = ""


@dataclass(frozen=True)
class Arrow:
    """A transition, or several from one state to another that are drawn as one; fields as those of `State`."""

    source: int
    target: int
    label: tuple[str, ...] = ()
    classes: str = ""
    tip: str = ""
    queries: str = ""


@dataclass(frozen=True)
class Drawing:
    """What the page draws: ``states`` and ``arrows`` with their places, in pixels."""

    top: float
    width: float
    height: float
    states: tuple[dict[str, Any], ...]
    arrows: tuple[dict[str, Any], ...]


@dataclass
class _Column:
    left: float = 0.0
    width: float = 0.0

    @property
    def middle(self) -> float:
        return self.left + self.width / 2


def text_width(text: str) -> float:
    """Pixels that a label takes at most."""
    return _LETTER * sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def draw(states: Sequence[State], arrows: Sequence[Arrow]) -> Drawing:
    """Place states and transitions.

    Parameters
    ----------
    states : sequence of State
        By number, the start first.
    arrows : sequence of Arrow
        At most one from a state to another.

    Raises
    ------
    UnsupportedError
        igraph is not installed.
    """
    layers = _layers(len(states), arrows)
    chains = {arrow: [*_chain(arrow, layers)] for arrow in arrows if layers[arrow.source] < layers[arrow.target]}
    rows = _rows(layers, chains)
    columns = _columns(states, arrows, layers)
    places = {state.number: (columns[layers[state.number]].middle, rows[state.number, None]) for state in states}
    found = []
    for arrow in arrows:
        if arrow.source == arrow.target:
            found.append(_loop(arrow, places, states))
        elif arrow in chains:
            stops = [(columns[layer], rows[arrow, layer]) for layer in chains[arrow]]
            found.append(_forward(arrow, places, states, stops))
        else:
            found.append(_back(arrow, places, layers))
    return _fitted([_placed(state, places[state.number]) for state in states], found)


# ---------------------------------------------------------------------------------------------------------- columns


def _layers(size: int, arrows: Sequence[Arrow]) -> list[int]:
    """The column of each state: one behind the last that leads into it, transitions that lead back left out."""
    targets: list[list[int]] = [[] for _ in range(size)]
    for arrow in arrows:
        if arrow.source != arrow.target:
            targets[arrow.source].append(arrow.target)
    order: list[int] = []  # every state before those that it leads to
    seen, path, back = {0}, [(0, iter(targets[0]))], set()
    on_path = {0}
    while path:
        state, rest = path[-1]
        target = next(rest, None)
        if target is None:
            path.pop()
            on_path.discard(state)
            order.append(state)
        elif target in on_path:
            back.add((state, target))
        elif target not in seen:
            seen.add(target)
            on_path.add(target)
            path.append((target, iter(targets[target])))
    layers = [0] * size
    for state in reversed(order):
        for target in targets[state]:
            if (state, target) not in back:
                layers[target] = max(layers[target], layers[state] + 1)
    return layers


def _chain(arrow: Arrow, layers: Sequence[int]) -> Iterator[int]:
    """The columns that a transition passes on its way."""
    yield from range(layers[arrow.source] + 1, layers[arrow.target])


def _rows(layers: Sequence[int], chains: Mapping[Arrow, list[int]]) -> dict[tuple[Any, int | None], float]:
    """The height of each state, and of each transition in the columns that it passes."""
    try:
        import igraph
    except ImportError as error:
        raise UnsupportedError(
            "templates are drawn with igraph; it comes with: pip install 'hamlet-cep[draw]'"
        ) from error
    points: list[tuple[Any, int | None]] = [(state, None) for state in range(len(layers))]
    columns = list(layers)
    edges = []
    for arrow, passed in chains.items():
        before = arrow.source
        for layer in passed:
            points.append((arrow, layer))
            columns.append(layer)
            edges.append((before, len(points) - 1))
            before = len(points) - 1
        edges.append((before, arrow.target))
    layout = igraph.Graph(n=len(points), edges=edges, directed=True).layout_sugiyama(layers=columns)
    return {point: place[0] * _ROW for point, place in zip(points, layout.coords[: len(points)], strict=True)}


def _columns(states: Sequence[State], arrows: Sequence[Arrow], layers: Sequence[int]) -> list[_Column]:
    """Where the columns lie: as wide as their states, as far apart as the labels between them need."""
    columns = [_Column() for _ in range(max(layers) + 1)]
    for state in states:
        column = columns[layers[state.number]]
        column.width = max(column.width, _width(state), *(text_width(line) for line in state.below), 0)
    ways = Counter(layers[arrow.source] for arrow in arrows)
    gaps = [min(38.0 + 6 * ways[layer], 200.0) for layer in range(len(columns))]  # behind each column
    for arrow in arrows:
        width = max(map(text_width, arrow.label), default=0)
        layer, target = layers[arrow.source], layers[arrow.target]
        if arrow.source == arrow.target:
            columns[layer].width = max(columns[layer].width, width)
        elif layer + 1 == target:
            gaps[layer] = max(gaps[layer], width + 40)
        elif layer < target:  # the label stands on the level part in the middle of the way
            passed = columns[(layer + target) // 2]
            passed.width = max(passed.width, width)
    left = _MARGIN
    for column, gap in zip(columns, gaps, strict=True):
        column.left = left
        left += column.width + gap
    return columns


def _width(state: State) -> float:
    if not state.number:
        return _START_WIDTH
    return max(54.0, text_width(state.title) + 26, text_width(state.subtitle) * 0.9 + 22)


# ----------------------------------------------------------------------------------------------------------- curves


def _forward(
    arrow: Arrow,
    places: Mapping[int, tuple[float, float]],
    states: Sequence[State],
    stops: Sequence[tuple[_Column, float]],
) -> dict[str, Any]:
    """A curve to a later column; through the columns between it runs level."""
    (x, y), (end, last) = places[arrow.source], places[arrow.target]
    x += _width(states[arrow.source]) / 2
    end -= _width(states[arrow.target]) / 2 + 7
    legs = [(x, y), *(point for column, height in stops for point in _level(column, height)), (end, last)]
    path = f"M{x:.1f} {y:.1f}"
    for place in range(0, len(legs) - 1, 2):
        (left, top), (right, bottom) = legs[place], legs[place + 1]
        bend = (right - left) * 0.45
        path += f"C{left + bend:.1f} {top:.1f} {right - bend:.1f} {bottom:.1f} {right:.1f} {bottom:.1f}"
        if place + 2 < len(legs) - 1:
            path += f"L{legs[place + 2][0]:.1f} {legs[place + 2][1]:.1f}"
    rows = [y, *(height for _, height in stops)]
    if stops:
        column, height = stops[(len(stops) - 1) // 2]
        middle = column.middle
    else:  # nearer to the target, since curves of one state begin together
        middle, height = x + (end - x) * 0.56, y + (last - y) * 0.62
    return _drawn(
        arrow, path, middle, height - 5 - _LINE * (len(arrow.label) - 1), (min(rows, default=y), max(rows, default=y))
    )


def _level(column: _Column, height: float) -> tuple[tuple[float, float], tuple[float, float]]:
    return (column.left, height), (column.left + column.width, height)


def _loop(arrow: Arrow, places: Mapping[int, tuple[float, float]], states: Sequence[State]) -> dict[str, Any]:
    """From a state to itself."""
    x, y = places[arrow.source]
    top, half = y - _HEIGHT / 2, min(_width(states[arrow.source]) / 2 - 10, 20)
    bend = top - _LOOP * 1.3
    path = f"M{x - half:.1f} {top:.1f}"
    path += f"C{x - half - 8:.1f} {bend:.1f} {x + half + 8:.1f} {bend:.1f} {x + half:.1f} {top - 5:.1f}"
    label = top - _LOOP - 5 - _LINE * (len(arrow.label) - 1)
    return _drawn(arrow, path, x, label, (label - _LINE, y))


def _back(arrow: Arrow, places: Mapping[int, tuple[float, float]], layers: Sequence[int]) -> dict[str, Any]:
    """An arc below the states, from one to another of the same or an earlier column."""
    (x, y), (end, last) = places[arrow.source], places[arrow.target]
    y, last = y + _HEIGHT / 2, last + _HEIGHT / 2
    depth = max(y, last) + 26 + 12 * (layers[arrow.source] - layers[arrow.target])
    path = f"M{x - 8:.1f} {y:.1f}C{x - 8:.1f} {depth:.1f} {end + 8:.1f} {depth:.1f} {end + 8:.1f} {last + 6:.1f}"
    lowest = (y + last) / 8 + depth * 3 / 4  # of the curve, at its middle
    return _drawn(arrow, path, (x + end) / 2, lowest + 13, (y, lowest + 13 + _LINE * len(arrow.label)))


def _drawn(arrow: Arrow, path: str, x: float, y: float, reach: tuple[float, float]) -> dict[str, Any]:
    lines = [(line, y + _LINE * place) for place, line in enumerate(arrow.label)]
    width = max(map(text_width, arrow.label), default=0)
    return {
        "path": path,
        "x": x,
        "lines": lines,
        "box": (x - width / 2 - 3, y - 11.5, width + 6, _LINE * len(lines) + 1),
        "classes": arrow.classes,
        "tip": arrow.tip,
        "queries": arrow.queries,
        "reach": (min(reach[0], y - _LINE), max(reach[1], y + _LINE * len(lines))),
    }


def _placed(state: State, place: tuple[float, float]) -> dict[str, Any]:
    x, y = place
    return {
        "x": x,
        "y": y,
        "width": _width(state),
        "height": _HEIGHT,
        "start": not state.number,
        "title": state.title,
        "subtitle": state.subtitle,
        "below": [(line, y + _HEIGHT / 2 + 14 + 14 * number) for number, line in enumerate(state.below)],
        "classes": state.classes,
        "tip": state.tip,
        "queries": state.queries,
    }


def _fitted(states: list[dict[str, Any]], arrows: list[dict[str, Any]]) -> Drawing:
    """The drawing with the edges of what stands in it."""
    top = min([each["y"] - _HEIGHT / 2 for each in states] + [each["reach"][0] for each in arrows]) - 6
    bottom = max(
        [each["y"] + _HEIGHT / 2 + 18 * len(each["below"]) for each in states] + [each["reach"][1] for each in arrows]
    )
    right = max([each["x"] + each["width"] / 2 for each in states] + [sum(each["box"][::2]) for each in arrows])
    right = max([right] + [each["x"] + text_width(line) / 2 for each in states for line, _ in each["below"]])
    return Drawing(top, right + _MARGIN, bottom - top + 8, tuple(states), tuple(arrows))
