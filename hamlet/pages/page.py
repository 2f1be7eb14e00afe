"""One HTML file from a template, its style and script inside."""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from hamlet.errors import OutputError
from hamlet.output.place import check_place, write_whole
from hamlet.version import __version__

_EXAMPLE = "page.html"  # what a page may be called
EXPLAINED, REPORTED = "--html", "--report"  # who asks for a page

CHARTS = ("uPlot.min.css",), ("uPlot.iife.min.js", "charts.js")  # styles and scripts of a page with charts
GRAPHS = ("graph.css",), ("dagre.min.js", "graph.js")  # and of one with graphs

_FOLDER = Path(__file__).parent / "templates"
_VENDOR = Path(__file__).parent / "vendor"


def render(template: str, styles: Sequence[str], scripts: Sequence[str], data: Any, **values: Any) -> str:
    """A page as text.

    Parameters
    ----------
    template : str
        A file of the folder ``templates``.
    styles, scripts : sequence of str
        Files of the folders ``templates`` and ``vendor`` that the page holds behind those of every page, in this order.
    data : Any
        What the script reads, as JSON has it.
    **values
        What the template reads; text is escaped.
    """
    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    return environment.get_template(template).render(
        style=_sources("page.css", *styles),
        script=_sources("page.js", *scripts),
        data=_json(data),
        version=__version__,
        made=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        **values,
    )


class RunPage:
    """Writes a page about a run.

    Parameters
    ----------
    path : path
        Where the page goes.
    keep : iterable of str
        Files that it must not replace.

    Raises
    ------
    OutputError
        If a page cannot be written there; known before the run.
    """

    def __init__(self, path: str | os.PathLike[str], keep: Iterable[str]) -> None:
        check_place(path, REPORTED, keep, example=_EXAMPLE)
        self.path = path

    def _write(
        self,
        template: str,
        charts: Sequence[Any],
        stats: Mapping[str, Any],
        counted: Sequence[tuple[str, str]],
        more: Sequence[tuple[str, str]],
        **values: Any,
    ) -> None:
        """Write the page, with its charts, and the counters by key and caption that there are, and more of them."""
        counters = [(f"{stats[key]:,}", caption) for key, caption in counted if key in stats]
        page = render(
            template,
            (*CHARTS[0], "watched.css", "evidence.css", "findings.css"),
            (*CHARTS[1], "watched.js"),
            {"charts": charts},
            counters=[*counters, *more],
            events=stats.get("events"),
            **values,
        )
        write(page, self.path, REPORTED)


def write(page: str, path: str | os.PathLike[str], option: str, keep: Iterable[str] = ()) -> None:
    """Write a page so that no half of it is ever seen, and in place of no file to keep; raises OutputError."""
    place = check_place(path, option, keep, example=_EXAMPLE)
    try:
        write_whole(place, page.encode())
    except OSError as error:
        raise OutputError(f"{option} {os.fspath(path)!r} cannot be written: {error.strerror or error}") from None


def _sources(*names: str) -> Markup:
    """Files of this package that stand in the page as they are."""
    places = (_FOLDER / name if (_FOLDER / name).exists() else _VENDOR / name for name in names)
    return Markup("\n".join(place.read_text(encoding="utf-8").rstrip() for place in places))


def _json(data: Any) -> Markup:
    """JSON that may stand in a script element, whatever texts it holds."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return Markup(text)
