"""The page that shows what a text of a registered notation will do: ``hamlet explain --html``."""

from __future__ import annotations

import os

from hamlet.notation.notation import Work
from hamlet.output.place import check_place
from hamlet.pages.page import EXAMPLE, render, write

OPTION = "--html"


def write_explanation(work: Work, path: str | os.PathLike[str]) -> None:
    """Write the page; OutputError where it cannot be written there."""
    check_place(path, OPTION, keep=(work.source,), example=EXAMPLE)
    plan = work.plan
    page = render(
        "notation.html",
        (),
        (),
        {},
        workload=work.source,
        name=work.name,
        kind=work.notation.kind,
        text=work.text.strip(),
        steps=plan.steps,
        columns=["time", *plan.rows.names],
        slicer=work.notation.slicer(work.tree),
    )
    write(page, path, OPTION)
