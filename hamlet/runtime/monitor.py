"""The protocol of everything that takes events as they come.

A notation says how events are taken (`_push`), how time goes on without them (`_advance`), how a stream ends (`_end`),
what it is as bytes (`_saved`) and what it keeps (`_held`); all else is the same for all of them and stands here: one
call at a time, what is refused after the end, and what becomes of a monitor whose call fails.
"""

from __future__ import annotations

import os
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Generic, Self, TypedDict, TypeVar

from hamlet.errors import HamletError

Given = TypeVar("Given")
Part = TypeVar("Part")
Row = dict[str, Any]


class Held(TypedDict):
    """What a monitor keeps.

    Attributes
    ----------
    rows : int
        Events that are held back, and what is kept of earlier ones.
    bytes : int
        All that counts against ``max_memory``.
    """

    rows: int
    bytes: int


class Monitor(ABC):
    """Takes events in batches of any size, and gives rows as soon as they are final.

    The same events give the same rows in whatever batches they come. Several threads may use one monitor: their calls
    wait for each other. Used in a ``with`` block it is closed at the end of the block, but not after an exception;
    `rest` has the rows of that.

    Attributes
    ----------
    rest : list of dict
        The rows that the end of a ``with`` block gave.
    """

    _called = "monitor"

    def __init__(self) -> None:
        self.rest: list[Row] = []
        self._lock = threading.RLock()
        _MADE.add(self)
        self._closed = False
        self._failed: str | None = None  # the error after which it cannot go on

    # ------------------------------------------------------------------------------------------ the public face

    def push(self, events: Any) -> list[Row]:
        """Take a batch of events; give the rows that are final by it.

        Parameters
        ----------
        events : pyarrow Table or RecordBatch, DataFrame, dict of columns, iterable of dicts
            In any order within the lateness.

        Raises
        ------
        DataError
            A late event, a NULL time, a column that is missing or changes its type: nothing of the batch is taken.
        HamletError
            It is closed, or is closed by this, as the message says.
        """
        return self._do(partial(self._push, events))

    def advance(self, time: Any) -> list[Row]:
        """Promise that no event before a time will come; give the rows that are final by that.

        An event at that time may still come, and a time before one that was promised changes nothing.

        Parameters
        ----------
        time : int, float, str, datetime or numpy.datetime64
            As the time column has it.
        """
        return self._do(partial(self._advance, time))

    def close(self) -> list[Row]:
        """End the stream; give the rows that are left, none where it is closed already."""
        with self._lock:
            if self._closed or self._failed is not None:
                return []
            rows = self._do(self._end)
            self._closed = True
            return rows

    def save(self) -> bytes:
        """All that it is, as bytes for `restore`: going on from there is as if it had never stopped.

        Raises
        ------
        HamletError
            It is closed.
        """
        return self._do(self._saved)

    @property
    @abstractmethod
    def stats(self) -> Mapping[str, Any]:
        """Counters of the run so far."""

    @property
    def held(self) -> Held:
        """What is kept now."""
        with self._lock:
            rows, size = (0, 0) if self._closed or self._failed is not None else self._held()
            return {"rows": rows, "bytes": size}

    @property
    @abstractmethod
    def warnings(self) -> list[str]:
        """What was probably not meant, a sentence each: types, predicates, inputs and columns that never came."""

    def explain(self) -> str:
        """How it runs: the text of ``hamlet explain``."""
        texts = self._text if isinstance(self._text, list) else [self._text]
        return "\n\n".join(each.explain() for each in texts)

    def _repr_html_(self) -> str:
        """The text that runs and what is kept, for a notebook."""
        texts = self._text if isinstance(self._text, list) else [self._text]
        kept = (
            "closed"
            if self._closed or self._failed is not None
            else "{rows:,} rows, {bytes:,} bytes".format(**self.held)
        )
        return "".join(each._repr_html_() for each in texts) + f"<p>kept: {kept}</p>"

    def __repr__(self) -> str:
        texts = self._text if isinstance(self._text, list) else [self._text]
        kept = "closed" if self._closed or self._failed is not None else f"{self.held['rows']:,} rows kept"
        return f"<{type(self).__name__} of {', '.join(map(repr, texts))}, {kept}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.rest = self.close()

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return type(self).restore, (self._text, self.save())  # type: ignore[attr-defined]

    # --------------------------------------------------------------------------------------- what a notation says

    @property
    @abstractmethod
    def _text(self) -> Any:
        """What `restore` takes beside the bytes."""

    @abstractmethod
    def _push(self, events: Any) -> list[Row]:
        """Take events, for `push`; what changes the monitor stands in `_working`."""

    @abstractmethod
    def _advance(self, time: Any) -> list[Row]:
        """Let time go on, for `advance`."""

    @abstractmethod
    def _end(self) -> list[Row]:
        """Give what is left, for `close`."""

    @abstractmethod
    def _saved(self) -> bytes:
        """Give the bytes, for `save`."""

    @abstractmethod
    def _held(self) -> tuple[int, int]:
        """Rows and bytes that are kept."""

    # ------------------------------------------------------------------------------------------ calls that fail

    def _do(self, work: Callable[[], Given]) -> Given:
        """One call at a time; an error after which the monitor cannot go on says so."""
        with self._lock:
            self._refuse_closed()
            try:
                return work()
            except BaseException as error:
                if self._failed is not None:
                    self._say_closed(error)
                raise

    @contextmanager
    def _working(self) -> Iterator[None]:
        """Whatever goes wrong inside ends the monitor: events may be taken in part, by an interrupt too."""
        try:
            yield
        except BaseException as error:
            self._failed = str(error) or type(error).__name__
            raise

    def _refuse_closed(self) -> None:
        if self._closed:
            raise HamletError(f"the {self._called} is closed; make a new one for another stream")
        if self._failed is not None:
            raise HamletError(f"the {self._called} is closed: it cannot go on after an error: {self._failed}")

    def _say_closed(self, error: BaseException) -> None:
        told = f"the {self._called} is closed by this; make a new one, or restore a save"
        if isinstance(error, HamletError) and len(error.args) == 1 and isinstance(error.args[0], str):
            message, mark, hint = error.args[0].partition("\nhint:")
            error.args = (f"{message}\n{told}{mark}{hint}",)
        else:
            error.add_note(told)


