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

_NAME = r"""(\w+|"([^"]|"")+"|`[^`]+`)"""
_TABLE = re.compile(rf"{_NAME}(\.{_NAME})*(\s+(AS\s+)?{_NAME})?\s*", re.IGNORECASE)


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
        try:
            if self.clock is not None:
                return pa.scalar(time_in_ticks(time, self.clock), pa.int64()).cast(self.type)
            found = pa.scalar(time).cast(self.type)
            if found.is_valid and not isinstance(time, bool) and found.equals(found):  # NaN is no time
                return found
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            pass
        raise OptionError(f"cannot read {time!r} as a time of '{self.text}' ({self.type})")

    @property
    def least(self) -> int:
        """The least integer that a time may be."""
        return 0 if pa.types.is_unsigned_integer(self.type) else -(2 ** (self.type.bit_width - 1))

    def earlier(self, time: str, lateness: Lateness) -> str:
        """The time in SQL that is earlier by the lateness than another one, or, where there is none, the least.

        Raises
        ------
        OptionError
            If nothing can be taken off times of this kind.
        """
        behind = self._behind(lateness)
        if not behind:
            return time
        if pa.types.is_integer(self.type):
            return f"greatest(CAST({time} AS HUGEINT){behind}, {self.least})"
        if pa.types.is_decimal(self.type):
            digits, scale = self.type.precision, self.type.scale
            kind, least = f"DECIMAL({digits}, {scale})", f"-{'9' * (digits - scale)}.{'9' * scale}"
            return f"coalesce(TRY_CAST(TRY({time}{behind}) AS {kind}), CAST('{least}' AS {kind}))"
        if pa.types.is_time(self.type):
            return f"CAST(greatest(DATE '1970-01-01' + {time}{behind}, TIMESTAMP '1970-01-01') AS TIME)"
        return f"{time}{behind}"

    def _behind(self, lateness: Lateness) -> str:
        seconds = seconds_of(lateness)
        if self.clock is not None:
            ticks = ticks_of(lateness, self.clock)
            if not self.clock.is_timestamp:
                return f" - {ticks}" if ticks else ""
            microseconds = -(-Fraction(ticks, self.clock.ticks_per_second) * 10**6 // 1)
            return f" - INTERVAL '{microseconds} microseconds'" if ticks else ""
        if not (lateness if seconds is None else seconds):
            return ""
        if seconds is not None and (pa.types.is_date(self.type) or pa.types.is_time(self.type)):
            return f" - INTERVAL '{-(-seconds // 1)} seconds'"
        if pa.types.is_floating(self.type) or pa.types.is_decimal(self.type):
            return f" - {int(lateness) if seconds is None else float(seconds)}"  # type: ignore[arg-type]
        if seconds is None and pa.types.is_date(self.type):
            return f" - {int(lateness)}"  # type: ignore[arg-type]
        hint = "give it as a duration, such as '5 s'" if pa.types.is_time(self.type) else "leave it out"
        raise OptionError(f"lateness={lateness!r} cannot be taken off times of '{self.text}', {self.type}; {hint}")
