"""What a case is made of: an answer that has been checked, and things that are timed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

Rows = list[dict[str, Any]]


@dataclass
class Answer:
    """What the check of a case found out.

    Attributes
    ----------
    checks : list of str
        One sentence for each check that was passed.
    facts : dict
        Sizes without which a time means nothing: events, queries, rows, largest_count_bits, ...
    digest : str
        Of the rows that every timed run has to give again; where the contenders answer several questions, the digests
        of all of them, with blanks between.
    """

    checks: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    digest: str = ""


@dataclass(frozen=True)
class Contender:
    """One thing that is timed.

    Attributes
    ----------
    run : callable
        The timed work.
    rows : callable or None
        Result rows from what `run` returned, not timed; None for a peer that answers another question.
    in_children : bool
        Whether the work is done by child processes, whose memory counts then.
    events : int or None
        How many events it reads, where that is not what the answer's facts say.
    """

    run: Callable[[], Any]
    rows: Callable[[Any], Rows] | None
    in_children: bool = False
    events: int | None = None


class Subject(Protocol):
    """A case inside its process."""

    def answer(self) -> Answer:
        """Check the answer by other means than those that are timed."""
        ...

    def contenders(self) -> Mapping[str, Contender]:
        """What is timed, in turn."""
        ...
