"""The operators and features of the engine by name, and a choice of them for tests and measurements.

An *operator* computes queries. Each takes what a faster one cannot, so that ``scalar`` and ``event_store`` are always
there. A *feature* is a faster way to do a part of the work. Results depend on neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from hamlet import _core
from hamlet.errors import OptionError, one_of
from hamlet.kernel.operators.pane_matrix import limb_matrices

if TYPE_CHECKING:
    from hamlet.planner.tables import QueryTables

Operator = str  # a key of `OPERATORS`
Feature = Literal[
    "active_queries",
    "int32",
    "row_columns",
    "run_length",
    "bytes",
    "bursts_at_once",
    "deferred_bursts",
    "plain_doubles",
    "index",
    "event_maps",
    "avx2",
    "avx512",
    "merged_queries",
    "time_partitions",
]

# Operators of their own module that have one query by itself, tried in this order before `scalar`: a module says what
# it is (NAME, WHAT), and by the tables of a query whether it can serve it (`serves`).
ALONE = (limb_matrices,)

OPERATORS: Mapping[str, str] = {
    "scalar": "one query by itself, its sums per open window; numbers of any size",
    "event_store": "one query by itself that compares events with earlier ones, which are kept",
    **{each.NAME: each.WHAT for each in ALONE},
    "simd": "queries side by side, one element of a vector each",
    "pane_matrix": "the same, a pane computed once as a matrix for all windows that overlap in it",
    "complete_window": "tumbling windows that are complete in a batch, from first event to last in registers",
    "matching": "other semantics, bounds on trends, sessions, distinct values: partial trends move from state to state",
}
ALWAYS = ("scalar", "event_store", "matching")

FEATURES: Mapping[str, str] = {
    "active_queries": "complete_window takes only the queries that the types of a window's events can bring to an end",
    "int32": "complete_window takes twice as many queries per vector where a window's numbers are small (AVX2)",
    "row_columns": "rows of whole windows are written column by column, in their final order",
    "run_length": "a batch is read once, with one open run of like events per key, instead of being sorted",
    "bytes": "run_length reads keys and classes of events as bytes",
    "bursts_at_once": "simd: a burst takes effect, which tells whom it concerns, and then it is decided who shares it",
    "deferred_bursts": "exact numbers: bursts of a query are added up first, and applied to its long numbers once",
    "plain_doubles": "simd, numbers='float': doubles have no exponents of their own until they grow large",
    "index": "event_store finds earlier events by ordered sums instead of looking at each",
    "event_maps": "pane_matrix: events of a pane become a matrix at once, whose cells stay in registers",
    "avx2": "simd, pane_matrix and complete_window use vectors of 256 bits",
    "avx512": "the same with 512 bits; only together with avx2",
    "merged_queries": "queries that differ in RETURN only, or begin alike, are computed once",
    "time_partitions": "threads compute stretches of the stream side by side, and not only groups",
}


@dataclass(frozen=True)
class Paths:
    """The operators and features that a run may use.

    Parameters
    ----------
    operators, features : frozenset of str or None
        Names from `OPERATORS` and `FEATURES`; None for all of them.
    """

    operators: frozenset[str] | None = None
    features: frozenset[str] | None = None

    def runs(self, operator: Operator) -> bool:
        """Whether an operator may be used."""
        if operator == "pane_matrix" or operator == "complete_window":
            return self._has(self.operators, operator) and self._has(self.operators, "simd")
        return operator in ALWAYS or self._has(self.operators, operator)

    def uses(self, feature: Feature) -> bool:
        """Whether a feature may be used."""
        return self._has(self.features, feature)

    @staticmethod
    def _has(chosen: frozenset[str] | None, name: str) -> bool:
        return chosen is None or name in chosen

    @cached_property
    def operator_bits(self) -> int:
        """The operators as the kernel takes them."""
        return sum(1 << number for name, number in _core.OPERATORS.items() if self.runs(name))

    def alone(self, tables: QueryTables) -> Operator:
        """Who has a query by itself: where it is in no band, or its numbers are too large for one."""
        for each in ALONE:
            if self.runs(each.NAME) and each.serves(tables):
                return str(each.NAME)
        return "event_store" if tables.stores else "scalar"

    @cached_property
    def feature_bits(self) -> int:
        """The features of the kernel as it takes them."""
        return sum(1 << bit for name, bit in _core.FEATURES.items() if self._has(self.features, name))


EVERY = Paths()


def names_of(option: str, given: str | Iterable[str] | None, known: Mapping[str, str]) -> str | None:
    """A choice of operators or features as text: names with commas between, in the order of `known`.

    Parameters
    ----------
    option : str
        Its name, for messages.
    given : str, iterable of str, or None
        Names, or one text with commas between them; None for all.
    known : mapping of str to str

    Raises
    ------
    OptionError
        There is none of a name.

    Examples
    --------
    >>> names_of("operators", ["simd", "scalar"], OPERATORS), names_of("operators", "scalar, simd", OPERATORS)
    ('scalar,simd', 'scalar,simd')
    """
    if given is None:
        return None
    try:
        names = [each.strip() for each in (given.split(",") if isinstance(given, str) else given)]
    except (AttributeError, TypeError):
        raise OptionError(f"{option} is {given!r}; it must be names, such as {', '.join(list(known)[:2])}") from None
    for name in names:
        if name and name not in known:
            raise OptionError(f"{option} has {name!r}; the {option} are {one_of([repr(each) for each in known])}")
    return ",".join(name for name in known if name in names)


def paths_of(operators: str | None, features: str | None) -> Paths:
    """The choice that two options make, each as `names_of` gives it."""
    if operators is None and features is None:
        return EVERY
    chosen = [None if given is None else frozenset(given.split(",")) for given in (operators, features)]
    return Paths(*chosen)
