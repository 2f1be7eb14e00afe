"""Times as sources have them, as the clocks that events are ordered by: here and nowhere else.

An event's time is an integer in the time unit, a timestamp, or a number of seconds with a fraction, whatever the source
is and however it writes it: text is any of the three (``12``, ``0.5``, ``2024-03-05``, ``2024-03-05T10:00:00+02:00``,
all with a zone or all without), floats and decimals with digits behind the point are seconds. Seconds are counted in
nanoseconds (`FRACTION`); what nanoseconds cannot hold is an error that names the event. A float is the decimal that is
written for it, so that 0.1 is a tenth of a second, and 0.1 + 0.2 three.

Source: docs/numbers.md ("Time and order").
"""

from __future__ import annotations

import math
import re
from decimal import Decimal, InvalidOperation
from typing import Any

from hamlet.arrays import np, npt, pa, pc
from hamlet.errors import DataError
from hamlet.frontend.units import decimal_text
from hamlet.input.buffers import from_numpy, to_numpy
from hamlet.input.widening import EXACT_SECONDS, FRACTION, is_text
from hamlet.language.schema import MOST_TICKS

_ZONED = r"(Z|[+-]\d\d(:?\d\d)?)$"
_WHOLE = r"^[+-]?[0-9]+$"
NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)
_NANOSECONDS = 1_000_000_000
_CERTAIN = 2.0**52  # nanoseconds, below which a product of doubles is the nearest whole number
_SLACK = 0.01  # nanoseconds that sums of floats may be off
FORMS = "integers, seconds such as 0.5, or timestamps such as 2024-01-31T12:00:00, all with a zone or all without"


class NoTimeError(ValueError):
    """A value is no time.

    Attributes
    ----------
    row : int
        Its place.
    why : str
        What is wrong with it.
    """

    def __init__(self, row: int, value: Any, why: str = f"which is no time: times are {FORMS}") -> None:
        super().__init__(f"{value!r}" if isinstance(value, str) else f"{value}")
        self.row, self.why = row, why


def needs_reading(kind: pa.DataType) -> bool:
    """Whether a time column of this type is text, or numbers with a fraction."""
    if pa.types.is_dictionary(kind):
        return needs_reading(kind.value_type)
    numbers = pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return is_text(kind) or bool(numbers) or (bool(pa.types.is_duration(kind)) and kind != FRACTION)


def with_moments(
    table: pa.Table,
    time_column: str,
    time_unit: str,
    first_event: int = 0,
    *,
    known: pa.DataType | None = None,
    source: str | None = None,
) -> pa.Table:
    """A table with a clock in place of its time column: integers, timestamps, or seconds (`FRACTION`).

    Parameters
    ----------
    table : pyarrow.Table
    time_column : str
    time_unit : {'s', 'ms', 'us', 'ns'}
        What an integer counts.
    first_event : int
        How many events came before these, for messages.
    known : pyarrow.DataType, optional
        The clock of the events before, which these have to keep to.
    source : str, optional
        The file that they come from.

    Raises
    ------
    DataError
        At the first value that is no time, or none of the same kind as before.
    """
    place = table.schema.get_field_index(time_column)
    if place < 0:
        return table
    column = table.column(place)
    if not table.num_rows:
        return table.set_column(place, time_column, pa.array([], clock_of_nothing(column.type)))
    if not needs_reading(column.type) and (known is None or column.type.equals(known)):
        return table
    try:
        values = _kept(clock_of(column), known, time_unit)
    except NoTimeError as error:
        row = first_event + error.row + 1
        which = f"event {row}" if source is None else f"row {row} (the first row is 1)"
        raise DataError(
            f"{'' if source is None else f'{source}: '}the time column '{time_column}' holds {error} in {which}, "
            f"{error.why}"
        ).about(row=row, column=time_column) from None
    return table.set_column(place, time_column, values)


def clock_of_nothing(kind: pa.DataType) -> pa.DataType:
    """The clock that a time column of a type is which has no rows."""
    return (kind_of(kind) or pa.null()) if needs_reading(kind) else kind


def kind_of(kind: pa.DataType) -> pa.DataType | None:
    """The clock that a time column of text or fractions becomes; None where its values say."""
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    if is_text(value):
        return None
    return pa.int64() if pa.types.is_decimal(value) and value.scale <= 0 else FRACTION


