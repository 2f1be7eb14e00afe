"""Names that a text expects to meet among the events: types, predicates, inputs, columns."""

from __future__ import annotations

from collections.abc import Iterable

from hamlet.errors import near_miss

NO_EVENTS = "there are no events"

MOST_SEEN = 100_000  # other names that are remembered, for hints


def in_no_relation(events: int) -> list[str]:
    """That some events of a predicate lack a value."""
    counted = "1 event is" if events == 1 else f"{events:,} events are"
    return [f"{counted} in no relation, for want of a value for an attribute of the predicate"] if events else []


def of_no_predicate(events: int) -> list[str]:
    """That some events of a log are of no predicate that is declared."""
    counted = "1 event is" if events == 1 else f"{events:,} events are"
    return [f"{counted} of no predicate of the signature and left out"] if events else []


class Expected:
    """Which of some names have come.

    A run whose events have none of them looks like one in which all is well, so what never came is said.

    Parameters
    ----------
    names : iterable of str

    Attributes
    ----------
    missing : dict of str to None
        Those that have not come, in the order given.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(names := list(names))
        self.missing = dict.fromkeys(names)
        self._others: dict[str, None] = {}

    def see(self, names: Iterable[str]) -> None:
        """Names that have come."""
        for name in names:
            if name in self.missing:
                del self.missing[name]
            elif name not in self._names and len(self._others) < MOST_SEEN:
                self._others[name] = None

    def warnings(self) -> list[str]:
        """What has not come, a sentence each."""
        said = []
        for name in self.missing:
            meant = near_miss(name, self._others)
            said.append(f"{name} never occurs" + ("" if meant is None else f" (did you mean {meant}?)"))
        return said

    def plus(self, other: Expected) -> Expected:
        """What has come to neither of two readers who expect the same names."""
        found = Expected(self._names)
        found.load([name for name in self.missing if name in other.missing], [*self._others, *other._others])
        return found

    def described(self) -> list[list[str]]:
        """What has not come, and other names that have: for a save."""
        return [list(self.missing), list(self._others)]

    def load(self, missing: Iterable[str], others: Iterable[str]) -> None:
        """Go on from what `described` gave."""
        self.missing = {name: None for name in missing if name in self._names}
        self._others = dict.fromkeys(others)
