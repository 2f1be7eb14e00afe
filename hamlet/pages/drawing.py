"""Graphs as the pages hold them: states and arrows, as JSON that a script places (dagre) and draws as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class State:
    """A state of a drawing.

    Attributes
    ----------
    title, subtitle : str
        Inside the state; without a title it is a dot.
    below : tuple of str
        Lines below it.
    classes : str
        For its style.
    tip : str
        What is said of it where it is pointed at.
    queries : str
        The queries that have it, by place, with blanks between.
    round : float
        Radius of its corners, in pixels.
    last : bool
        Whether it stands at the end of the drawing, whatever leads from it.
    """

    title: str
    subtitle: str = ""
    below: tuple[str, ...] = ()
    classes: str = ""
    tip: str = ""
    queries: str = ""
    round: float = 21
    last: bool = False


@dataclass(frozen=True)
class Arrow:
    """A transition, or several from one state to another that are drawn as one; fields as those of `State`.

    Attributes
    ----------
    source, target : int
        States by place.
    label : tuple of str
        Lines beside it.
    """

    source: int
    target: int
    label: tuple[str, ...] = ()
    classes: str = ""
    tip: str = ""
    queries: str = ""


def drawing(label: str, states: Sequence[State], arrows: Sequence[Arrow], direction: str = "LR") -> dict[str, Any]:
    """A graph as the script reads it.

    Parameters
    ----------
    label : str
        What it shows, for those who do not see it.
    states : sequence of State
    arrows : sequence of Arrow
    direction : str
        Where arrows mostly lead: ``LR`` to the right, ``RL`` to the left.
    """
    return {"label": label, "direction": direction, "states": [*map(asdict, states)], "arrows": [*map(asdict, arrows)]}
