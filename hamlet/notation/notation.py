"""A notation is six things: syntax, checker, planner, monitor, slicer, oracle.

A class that has them is registered (`hamlet.cli.notations.register`); then its files are checked, run, followed,
explained, shown and submitted as those of the notations that are built in.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

import pyarrow as pa

from hamlet.errors import Diagnostic, WorkloadError
from hamlet.frontend.cursor import TooManyProblemsError
from hamlet.frontend.files import text_of_file
from hamlet.frontend.reports import Reports

Json = Any
Row = dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """What a text will do, known before events are read.

    Attributes
    ----------
    columns : tuple of str
        What is read of an event beside its time, type and order.
    types : tuple of str
        The types of events that matter.
    rows : pyarrow.Schema
        The columns of rows behind ``time``.
    steps : tuple of (str, str)
        What is done, and what is kept for it: the lines of ``hamlet explain``.
    """

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: pa.Schema
    steps: tuple[tuple[str, str], ...]


class Evaluator(Protocol):
    """What takes the events of one time after the other."""

    def step(self, events: pa.RecordBatch) -> list[Row]:
        """Take all events of one time; the rows of that time, without it."""
        ...

    def state(self) -> Json:
        """All that it is, as JSON has it."""
        ...

    def load(self, state: Json) -> None:
        """Go on from what `state` gave; ValueError where it is none."""
        ...

    def held(self) -> tuple[int, int]:
        """Entries and bytes that are kept."""
        ...


class Notation(ABC):
    """The six things, and what the notation is called.

    Attributes
    ----------
    extension : str
        Of its files, with the point.
    kind : str
        One text of it, in a word: what folders and columns of rows are called after.
    metavar : str
        Its files in a command's usage.
    """

    extension: ClassVar[str]
    kind: ClassVar[str]
    metavar: ClassVar[str]

    @abstractmethod
    def parse(self, reports: Reports) -> Any:
        """The syntax tree of the reports' text; mistakes are reported."""

    @abstractmethod
    def check(self, tree: Any, reports: Reports) -> None:
        """Report what is wrong with the meaning of a tree."""

    @abstractmethod
    def plan(self, tree: Any) -> Plan:
        """What the tree will do."""

    @abstractmethod
    def evaluator(self, tree: Any) -> Evaluator:
        """What a monitor drives."""

    @abstractmethod
    def slicer(self, tree: Any) -> str | None:
        """The column such that events with different values of it never meet; None where all events may meet."""

    @abstractmethod
    def oracle(self, tree: Any, events: Iterable[Mapping[str, Any]]) -> list[Row]:
        """The rows by brute force."""

    def read(self, text: str, source: str | None = None, name: str | None = None) -> Work:
        """A text, parsed and checked.

        Raises
        ------
        WorkloadError
            With every mistake of the text.
        """
        reports = Reports(text, source or f"<{self.kind}>")
        tree = None
        try:
            tree = self.parse(reports)
            if not reports.errors:
                self.check(tree, reports)
        except TooManyProblemsError:
            pass
        if reports.errors:
            raise WorkloadError(reports.errors)
        return Work(self, name or self.kind, text, reports.source, tree, tuple(reports.warnings))

    def read_file(self, path: str) -> Work:
        """The text of a file, parsed and checked.

        Raises
        ------
        OptionError
            If it cannot be read.
        WorkloadError
            With every mistake of the text.
        """
        return self.read(text_of_file(path, "file"), path, Path(path).stem)


@dataclass(frozen=True)
class Work:
    """A text that has been parsed and checked.

    Attributes
    ----------
    notation : Notation
    name : str
        What its rows are of.
    text, source : str
    tree : any
        Of the notation; its `str` says the same as the text, without comments and layout.
    warnings : tuple of Diagnostic
    """

    notation: Notation
    name: str
    text: str
    source: str
    tree: Any
    warnings: tuple[Diagnostic, ...] = ()

    @property
    def plan(self) -> Plan:
        """What it will do."""
        return self.notation.plan(self.tree)

    def explain(self) -> str:
        """The text of ``hamlet explain``."""
        plan = self.plan
        lines = [f"{self.name} ({self.source}): rows of {', '.join(['time', *plan.rows.names])}"]
        slicer = self.notation.slicer(self.tree)
        lines += [f"  {step}; keeps {kept}" for step, kept in plan.steps]
        lines.append("  on Spark: one slice" if slicer is None else f"  on Spark: sliced by {slicer}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(self.explain())}</pre>"


def names_of(works: Sequence[Work]) -> list[str]:
    """What the rows of works are of."""
    return [each.name for each in works]
