"""Which variables of which queries an event may be bound to: local predicates, once per distinct one.

An event's *signature* is its type and the set of distinct local predicates that accept it. There are few signatures,
so the kernel looks up what an event does by one small integer. Source: DESIGN §4; HAMLET (SIGMOD'21) §4.3 (events that
some queries accept and others do not).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hamlet._expression import OverflowInExpression, Program
from hamlet.columns import Int64Array, StringPool, Values, column, take
from hamlet.errors import DataError
from hamlet.language.conditions import rewritten
from hamlet.language.printing import to_text
from hamlet.query import Condition

EVENT = "event"  # stands for any variable where only its events matter
_BITS = 32  # predicates that are told apart at once; the rows of a batch are far below the other 2^31
FOREIGN = -1  # signature of an event that no query can match, whatever its attributes


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
        self._predicates: dict[tuple[str, tuple[str, ...]], int] = {}
        self._programs: list[tuple[Program, list[Callable[[pa.RecordBatch], Values]]]] = []
        self._by_type: dict[str, list[int]] = {}
        self._numbers: dict[Signature, int] = {}

    def role(
        self,
        type: str,
        conditions: tuple[Condition, ...],
        compile: Callable[[], tuple[Program, list[Callable[[pa.RecordBatch], Values]]]],
    ) -> Role:
        """The role of a variable; its predicate is compiled when it is new."""
        predicates = self._by_type.setdefault(type, [])
        if not conditions:
            return Role(type, None)
        key = (type, tuple(to_text(renamed(each)) for each in conditions))  # by text: 1, 1.0 and TRUE are equal nodes
        if key not in self._predicates:
            self._predicates[key] = len(self._programs)
            self._programs.append(compile())
            predicates.append(self._predicates[key])
        return Role(type, self._predicates[key])

    def classify(self, batch: pa.RecordBatch, type_column: str) -> npt.NDArray[np.int32]:
        """The signature number of each event, `FOREIGN` where its type stands in no pattern; shape (rows,)."""
        result = np.full(batch.num_rows, FOREIGN, np.int32)
        types = column(batch, type_column)
        if types is None or pa.types.is_null(types.type):
            return result
        numbers, valid = self._strings.encode(types)
        for type, predicates in self._by_type.items():
            chosen = numbers == self._strings.number(type)
            if valid is not None:
                chosen &= valid != 0
            rows = np.nonzero(chosen)[0]
            if len(rows):
                result[rows] = self._of_type(batch, type, predicates, rows)
        return result

    def _of_type(
        self, batch: pa.RecordBatch, type: str, predicates: Sequence[int], rows: Int64Array
    ) -> npt.NDArray[np.int32]:
        codes = np.zeros(len(rows), np.int64)
        accepted: list[frozenset[int]] = [frozenset()]
        for start in range(0, len(predicates), _BITS):
            chunk = predicates[start : start + _BITS]
            for predicate in chunk:
                codes = codes * 2 + self._select(batch, predicate, rows)
            found, codes = np.unique(codes, return_inverse=True)
            accepted = [
                accepted[code >> len(chunk)].union(p for bit, p in enumerate(reversed(chunk)) if code >> bit & 1)
                for code in found.tolist()
            ]
        numbers = [self._number(Signature(type, one)) for one in accepted]
        return np.array(numbers, np.int32)[codes]

    def load(self, signatures: Sequence[Signature]) -> None:
        """Number signatures as another classifier of these roles did; raises ValueError at what is none."""
        for place, signature in enumerate(signatures):
            known = self._by_type.get(signature.type)
            if known is None or not signature.accepted <= set(known) or self._number(signature) != place:
                raise ValueError("no event can be of such a kind")

    def _number(self, signature: Signature) -> int:
        number = self._numbers.setdefault(signature, len(self.signatures))
        if number == len(self.signatures):
            self.signatures.append(signature)
        return number

    def _select(self, batch: pa.RecordBatch, predicate: int, rows: Int64Array) -> npt.NDArray[np.uint8]:
        program, loads = self._programs[predicate]
        columns = [take(load(batch), rows) for load in loads]
        try:
            return program.select(columns, len(rows), self._strings.ranks)
        except OverflowInExpression as error:
            raise overflow_error(batch, error.text, int(rows[error.row])) from None


def overflow_error(batch: pa.RecordBatch, text: str, row: int) -> DataError:
    """INT arithmetic beyond 64 bits, with the expression and the event (LANGUAGE §5)."""
    event = {name: batch.column(place)[row].as_py() for place, name in enumerate(batch.schema.names)}
    shown = ", ".join(f"{name}={value!r}" for name, value in event.items() if value is not None)
    return DataError(
        f"{text} passes 64 bits for the event ({shown})\n"
        "hint: use a DOUBLE in the expression (multiply by 1.0, say) or leave such events out with a predicate before"
    )
