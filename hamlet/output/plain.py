"""Values of rows in plain JSON."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from hamlet.output.digits import decimal_digits

_LONGEST = 1 << 63


def json_value(value: Any) -> Any:
    """A value as evidence has it: integers beyond 64 bits as digits, times as in result rows."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int):
        return value if -_LONGEST <= value < _LONGEST else decimal_digits(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else "nan" if value != value else "inf" if value > 0 else "-inf"
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return [json_value(each) for each in value]
    if isinstance(value, Mapping):
        return {name: json_value(each) for name, each in value.items()}
    return str(value)