def clock_of(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Times of any form as integers, timestamps or seconds; NaN is NULL."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if is_text(kind):
        return _of_text(pc.utf8_trim_whitespace(column.cast(pa.string())))
    if pa.types.is_duration(kind):
        return column.cast(FRACTION)
    if pa.types.is_decimal(kind) and kind.scale <= 0:
        return _whole(column.cast(pa.string()))
    if pa.types.is_decimal(kind):
        return pa.chunked_array([_of_decimals(column)], FRACTION)
    if pa.types.is_floating(kind):
        return pa.chunked_array([_of_floats(column)], FRACTION)
    return column


def no_times(texts: pa.ChunkedArray) -> list[int]:
    """The rows of texts that are no time by themselves; NULL is none that is wrong."""
    try:
        clock_of(texts)
    except NoTimeError:
        return [row for row, text in enumerate(texts) if text.is_valid and not _is_time(text)]
    return []


def _is_time(text: pa.Scalar) -> bool:
    try:
        clock_of(pa.chunked_array([[text.as_py()]]))
    except NoTimeError:
        return False
    return True


def _kept(values: pa.ChunkedArray, known: pa.DataType | None, unit: str) -> pa.ChunkedArray:
    """Times in the clock of the events before, where they are whole seconds among fractions or the reverse."""
    kind = values.type
    if known is None or kind.equals(known) or pa.types.is_null(kind):
        return values
    if known == FRACTION and pa.types.is_integer(kind):
        return in_seconds(values)
    if kind == FRACTION and pa.types.is_integer(known):
        ticks = values.cast(pa.int64())
        whole = pc.multiply(pc.divide(ticks, _NANOSECONDS), _NANOSECONDS)
        row = pc.index(pc.not_equal(ticks, whole) if unit == "s" else ticks.is_valid(), True).as_py()
        if row >= 0:
            were = f"and the events before have integers, in {unit}"
            raise NoTimeError(
                row, Decimal(decimal_text(ticks[row].as_py())), f"{were}; give all times with a point, or none"
            )
        return pc.divide(ticks, _NANOSECONDS)
    return values


def as_seconds(column: Any, name: str) -> Any:
    """Times of any form but timestamps as seconds with a fraction, an array of an array.

    Raises
    ------
    DataError
        At one that is none.
    """
    whole = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    try:
        found = clock_of(whole)
        found = in_seconds(found) if pa.types.is_integer(found.type) else found
    except NoTimeError as error:
        raise DataError(f"the time column '{name}' holds {error}, {error.why}").about(column=name) from None
    if found.type != FRACTION:
        raise DataError(f"the time column '{name}' holds {column.type} among seconds with a fraction")
    return found if column is whole else joined(found)


def joined(column: pa.ChunkedArray) -> pa.Array:
    """The chunks of a column as one array."""
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def in_seconds(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Integers, among times with a fraction, as the seconds that they are."""
    most = MOST_TICKS // _NANOSECONDS
    ticks = values.cast(pa.int64())
    far = pc.index(pc.or_(pc.greater(ticks, most), pc.less(ticks, -most)), True).as_py()
    if far >= 0:
        raise NoTimeError(far, values[far].as_py(), _FAR)
    return pc.multiply(ticks, _NANOSECONDS).cast(FRACTION)


_FINE = "which has digits that nanoseconds cannot hold\nhint: round times to nine digits behind the point"
_FAR = "which is more than 2^61 nanoseconds\nhint: times with a fraction are seconds"


def seconds(ticks: pa.Array) -> pa.Array:
    """Nanoseconds, as integers or as `FRACTION`, as seconds in doubles: how results show them."""
    whole = ticks.cast(pa.int64())
    if (pc.max(pc.abs(whole)).as_py() or 0) < 2**53:
        return pc.divide(whole.cast(pa.float64()), float(_NANOSECONDS))
    return pa.array([None if each is None else each / _NANOSECONDS for each in whole.to_pylist()], pa.float64())


def shown(ticks: pa.Array, kind: pa.DataType) -> pa.Array:
    """Ticks as times in results (`Clock.shown_type`)."""
    if ticks.type.equals(kind):
        return ticks
    return seconds(ticks) if pa.types.is_floating(kind) else ticks.cast(kind)


# ------------------------------------------------------------------------------------------------------------- numbers


_NANOSECOND = Decimal(1).scaleb(-9)


def nanoseconds_of(value: Any) -> int:
    """A number of seconds in nanoseconds.

    Raises
    ------
    ValueError
        If it is no number, or one that nanoseconds cannot hold.
    """
    if isinstance(value, (float, np.floating)):
        ticks = np.zeros(1, np.int64)
        _float_ticks(np.array([float(str(value))]), ticks, _spacing(value))
        return int(ticks[0])
    return _exact(0, value)


def times_of(values: Any, name: str, first_event: int) -> pa.Array:
    """Numbers of seconds of any kind, None for NULL, with all their digits (`EXACT_SECONDS`).

    Raises
    ------
    DataError
        At one that nanoseconds cannot hold.
    """
    found: list[Decimal | None] = []
    for row, value in enumerate(values):
        try:
            missing = value is None or value != value
            found.append(None if missing else Decimal(nanoseconds_of(value)).scaleb(-9))
        except NoTimeError as error:
            row += first_event + 1
            raise DataError(f"the time column '{name}' holds {error} in event {row}, {error.why}").about(
                row=row, column=name
            ) from None
    return pa.array(found, EXACT_SECONDS)


def _exact(row: int, value: Any) -> int:
    try:
        number = Decimal(value.strip() if isinstance(value, str) else value)
        if not number.is_finite():
            raise InvalidOperation
    except (InvalidOperation, TypeError, ValueError):
        raise NoTimeError(row, value) from None
    if number and number.adjusted() > 12:
        raise NoTimeError(row, value, _FAR)
    _, digits, exponent = number.as_tuple()
    if int(exponent) < -9 and any(digits[9 + int(exponent) :]):  # all digits count, more than a context keeps
        raise NoTimeError(row, value, _FINE)
    nanoseconds = number.quantize(_NANOSECOND).scaleb(9)
    if abs(nanoseconds) > MOST_TICKS:
        raise NoTimeError(row, value, _FAR)
    return int(nanoseconds)


def _of_floats(column: pa.ChunkedArray) -> pa.Array:
    """Seconds of floats; those of 32 bits are the decimals that are written for them, as all are."""
    missing: npt.NDArray[np.bool_] = to_numpy(pc.is_null(column, nan_is_null=True))
    doubles = column
    spacing: Any = 0.0
    if not pa.types.is_float64(column.type):
        spacing = np.spacing(to_numpy(column.cast(pa.float32()))).astype(np.float64)
        doubles = column.cast(pa.float32()).cast(pa.string()).cast(pa.float64())
    values = np.where(missing, 0.0, to_numpy(doubles))
    ticks = np.zeros(len(values), np.int64)
    _float_ticks(values, ticks, np.where(missing, 0.0, np.abs(spacing)))
    return from_numpy(ticks, missing=missing).cast(FRACTION)


def _spacing(value: Any) -> npt.NDArray[np.float64]:
    return np.array([abs(float(np.spacing(value))) if isinstance(value, (np.float32, np.float16)) else 0.0])


def _float_ticks(values: npt.NDArray[np.float64], ticks: npt.NDArray[np.int64], spacing: Any) -> None:
    """Nanoseconds of doubles; `spacing` is how far the floats that they were lie from the next ones, where farther."""
    far = ~(np.abs(values) <= MOST_TICKS / _NANOSECONDS)
    if far.any():
        row = int(np.argmax(far))
        why = _FAR if math.isfinite(values[row]) else f"which is no time: times are {FORMS}"
        raise NoTimeError(row, float(values[row]), why)
    scaled = values * 1e9
    near = np.rint(scaled)
    apart = np.maximum(np.abs(np.spacing(values)), spacing) * 4e9
    odd = np.abs(scaled - near) > np.maximum(_SLACK, apart)
    if odd.any():
        row = int(np.argmax(odd))
        raise NoTimeError(row, float(values[row]), _FINE)
    ticks[:] = near.astype(np.int64)
    large = np.abs(scaled) >= _CERTAIN
    if not large.any():
        return
    places = np.flatnonzero(large)
    chosen = values[places]
    found = np.zeros(len(places), np.int64)
    open_ = np.ones(len(places), np.bool_)
    for digits in range(10):  # the fewest digits behind the point that are this double
        power = 10.0**digits
        tried = np.rint(chosen * power)
        fits = open_ & (np.abs(tried) < 2.0**53) & (tried / power == chosen)
        found[fits] = tried[fits].astype(np.int64) * 10 ** (9 - digits)
        open_ &= ~fits
        if not open_.any():
            break
    for place in np.flatnonzero(open_).tolist():
        found[place] = round(Decimal(repr(float(chosen[place]))).scaleb(9))
    ticks[places] = found


def _of_decimals(column: pa.ChunkedArray) -> pa.Array:
    """Seconds of decimals."""
    try:
        found = column.cast(EXACT_SECONDS)
    except pa.ArrowInvalid:
        return _one_by_one(column)
    return of_exact(found)


def of_exact(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Seconds of decimals with nine digits behind the point (`EXACT_SECONDS`)."""
    if isinstance(column, pa.ChunkedArray):
        column = joined(column)
    words = np.frombuffer(column.buffers()[1] or b"", np.int64)[2 * column.offset : 2 * (column.offset + len(column))]
    low, high = words[0::2], words[1::2]
    missing = to_numpy(column.is_null()) if column.null_count else None
    far = ((low >> 63) != high) | (low > MOST_TICKS) | (low < -MOST_TICKS)
    far = far if missing is None else far & ~missing
    if far.any():
        row = int(np.argmax(far))
        raise NoTimeError(row, format(column[row].as_py().normalize(), "f"), _FAR)
    return from_numpy(low, missing=missing).cast(FRACTION)


def exact_seconds(column: Any) -> Any:
    """Seconds with a fraction as decimals (`EXACT_SECONDS`), an array of an array."""
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([exact_seconds(each) for each in column.chunks], EXACT_SECONDS)
    ticks = column.cast(pa.int64()).fill_null(0).to_numpy()
    words = np.stack([ticks, ticks >> 63], axis=1)
    found = pa.Array.from_buffers(EXACT_SECONDS, len(ticks), [None, pa.py_buffer(np.ascontiguousarray(words))])
    return pc.if_else(column.is_valid(), found, None) if column.null_count else found


def _of_text(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Times that are written: integers, seconds or timestamps, as the first of them is."""
    first = pc.first(texts).as_py()
    if first is not None and NUMBER.fullmatch(first):
        if pc.all(pc.match_substring_regex(texts, _WHOLE)).as_py():
            return _whole(texts)
        try:
            return pa.chunked_array([_of_decimals(texts)], FRACTION)
        except pa.ArrowNotImplementedError:
            return pa.chunked_array([_one_by_one(texts)], FRACTION)
    return _timestamps(texts)


def _whole(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    try:
        return pc.utf8_ltrim(texts, "+").cast(pa.int64())
    except pa.ArrowInvalid:
        for row, text in enumerate(texts.to_pylist()):
            if text is not None and not -(2**63) <= int(text) < 2**63:
                raise NoTimeError(row, int(text), "which is more than 64 bits hold") from None
        raise


def _one_by_one(column: pa.ChunkedArray) -> pa.Array:
    """Seconds that Arrow does not take as decimals, such as those of a hundred zeros; raises at what is no number."""
    found = [None if value is None else _exact(row, value) for row, value in enumerate(column.to_pylist())]
    return pa.array(found, pa.int64()).cast(FRACTION)


def _timestamps(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    zoned = pc.match_substring_regex(pc.utf8_slice_codeunits(texts, 10), _ZONED)
    some, every = pc.any(zoned).as_py(), pc.all(zoned).as_py()
    if some and not every:
        first = next(each for each in zoned.to_pylist() if each is not None)
        row = pc.index(zoned, not first).as_py()
        raise NoTimeError(row, texts[row].as_py(), "and mixes times with and without a zone; give all one, or none")
    for unit in ("us", "ns"):
        try:
            return texts.cast(pa.timestamp(unit, "UTC" if some else None))
        except pa.ArrowInvalid:
            continue
    row, text = next(
        (row, text) for row, text in enumerate(texts.to_pylist()) if text is not None and moment(text) is None
    )
    raise NoTimeError(row, text)


def moment(text: str) -> pa.Scalar | None:
    """The timestamp that a text is, with the zone UTC where it has one; None for a text that is none."""
    zone = "UTC" if re.search(_ZONED, text.strip()[10:]) else None
    for unit in ("us", "ns"):
        try:
            return pa.scalar(text.strip()).cast(pa.timestamp(unit, zone))
        except pa.ArrowInvalid:
            continue
    return None
