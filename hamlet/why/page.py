"""Evidence as a page: the claim in a sentence, and nodes that open what they follow from."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hamlet.pages.page import render
from hamlet.why.texts import node_line, shown, text_of, value_line

_MOST = 2_000  # nodes of one page


def page_of(data: Mapping[str, Any]) -> str:
    """A page of its own."""
    row = ", ".join(f"{name} {shown(value)}" for name, value in data["row"].items())
    return render(
        "evidence.html",
        ("evidence.css",),
        (),
        {},
        workload=str(data["row"].get("query") or data["row"].get("policy") or "evidence"),
        row=row,
        holds=data["holds"],
        kind=data["kind"],
        body=fragment_of(data),
    )


def fragment_of(data: Mapping[str, Any], prefix: str = "") -> str:
    """What a notebook shows; the kinds that are trees open node by node, whose names on the page begin alike."""
    if data["kind"] == "proof":
        return "".join(_opened(data["nodes"], node_line, lambda node: "holds" if node["holds"] else "fails", prefix))
    if data["kind"] == "value":
        kinds = {True: "fails", False: "holds"}
        return "".join(_opened(data["nodes"], value_line, lambda node: kinds[node["value"] is None], prefix))
    found = f"<pre>{html.escape(text_of(data, nested=False))}</pre>"
    for place, each in enumerate(data.get("because", ())):
        head, _, _ = text_of(each).partition("\n")
        own = fragment_of(each, f"{prefix}{place}-")
        found += f"<details><summary><code>{html.escape(head)}</code></summary>{own}</details>"
    return found


def _opened(
    nodes: list[Mapping[str, Any]],
    line: Callable[[Mapping[str, Any]], str],
    style: Callable[[Mapping[str, Any]], str],
    prefix: str,
) -> Iterator[str]:
    """The claim opened, all below it closed; a node that was shown before is a link to its place."""
    seen: set[int] = set()
    stack: list[tuple[int, int] | str] = [(len(nodes) - 1, 0)]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield item
            continue
        place, depth = item
        node = nodes[place]
        text = f'<code class="{style(node)}">{html.escape(line(node))}</code>'
        if place in seen or len(seen) >= _MOST:
            yield f'<div class="again"><a href="#{prefix}node-{place}">#{place}</a> {text}</div>'
            continue
        seen.add(place)
        if not node["because"]:
            yield f'<div class="leaf" id="{prefix}node-{place}">{text}</div>'
            continue
        yield f'<details id="{prefix}node-{place}"{" open" * (depth < 2)}><summary>{text}</summary>'
        stack.append("</details>")
        stack += [(each, depth + 1) for each in reversed(node["because"])]