class BatchMonitor(Monitor, Generic[Part]):
    """A monitor whose rows have a form of their own before they are dicts, and may be taken in it.

    A notation says how these batches come (`_pushed`, `_advanced`, `_ended`) and how they become rows (`_dicts`).
    """

    def push_batches(self, events: Any) -> list[Part]:
        """Push events; the rows as batches."""
        return self._do(partial(self._pushed, events))

    def advance_batches(self, time: Any) -> list[Part]:
        """Promise that no earlier event follows; the rows as batches."""
        return self._do(partial(self._advanced, time))

    def close_batches(self) -> list[Part]:
        """End the stream; the rows as batches."""
        rows = self._do(self._ended)
        self._closed = True
        return rows

    def _push(self, events: Any) -> list[Row]:
        return self._dicts(self._pushed(events))

    def _advance(self, time: Any) -> list[Row]:
        return self._dicts(self._advanced(time))

    def _end(self) -> list[Row]:
        return self._dicts(self._ended())

    @abstractmethod
    def _pushed(self, events: Any) -> list[Part]:
        """Take events."""

    @abstractmethod
    def _advanced(self, time: Any) -> list[Part]:
        """Let time go on."""

    @abstractmethod
    def _ended(self) -> list[Part]:
        """Give what is left."""

    @abstractmethod
    def _dicts(self, parts: list[Part]) -> list[Row]:
        """Batches as rows."""


_MADE: weakref.WeakSet[Monitor] = weakref.WeakSet()


def _forked() -> None:
    """In a process that was forked: threads that were in a call are not there, and never end it."""
    for monitor in list(_MADE):
        if monitor._lock.acquire(blocking=False):
            monitor._lock.release()
        else:
            monitor._lock = threading.RLock()
            monitor._failed = "the process was forked while another thread was in a call of it"


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def begun(kind: Any, work: Any, options: Mapping[str, Any], saved: bytes | None) -> Any:
    """A monitor of a kind with these options, or one that goes on where it was saved, with their limit of memory."""
    if saved is None:
        return kind(work, **options)
    return kind.restore(work, saved, max_memory=options.get("max_memory"))
