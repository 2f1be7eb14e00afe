"""How far a call over events is: a bar on a terminal or in a notebook, or a function of the caller's."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

Advance = Callable[[int], None]
Progress = Advance | bool | None
_GRACE = 1.0  # seconds before a bar appears: a short run shows none


@contextlib.contextmanager
def showing(progress: Progress, total: int | None) -> Iterator[Advance | None]:
    """What a call tells how many events it has read, while the block runs; None where nobody wants to know.

    Parameters
    ----------
    progress : callable or bool, optional
        A function that gets the number; True for a bar, False for none. By default notebooks have a bar.
    total : int or None
        Number of events, where it is known.
    """
    if callable(progress):
        yield progress
    elif progress or (progress is None and in_notebook()):
        with contextlib.ExitStack() as stack:
            yield _late_bar(stack, total)
    else:
        yield None


def in_notebook() -> bool:
    """Whether this process computes for a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


def _late_bar(stack: contextlib.ExitStack, total: int | None) -> Advance:
    """A bar that appears when a run turns out to be no short one."""
    began = time.monotonic()
    advance: Advance | None = None

    def told(done: int) -> None:
        nonlocal advance
        if advance is None and time.monotonic() - began >= _GRACE:
            advance = stack.enter_context(bar(total))
        if advance is not None:
            advance(done)

    return told


@contextlib.contextmanager
def bar(total: int | None) -> Iterator[Advance]:
    """A progress bar, on standard error or in the notebook, while the block runs.

    Parameters
    ----------
    total : int or None
        Number of events, where it is known.

    Yields
    ------
    callable
        To be called with the number of events read so far.
    """
    from rich.console import Console  # takes longer to import than a small run may take
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[counted]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(_doing(0, total), total=total, counted=counted(0, total, None))
        speed = shown.tasks[task]

        def advance(done: int) -> None:
            rate = counted(done, total, speed.speed)
            shown.update(task, completed=done, counted=rate, description=_doing(done, total))

        yield advance


def _doing(done: int, total: int | None) -> str:
    """What a run does: events that were read last may still be under way when all are read."""
    return "reading events" if total is None or done < total else "counting trends"


def counted(done: int, total: int | None, speed: float | None) -> str:
    """How far reading is and how fast it goes.

    Examples
    --------
    >>> counted(1_500_000, 3_000_000, 2_345_678.9)
    '1,500,000 of 3,000,000, 2.3 M/s'
    """
    text = f"{done:,}" + (f" of {total:,}" if total is not None else "")
    if speed is None:
        return text
    for size, unit in ((1e6, "M/s"), (1e3, "k/s")):
        if speed >= size:
            return f"{text}, {speed / size:.1f} {unit}"
    return f"{text}, {speed:.0f}/s"
