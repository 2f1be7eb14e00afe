"""Plot how fares rise: trends of ever dearer rides per zone and hour, from the taxi file.

::

    python examples/fare_trends.py taxi_green_2023q1.parquet fares.png

``python -m datasets taxi`` makes the file from the trip records of New York's Taxi and Limousine Commission. A trend is
three or more rides that end in a zone within six hours, each dearer than the one before it; rides between them may be
skipped. Their number doubles with every ride that fits, so the plot has its logarithm.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

import hamlet

matplotlib.use("agg")  # no window
import matplotlib.pyplot as plt

WORKLOAD = """
rising: RETURN zone, COUNT(*), LOG2(COUNT(*)) AS bits, MAX(D.fare_amount) AS dearest
    PATTERN Dropoff D{3,}
    WHERE D.fare_amount > 0 AND D.fare_amount < NEXT(D).fare_amount
    GROUP-BY zone
    WITHIN 6 h;
"""
SHOWN = 5  # zones


def rising(taxi_file: Path) -> dict[str, np.ndarray[Any, Any]]:
    """The rows of the query as arrays: window_start (microseconds since 1970), zone, bits and others."""
    workload = hamlet.Workload.parse(WORKLOAD)
    return hamlet.run(workload, taxi_file, time_unit="us", order_column="seq").numpy("rising")


def draw(rows: dict[str, np.ndarray[Any, Any]], picture: Path) -> list[int]:
    """Draw the zones with most trends, and name them."""
    zones, totals = np.unique(rows["zone"], return_inverse=True)
    order = np.argsort(np.bincount(totals, weights=rows["bits"]))[::-1]
    busiest = [int(zone) for zone in zones[order[:SHOWN]]]
    figure, axes = plt.subplots(figsize=(10, 4), layout="constrained")
    for zone in busiest:
        chosen = rows["zone"] == zone
        days = rows["window_start"][chosen].astype("datetime64[us]").astype("datetime64[D]")
        best = [rows["bits"][chosen][days == day].max() for day in np.unique(days)]
        axes.plot(np.unique(days).astype("O"), best, label=f"zone {zone}", linewidth=1)
    axes.set_ylabel("log2 of rising trends, best six hours of a day")
    axes.legend(frameon=False, ncols=SHOWN)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(picture, dpi=110)
    plt.close(figure)
    return busiest


def main() -> None:
    """Parse the command line, count and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("taxi_file", type=Path)
    parser.add_argument("picture", type=Path)
    arguments = parser.parse_args()
    print("zones with most rising trends:", *draw(rising(arguments.taxi_file), arguments.picture))


if __name__ == "__main__":
    main()
