"""The page that shows what a text of a registered notation will do: ``hamlet explain --html``."""

from __future__ import annotations

import os

from hamlet.notation.notation import Work
from hamlet.pages.page import EXPLAINED, render, write


def write_explanation(work: Work, path: str | os.PathLike[str]) -> None:
    """Write the page; OutputError where it cannot be written there."""
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
    write(page, path, EXPLAINED, [work.source])
