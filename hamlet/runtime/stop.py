"""Ctrl-C and SIGTERM while a monitor is driven: a request to stop, heard at once; a second one ends the process."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
import weakref
from collections.abc import Callable, Iterator

GRACE = 4.0  # seconds in which what is under way may end


def _closed(*descriptors: int) -> None:
    """Close them, so that a process that drives many monitors does not run out of descriptors."""
    for each in descriptors:
        os.close(each)


def readable(descriptor: int, seconds: float | None) -> bool:
    """Wait until a descriptor can be read, for so many seconds at most; `select.select` knows none beyond 1,023."""
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    return bool(waiting.poll(None if seconds is None else seconds * 1000))


class Stop:
    """Whether somebody has asked to stop.

    Attributes
    ----------
    signal : signal.Signals or None
        What was heard first.
    fd : int
        Can be read once something was heard.
    """

    def __init__(self, say: Callable[[str], None] | None = None) -> None:
        self.signal: signal.Signals | None = None
        self.fd, self._written = os.pipe()
        self._close = weakref.finalize(self, _closed, self.fd, self._written)
        self._say = say or (lambda _: None)
        self.events: Callable[[], int] = lambda: 0
        self._over = threading.Event()

    @property
    def asked(self) -> bool:
        """Whether a signal was heard."""
        return self.signal is not None

    @property
    def exit_code(self) -> int:
        """130 after Ctrl-C, 143 after SIGTERM, 0 where nothing was heard."""
        return 0 if self.signal is None else 128 + int(self.signal)

    def line(self) -> str:
        """What was stopped, and when."""
        assert self.signal is not None
        return f"stopped by {self.signal.name} after {self.events()} events"

    @contextlib.contextmanager
    def listening(self) -> Iterator[Stop]:
        """Hear signals while the block runs; only in the main thread, for Python's signals are its own."""
        if threading.current_thread() is not threading.main_thread():
            yield self
            return
        import pyarrow as pa

        pa.enable_signal_handlers(False)  # or Ctrl-C ends what Arrow reads just then with an error of its own
        heard, wakes = os.pipe()
        os.set_blocking(wakes, False)
        before = signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
        handlers = {each: signal.signal(each, self._hear) for each in (signal.SIGINT, signal.SIGTERM)}
        listener = threading.Thread(target=self._listen, args=(heard,), name="signals", daemon=True)
        listener.start()
        try:
            yield self
        finally:
            self._over.set()
            for each, handler in handlers.items():
                signal.signal(each, handler)
            signal.set_wakeup_fd(before)
            pa.enable_signal_handlers(True)
            os.close(wakes)  # the listener reads the end of the pipe
            listener.join()
            os.close(heard)
            self._close()

    def _hear(self, number: int, _: object) -> None:
        """Hear a signal in the main thread, before it takes the end of a pipe that was closed with it for the end."""
        if self.signal is None:
            self.signal = signal.Signals(number)

    def _listen(self, heard: int) -> None:
        """Read signal numbers until the pipe is closed."""
        first = True
        while True:
            timeout = None if first else GRACE
            if not readable(heard, timeout):
                if not self._over.is_set():
                    with contextlib.suppress(Exception):
                        self._say(f"what was under way took more than {GRACE:g} s: the last rows may not be written")
                    self._end()
                return
            numbers = [each for each in os.read(heard, 64) if each in (signal.SIGINT, signal.SIGTERM)]
            if self._over.is_set():
                return
            for number in numbers:
                if not first:
                    self._end()
                first = False
                if self.signal is None:
                    self.signal = signal.Signals(number)
                os.write(self._written, b"!")

    def _end(self) -> None:
        """End the process, whatever is under way."""
        with contextlib.suppress(Exception):
            self._say(self.line())
        os._exit(self.exit_code)
