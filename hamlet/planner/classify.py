"""Which variables of which queries an event may be bound to: local predicates, once per distinct one.

An event's *signature* is its type and the set of distinct local predicates that accept it. There are few signatures,
so the kernel looks up what an event does by one small integer. Source: HAMLET (SIGMOD'21) §4.3 (events that
some queries accept and others do not).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hamlet.errors import DataError
from hamlet.input.buffers import filled, to_numpy
from hamlet.input.columns import BatchColumns, Int64Array, KernelColumn, StringPool, column, take
from hamlet.kernel.expression import OverflowInExpression, Program
from hamlet.kernel.radix_sort import looked_up
from hamlet.language.conditions import rewritten
from hamlet.language.printing import to_text
from hamlet.language.query import AttributeType, Condition
from hamlet.planner.program import REFUSED

EVENT = "event"  # stands for any variable where only its events matter
_FEW = 256  # types in a dictionary, all of which are looked up whether an event has them or not
_BITS = 10  # predicates that are told apart at once, by a table
FOREIGN = -1  # signature of an event that no query can match, whatever its attributes


Loads = list[tuple[str, AttributeType | None]]  # the columns that a program reads, and as what

# Small codes of events, negative or beyond the table where there is none; a table: the signature of each code, and
# `FOREIGN` at its end.
Coded = tuple[npt.NDArray[np.signedinteger[Any]], npt.NDArray[np.int32]]


@dataclass(frozen=True, slots=True)
class Role:
    """What accepts events for a variable: a type and a local predicate (None accepts every event of the type)."""

    type: str
    predicate: int | None


@dataclass(frozen=True, slots=True)
class Signature:
    """A type and the local predicates that accept an event."""

    type: str
    accepted: frozenset[int]

    def fits(self, role: Role) -> bool:
        """Whether an event of this signature may be bound to a variable of this role."""
        return role.type == self.type and (role.predicate is None or role.predicate in self.accepted)


def renamed(condition: Condition) -> Condition:
    """A condition with its variable left out, so that equal predicates of differently named variables are one."""
    return rewritten(condition, lambda reference: replace(reference, variable=EVENT))


class Classifier:
    """Finds the signature of every event of a batch.

    Parameters
    ----------
    strings : StringPool
        Numbers the event types.
    """

    def __init__(self, strings: StringPool) -> None:
        self.signatures: list[Signature] = []
        self._strings = strings
        self._predicates: dict[tuple[str, Hashable], int] = {}
        self._programs: list[tuple[Program, Loads]] = []
        self._by_type: dict[str, list[int]] = {}
        self._plain: dict[str, Role] = {}  # by type
        self._numbers: dict[Signature, int] = {}
        self._dictionary: tuple[pa.Array, dict[str, list[int]], npt.NDArray[np.int32]] | None = None  # the last one

    def anew(self, strings: StringPool) -> Classifier:
        """One of the same roles, none of them with a predicate, that has seen no event."""
        found = Classifier(strings)
        found._by_type.update((type, []) for type in self._by_type)
        found._plain.update(self._plain)
        return found

    @property
    def has_programs(self) -> bool:
        """Whether some role has a predicate."""
        return bool(self._programs)

    def plain(self, type: str) -> Role:
        """The role of a variable without a local predicate."""
        role = self._plain.get(type)
        if role is None:
            self._by_type.setdefault(type, [])
            role = self._plain[type] = Role(type, None)
        return role

    def role(
        self,
        type: str,
        conditions: tuple[Condition, ...],
        same: Hashable,
        compile: Callable[[], tuple[Program, Loads]],
    ) -> Role:
        """The role of a variable with a local predicate, which is compiled when it is new.

        Predicates are one where their text is the same, or, where `same` is not None, that (`hamlet.planner.roles`).
        """
        predicates = self._by_type.setdefault(type, [])
        texts = tuple(to_text(renamed(each)) for each in conditions)  # by text: 1, 1.0 and TRUE are equal nodes
        key = (type, texts if same is None else same)
        self._dictionary = None
        if key not in self._predicates:
            self._predicates[key] = len(self._programs)
            self._programs.append(compile())
            predicates.append(self._predicates[key])
        return Role(type, self._predicates[key])

    def classify(self, batch: BatchColumns, type_column: str) -> npt.NDArray[np.int32]:
        """The signature number of each event, `FOREIGN` where its type stands in no pattern; shape (rows,)."""
        return looked_up(*self.coded(batch, type_column))

    def coded(self, batch: BatchColumns, type_column: str) -> Coded:
        """Small codes of the events and the table from codes to signatures, which `classify` looks up."""
        rows = batch.batch.num_rows
        types = column(batch.batch, type_column)
        if types is None or pa.types.is_null(types.type) or rows == 0:
            return np.zeros(rows, np.int8), np.array([FOREIGN], np.int32)
        if not pa.types.is_dictionary(types.type):
            types = types.dictionary_encode()
        elif len(types.dictionary) > max(rows, _FEW):
            types = types.cast(types.type.value_type).dictionary_encode()
        indices = filled(types.indices.cast(pa.int32()), -1) if types.null_count else types.indices
        numbers = to_numpy(indices)
        if numbers.dtype not in (np.int8, np.int16):
            numbers = numbers.astype(np.int32, copy=False)
        places, table = self._of_dictionary(types.dictionary)
        chosen = {type: predicates for type, predicates in self._by_type.items() if type in places and predicates}
        if not chosen:
            return numbers, table
        table = table.copy()
        result = looked_up(numbers, table)
        for type, predicates in chosen.items():
            table[:] = 0
            table[places[type]] = 1
            found = np.nonzero(looked_up(numbers, table))[0]
            if len(found):
                result[found] = self._of_type(batch, type, predicates, found)
        return result, np.append(np.arange(len(self.signatures), dtype=np.int32), np.int32(FOREIGN))

    def _of_dictionary(self, dictionary: pa.Array) -> tuple[dict[str, list[int]], npt.NDArray[np.int32]]:
        """The places of each type in a dictionary, and the signatures of those without predicates, `FOREIGN` last.

        Often it is the dictionary of the batch before.
        """
        if self._dictionary is None or not self._dictionary[0].equals(dictionary):
            places: dict[str, list[int]] = {}
            for place, type in enumerate(dictionary.to_pylist()):
                places.setdefault(type, []).append(place)
            table = np.full(len(dictionary) + 1, FOREIGN, np.int32)  # what has no type stands at its end
            for type, predicates in self._by_type.items():
                if type in places and not predicates:
                    table[places[type]] = self._number(Signature(type, frozenset()))
            self._dictionary = dictionary, places, table
        return self._dictionary[1:]

    def _of_type(
        self, batch: BatchColumns, type: str, predicates: Sequence[int], rows: Int64Array
    ) -> npt.NDArray[np.int32]:
        parts: dict[tuple[str, AttributeType | None], KernelColumn] = {}  # columns of these rows
        codes = np.zeros(len(rows), np.int64)
        accepted: list[frozenset[int]] = [frozenset()]
        for start in range(0, len(predicates), _BITS):
            chunk = predicates[start : start + _BITS]
            for predicate in chunk:
                codes = codes * 2 + self._select(batch, predicate, rows, parts)
            found, codes = _distinct(codes, len(accepted) << len(chunk))
            accepted = [
                accepted[code >> len(chunk)].union(p for bit, p in enumerate(reversed(chunk)) if code >> bit & 1)
                for code in found
            ]
        numbers = [self._number(Signature(type, one)) for one in accepted]
        return np.array(numbers, np.int32)[codes]

    def load(self, signatures: Sequence[Signature]) -> None:
        """Number signatures as another classifier of these roles did; raises ValueError at what is none."""
        self._dictionary = None
        for place, signature in enumerate(signatures):
            known = self._by_type.get(signature.type)
            if known is None or not signature.accepted <= set(known) or self._number(signature) != place:
                raise ValueError("no event can be of such a kind")

    def _number(self, signature: Signature) -> int:
        number = self._numbers.setdefault(signature, len(self.signatures))
        if number == len(self.signatures):
            self.signatures.append(signature)
        return number

    def _select(
        self,
        batch: BatchColumns,
        predicate: int,
        rows: Int64Array,
        parts: dict[tuple[str, AttributeType | None], KernelColumn],
    ) -> npt.NDArray[np.uint8]:
        program, loads = self._programs[predicate]
        for each in loads:
            if each not in parts:
                values = batch.values(*each)
                parts[each] = values if len(rows) == batch.batch.num_rows else take(values, rows)
        try:
            return program.select([parts[each] for each in loads], len(rows), self._strings.ranks)
        except OverflowInExpression as error:
            raise overflow_error(batch.batch, error.text, int(rows[error.row])) from None


def _distinct(codes: Int64Array, limit: int) -> tuple[list[int], Int64Array]:
    """The distinct codes below a limit, and the place of each code among them."""
    if limit > 4 * len(codes) + (1 << _BITS):
        found, places = np.unique(codes, return_inverse=True)
        return found.tolist(), places
    present = np.bincount(codes, minlength=1) > 0
    return np.nonzero(present)[0].tolist(), (np.cumsum(present) - 1)[codes]


def overflow_error(batch: pa.RecordBatch | None, text: str, row: int) -> DataError:
    """INT arithmetic beyond 64 bits, with the expression and the event, if it is at hand."""
    event = {}
    if batch is not None:
        event = {name: batch.column(place)[row].as_py() for place, name in enumerate(batch.schema.names)}
    shown = ", ".join(f"{name}={value!r}" for name, value in event.items() if value is not None)
    if text.startswith(REFUSED):
        return DataError(
            f"{text.removeprefix(REFUSED)}{f', for the event ({shown})' if event else ''}\n"
            "hint: instants are compared and subtracted, durations such as 30 min are added, compared and divided"
        ).about(event=event)
    error = DataError(
        f"{text} passes 64 bits for the event ({shown})\n"
        "hint: use a DOUBLE in the expression (x * 1.0 of a number, d / 1 s of a duration) or leave such events out of "
        "the input"
    )
    return error.about(event=event)
