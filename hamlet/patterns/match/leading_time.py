"""The leading column of ORDER BY as a time: what a user promises, and how far behind rows may be."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pyarrow as pa

from hamlet.errors import OptionError
from hamlet.input.ticks import Lateness, seconds_of, ticks_of, time_in_ticks
from hamlet.language.schema import Clock
from hamlet.patterns.clause.statement import Statement
from hamlet.patterns.clause.tree import Clause
from hamlet.patterns.match.evaluate import output_name

_TABLE = re.compile(r"\w+(\s+(AS\s+)?\w+)?\s*", re.IGNORECASE)


def reads_table(text: str, clause: Clause) -> bool:
    """Whether a clause reads a table as it is given."""
    return _TABLE.fullmatch(text, clause.source.start, clause.source.end) is not None


def leading_column(statements: Sequence[Statement]) -> str | None:
    """The column that all clauses are ordered by first, where there is one."""
    clauses = [clause for each in statements for clause in each.clauses if clause.order]
    found = {output_name(each.order[0].expression) for each in clauses}
    return found.pop() if len(found) == 1 else None


@dataclass(frozen=True, slots=True)
class LeadingTime:
    """The times of rows.

    Attributes
    ----------
    text : str
        The leading expression of ORDER BY.
    type : pyarrow.DataType
        What it gives.
    unit : str
        What 1 means where that is an integer.
    """

    text: str
    type: pa.DataType
    unit: str

    @property
    def clock(self) -> Clock | None:
        """How times count; None where they are neither integers nor timestamps."""
        if pa.types.is_timestamp(self.type):
            return Clock(self.text, self.type.unit, self.type)
        return Clock(self.text, self.unit, self.type) if pa.types.is_integer(self.type) else None

    def promise(self, time: Any) -> pa.Scalar:
        """A time as the user gives it, as rows have it.

        Raises
        ------
        OptionError
            If it is no time.
        """
        if self.clock is not None:
            return pa.scalar(time_in_ticks(time, self.clock), pa.int64()).cast(self.type)
        try:
            found = pa.scalar(time).cast(self.type)
            if found.is_valid and not isinstance(time, bool) and found.equals(found):  # NaN is no time
                return found
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            pass
        raise OptionError(f"cannot read {time!r} as a time of '{self.text}' ({self.type})")

    def earlier(self, time: str, lateness: Lateness) -> str:
        """The time in SQL that is earlier by the lateness than another one; of integers no less than all are."""
        behind = self._behind(lateness)
        if behind and pa.types.is_integer(self.type):
            return f"greatest(CAST({time} AS HUGEINT){behind}, {-(2**63)})"
        return f"{time}{behind}"

    def _behind(self, lateness: Lateness) -> str:
        seconds = seconds_of(lateness)
        if self.clock is not None:
            ticks = ticks_of(lateness, self.clock)
            if not self.clock.is_timestamp:
                return f" - {ticks}" if ticks else ""
            microseconds = -(-Fraction(ticks, self.clock.ticks_per_second) * 10**6 // 1)
            return f" - INTERVAL '{microseconds} microseconds'" if ticks else ""
        if seconds is None:
            return f" - {int(lateness)}" if lateness else ""  # type: ignore[arg-type]
        if pa.types.is_date(self.type):
            return f" - INTERVAL '{-(-seconds // 1)} seconds'"
        return f" - {float(seconds)}"
