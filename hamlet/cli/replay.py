"""``hamlet replay``: a file sent as if it happened now."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from types import FrameType

import click

from hamlet.cli.heard import refuse_unheard
from hamlet.cli.options import with_options
from hamlet.errors import OptionError, OutputError
from hamlet.frontend.time_column import TIME
from hamlet.input.live.sources import host_of
from hamlet.output.live import FileSink, Sink, SocketSink, connector
from hamlet.runtime.replay import Replay, pace_of


@click.command(
    "replay",
    short_help="Send a file as if it happened now.",
    epilog="""\b
    Examples:
      hamlet replay bank.log --speed 1000 | hamlet monitor rule.mfotl --signature bank.sig --input -
      hamlet replay trips.jsonl --rate 75000 --to tcp://127.0.0.1:9000 --report
    """,
)
@click.argument("file", type=click.Path())
@with_options(
    click.option("--rate", metavar="N", type=click.FloatRange(min=0, min_open=True), help="Lines per second."),
    click.option(
        "--speed",
        metavar="X",
        type=click.FloatRange(min=0, min_open=True),
        help="By the times in the file, so many times as fast; 1 is as it was.",
    ),
    click.option(
        "--to", "target", metavar="tcp://HOST:PORT|unix:PATH|-", default="-", show_default=True, help="Where."
    ),
    click.option("--report", is_flag=True, help="Say at the end how far behind it fell."),
    click.option(
        "--input-format",
        type=click.Choice(["csv", "json", "monpoly"]),
        help="Format of the file; by default the one of its extension, or what its first bytes say.",
    ),
    click.option("--time-column", metavar="COLUMN", default=TIME, show_default=True, help="The time of the event."),
    click.option(
        "--time-unit",
        type=click.Choice(["s", "ms", "us", "ns"]),
        default="s",
        show_default=True,
        help="What 1 means in an integer time column.",
    ),
)
def command(
    file: str,
    rate: float | None,
    speed: float | None,
    target: str,
    report: bool,
    input_format: str | None,
    time_column: str,
    time_unit: str,
) -> int:
    """Send the lines of FILE, unchanged, at a rate or by their own times."""
    if (rate is None) == (speed is None):
        raise click.UsageError("give --rate N, lines per second, or --speed X, times as fast as the times in the file")
    refuse_unheard(["lines"])
    pace = pace_of(file, rate, speed, input_format, time_column, time_unit)
    replay = Replay(file, pace)
    heard: list[signal.Signals] = []

    def stop(number: int, _frame: FrameType | None) -> None:
        heard.append(signal.Signals(number))
        replay.stop()

    former = [(each, signal.signal(each, stop)) for each in (signal.SIGINT, signal.SIGTERM)]
    sink = _sink(target, lambda: replay.stopped)
    try:
        replay.run(sink.write_bytes)
        sink.close()
    except OutputError as error:
        if not heard:
            raise
        click.echo(str(error), err=True)
    finally:
        for number, handler in former:
            signal.signal(number, handler)
        if report:
            _say(replay)
    if not heard:
        return 0
    click.echo(f"stopped by {heard[0].name} after {replay.lines} lines", err=True)
    return 128 + heard[0]


def _sink(target: str, asked: Callable[[], bool]) -> Sink:
    if target == "-":
        sys.stdout.flush()
        return FileSink(sys.stdout.buffer, "standard output")
    if not target.startswith(("tcp://", "unix:")):
        raise OptionError(f"--to is {target!r}; it must be tcp://HOST:PORT, unix:PATH or - (standard output)")
    return SocketSink(connector(target, host_of), target, asked)


def _say(replay: Replay) -> None:
    seconds = replay.seconds
    rate = replay.lines / seconds if seconds > 0 else 0.0
    click.echo(
        f"{replay.lines:,} lines in {seconds:.2f} s ({rate:,.0f}/s), at most {replay.behind * 1000:.1f} ms behind",
        err=True,
    )
