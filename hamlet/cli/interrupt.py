"""Ctrl-C while the kernel works: Python hears of it when the kernel returns, which may take a batch of events.

A thread of its own hears of it at once, through the pipe that Python's signal handler writes to. Where nothing has come
of it after a moment it says what is being waited for; a second Ctrl-C then ends the process, whatever is under way.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator

from hamlet import starting
from hamlet.runtime.stop import readable

_MOMENT = 1.0  # seconds in which an interrupt usually comes through


@contextlib.contextmanager
def heard_at_once() -> Iterator[None]:
    """Listen for interrupts while the block runs, which raise KeyboardInterrupt there and only there in a command.

    Only in the main thread, for Python's signals are the main thread's.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard, written = os.pipe()
    os.set_blocking(written, False)
    before = signal.set_wakeup_fd(written, warn_on_full_buffer=False)
    ends = signal.getsignal(signal.SIGINT) is starting.end
    over = threading.Event()
    listener = threading.Thread(target=_listen, args=(heard, over), name="interrupts", daemon=True)
    listener.start()
    try:
        if ends:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        yield
    finally:
        if ends:
            signal.signal(signal.SIGINT, starting.end)
        over.set()
        signal.set_wakeup_fd(before)
        os.close(written)  # the listener reads the end of the pipe
        listener.join()
        os.close(heard)


def _listen(heard: int, over: threading.Event) -> None:
    """Read signal numbers until the pipe is closed."""
    interrupts = 0
    while numbers := os.read(heard, 64):
        interrupts += numbers.count(signal.SIGINT)
        if not interrupts:
            continue
        if interrupts > 1:
            _say("ended at once; temporary files may be left behind")
            os._exit(starting.EXIT_CODE)
        if not readable(heard, _MOMENT) and not over.is_set():
            _say("interrupted; ends when what is under way allows it, or at once with another Ctrl-C")


def _say(text: str) -> None:
    """Write to standard error without the locks of the thread that is busy."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.write(sys.stderr.fileno(), f"{text}\n".encode())
