"""Power readings of plugs as First, SwitchOn, SwitchOff, Rise, Fall and Hold events: a reading against the one before.

A plug is on from 5 watts. Its first reading is First; a reading that switches it is SwitchOn or SwitchOff; any other is
Rise, Fall or Hold by its one-second power. Columns: time (int64 microseconds, the wall clock of the house written as if
it were UTC), type (string), seq (int32), plug, appliance (string), complete (bool: the day has no gaps), power_1s_w,
power_8s_w (int32, watts, averages over one and eight seconds). Readings of equal time are ordered by appliance, plug.

Two layouts are read. tracebase: one file per plug and day, ``<appliance>/dev_<plug>_<date>.csv`` below a folder
``complete`` or ``incomplete``, lines like ``14/01/2012 10:48:47; 151; 156``. And the plugs of the DEBS 2014 Grand
Challenge: lines ``id,timestamp,value,property,plug_id,household_id,house_id`` without a header, of which the loads
(property 1) are read; there plug is ``house/household/plug``, appliance, complete and power_8s_w are NULL, power_1s_w
is a double, and house and household (int32) follow.

Source: tracebase.org/setup (Reinhardt et al., SustainIT 2012; Open Database License); debs.org/grand-challenges/2014.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from datasets.columns import MICROSECONDS, in_order, names
from datasets.files import content, gather, read_csv
from hamlet.errors import DataError

Array = np.ndarray[Any, Any]

TYPES = ("First", "SwitchOn", "SwitchOff", "Rise", "Fall", "Hold")
ON_WATTS = 5
_TRACEBASE_NAME = re.compile(r"dev_(.+)_\d{4}\.\d{2}\.\d{2}\.csv(?:\.gz)?")  # the plug may hold _ too
_DEBS = {
    "id": pa.int64(),
    "timestamp": pa.int64(),
    "value": pa.float64(),
    "property": pa.int8(),
    "plug_id": pa.int32(),
    "household_id": pa.int32(),
    "house_id": pa.int32(),
}
_LOAD = 1  # property: 1 load in watts, 0 work in kilowatt hours


def read(inputs: Sequence[Path]) -> pa.Table:
    """The stream of readings.

    Parameters
    ----------
    inputs : sequence of pathlib.Path
        Files in one of the two layouts, all in the same, and folders of them.

    Returns
    -------
    pyarrow.Table
        Columns as in the module's documentation, sorted by time, appliance and plug.

    Raises
    ------
    DataError
        A file cannot be read, is in neither layout, or not in that of the first file.
    """
    paths = gather(inputs, (".csv", ".gz", ".zip"))
    layouts = {_layout(path) for path in paths}
    if len(layouts) > 1:
        raise DataError("the files are in two layouts (tracebase and DEBS 2014); read one at a time")
    reader = _tracebase if layouts == {"tracebase"} else _debs
    readings = pa.concat_tables([reader(path) for path in paths]).combine_chunks()
    readings = readings.add_column(1, "type", names(_changes(readings), TYPES))
    return in_order(readings, ("time", "appliance", "plug"))


def _layout(path: Path) -> str:
    """The layout of a file, told by its first line."""
    try:
        with content(path) as stream:
            line = stream.readline().decode("utf-8", "replace")
    except OSError as error:
        raise DataError(f"cannot read {path}: {error}") from error
    if line.count(";") == 2:
        return "tracebase"
    if line.count(",") == len(_DEBS) - 1:
        return "debs"
    raise DataError(
        f"{path} starts with {line.strip()[:60]!r}; expected 'date time; watts; watts' (tracebase) or "
        f"'{','.join(_DEBS)}' (DEBS 2014)"
    )


def _tracebase(path: Path) -> pa.Table:
    """The readings of one plug and day."""
    name = _TRACEBASE_NAME.fullmatch(path.name)
    if name is None:
        raise DataError(f"cannot tell the plug of {path}: expected a name like dev_B8148C_2012.01.20.csv")
    columns = {"clock": pa.string(), "power_1s_w": pa.int32(), "power_8s_w": pa.int32()}
    table = read_csv(
        path,
        content(path),
        pyarrow.csv.ReadOptions(column_names=list(columns)),
        pyarrow.csv.ParseOptions(delimiter=";"),
        pyarrow.csv.ConvertOptions(column_types=columns),
    )
    try:
        clock = pc.strptime(pc.utf8_trim_whitespace(table["clock"]), format="%d/%m/%Y %H:%M:%S", unit="us")
    except pa.ArrowInvalid as error:
        raise DataError(f"{path}: {error}; expected times like 14/01/2012 10:48:47") from error
    complete = "incomplete" not in (part.lower() for part in path.parts)
    return pa.table(
        {
            "time": clock.cast(pa.int64()),
            "plug": pa.repeat(name[1], table.num_rows),
            "appliance": pa.repeat(path.absolute().parent.name, table.num_rows),
            "complete": pa.repeat(complete, table.num_rows),
            "power_1s_w": table["power_1s_w"],
            "power_8s_w": table["power_8s_w"],
        }
    )


def _debs(path: Path) -> pa.Table:
    """The loads in one file of the DEBS 2014 Grand Challenge."""
    table = read_csv(
        path,
        content(path),
        pyarrow.csv.ReadOptions(column_names=list(_DEBS)),
        convert=pyarrow.csv.ConvertOptions(column_types=_DEBS),
    )
    table = table.filter(pc.equal(table["property"], _LOAD)).combine_chunks()
    text = [table[name].cast(pa.string()) for name in ("house_id", "household_id", "plug_id")]
    return pa.table(
        {
            "time": pc.multiply(table["timestamp"], MICROSECONDS),
            "plug": pc.binary_join_element_wise(*text, "/"),
            "appliance": pa.nulls(table.num_rows, pa.string()),
            "complete": pa.nulls(table.num_rows, pa.bool_()),
            "power_1s_w": table["value"],
            "power_8s_w": pa.nulls(table.num_rows, pa.int32()),
            "house": table["house_id"],
            "household": table["household_id"],
        }
    )


def _changes(readings: pa.Table) -> Array:
    """Index into `TYPES` for each reading, int64 (readings,)."""
    plug = pc.dictionary_encode(readings["plug"]).combine_chunks().indices.to_numpy()
    order = np.lexsort((readings["time"].to_numpy(), plug))  # stable: readings of one second stay as in the file
    power = readings["power_1s_w"].to_numpy()[order]
    before = np.concatenate([power[:1], power[:-1]])
    on, was_on = power >= ON_WATTS, before >= ON_WATTS
    first = np.diff(plug[order], prepend=-1) != 0
    result = np.empty(len(order), np.int64)
    result[order] = np.select(
        [first, on & ~was_on, was_on & ~on, power > before, power < before], [0, 1, 2, 3, 4], default=5
    )
    return result
