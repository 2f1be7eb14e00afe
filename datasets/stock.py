"""Stock trades as Up, Down and Flat events: the price against the trade of the symbol before it on the same day.

Columns: time (int64 microseconds, UTC), type (string), seq (int32), symbol (string), price (double, USD), size (int32,
shares), exchange (string, one letter), cond (string, the sale condition's code), suspicious (bool). The first trade of
a symbol on a day is Flat. Trades of equal time are ordered by symbol, then as in the file.

Two layouts are read. QuantConnect Lean's: one file per symbol and day, ``<date>_trade.zip`` with one file
``<date>_<symbol>_Trade_Tick.csv`` inside, or that file itself; no header; milliseconds since midnight in New York,
price times 10,000, size, exchange, sale condition, suspicious (0 or 1). And any CSV with a header that names timestamp
(ISO 8601, UTC where it names no zone, or integer microseconds since 1970), symbol, price (USD) and size; exchange,
cond and suspicious are NULL there, and days are those of UTC.

Source: quantconnect.com/docs/v2/lean-engine/data-format (US Equity, Tick).
"""

from __future__ import annotations

import datetime
import re
import zoneinfo
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from datasets.columns import MICROSECONDS, in_order, names
from datasets.files import content, gather, header, member, read_csv
from hamlet.errors import DataError

Array = np.ndarray[Any, Any]

_LEAN = {
    "milliseconds": pa.int64(),
    "price": pa.int64(),
    "size": pa.int32(),
    "exchange": pa.string(),
    "cond": pa.string(),
    "suspicious": pa.int8(),
}
_PLAIN = ("timestamp", "symbol", "price", "size")
_LEAN_NAME = re.compile(r"(\d{8})_([A-Za-z0-9.]+)_trade_tick\.csv", re.IGNORECASE)
_PRICE_UNITS = 10_000  # per USD
_DAY = 86_400 * MICROSECONDS
TYPES = ("Flat", "Up", "Down")


def read(inputs: Sequence[Path]) -> pa.Table:
    """The stream of trades.

    Parameters
    ----------
    inputs : sequence of pathlib.Path
        Files in one of the two layouts, and folders of them; files of quotes inside a folder are passed over.

    Returns
    -------
    pyarrow.Table
        Columns as in the module's documentation, sorted by time, symbol and place in the file.

    Raises
    ------
    DataError
        A file cannot be read or is in neither layout, or one symbol's day is given twice.
    """
    parts: list[pa.Table] = []
    seen: dict[tuple[str, str], Path] = {}
    for path in gather(inputs, (".zip", ".csv")):
        name = _LEAN_NAME.fullmatch(member(path))
        if name is None:
            if "quote" not in path.name.lower():
                parts.append(_plain(path))
            continue
        day, symbol = name[1], name[2].upper()
        if seen.setdefault((day, symbol), path) != path:
            raise DataError(f"{path} and {seen[day, symbol]} both hold the trades of {symbol} on {day}")
        parts.append(_lean(path, day, symbol))
    if not parts:
        raise DataError(f"no files of trades in {', '.join(map(str, inputs))}")
    table = pa.concat_tables(parts).combine_chunks()
    table = table.add_column(1, "type", names(_directions(table), TYPES)).drop_columns(["day"])
    return in_order(table, ("time", "symbol"))


def _lean(path: Path, day: str, symbol: str) -> pa.Table:
    """The trades of one symbol on one day."""
    convert = pyarrow.csv.ConvertOptions(column_types=_LEAN, strings_can_be_null=True)
    table = read_csv(path, content(path), pyarrow.csv.ReadOptions(column_names=list(_LEAN)), convert=convert)
    milliseconds = table["milliseconds"].to_numpy()
    if table.num_rows and (np.diff(milliseconds) < 0).any():
        raise DataError(f"{path}: the trades are not in order of time")
    midnight = _midnight(path, day)
    return pa.table(
        {
            "time": midnight + milliseconds * 1000,
            "symbol": pa.repeat(symbol, table.num_rows),
            "price": table["price"].to_numpy() / _PRICE_UNITS,
            "size": table["size"],
            "exchange": table["exchange"],
            "cond": table["cond"],
            "suspicious": pc.not_equal(table["suspicious"], 0),
            "day": np.full(table.num_rows, midnight // _DAY),
        }
    )


def _midnight(path: Path, day: str) -> int:
    """Microseconds since 1970 of the midnight from which New York's clock counts (it changes on Sundays only)."""
    try:
        noon = datetime.datetime.strptime(day + "12", "%Y%m%d%H").replace(tzinfo=zoneinfo.ZoneInfo("America/New_York"))
    except ValueError as error:
        raise DataError(f"{path}: {day} is no date") from error
    except zoneinfo.ZoneInfoNotFoundError as error:
        raise DataError("this machine has no time zone data: pip install tzdata") from error
    return int(noon.timestamp() - 12 * 3600) * MICROSECONDS


def _plain(path: Path) -> pa.Table:
    """The trades of a CSV file with a header."""
    if not set(_PLAIN) <= set(header(path)):
        wanted = "DATE_SYMBOL_Trade_Tick.csv (Lean), or a header with timestamp, symbol, price and size"
        raise DataError(f"{path} is no file of trades: expected the name {wanted}")
    types = {"symbol": pa.string(), "price": pa.float64(), "size": pa.int32()}
    options = pyarrow.csv.ConvertOptions(column_types=types, include_columns=list(_PLAIN))
    table = read_csv(path, content(path), convert=options)
    time = table["timestamp"]
    try:
        micros = (time if pa.types.is_integer(time.type) else time.cast(pa.timestamp("us"))).cast(pa.int64())
    except pa.ArrowException as error:
        raise DataError(f"{path}: timestamp is neither ISO 8601 nor whole microseconds: {error}") from error
    if time.null_count:
        raise DataError(f"{path}: a trade without timestamp")
    columns = {"time": micros, "symbol": table["symbol"], "price": table["price"], "size": table["size"]}
    columns |= {name: pa.nulls(table.num_rows, pa.string()) for name in ("exchange", "cond")}
    columns |= {"suspicious": pa.nulls(table.num_rows, pa.bool_()), "day": pa.array(micros.to_numpy() // _DAY)}
    return in_order(pa.table(columns), ("symbol", "time")).drop_columns(["seq"])


def _directions(table: pa.Table) -> Array:
    """Index into `TYPES` for each trade, int64 (trades,)."""
    symbol = pc.dictionary_encode(table["symbol"]).combine_chunks().indices.to_numpy()
    day, price = table["day"].to_numpy(), table["price"].to_numpy()
    order = np.lexsort((table["time"].to_numpy(), symbol))  # stable, so trades of equal time stay as in the file
    change = np.diff(price[order], prepend=0.0)
    fresh = np.diff(symbol[order], prepend=-1) != 0
    fresh |= np.diff(day[order], prepend=-1) != 0
    change[fresh] = 0
    result = np.empty(len(order), np.int64)
    result[order] = np.where(change > 0, 1, np.where(change < 0, 2, 0))
    return result
