"""``hamlet run``, ``monitor`` and ``sql`` over streams that do not end: sources, sinks, and what is said of them."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from hamlet.checkpoint.folder import Folder
from hamlet.cli.options import Input, inputs_of
from hamlet.cli.progress import summary_line
from hamlet.errors import OptionError, OutputError
from hamlet.input.live.lines import LineForm
from hamlet.input.live.merging import merged
from hamlet.input.live.sources import FileSource, FolderSource, ListenSource, PipeSource, Source, host_of
from hamlet.input.ticks import seconds_of
from hamlet.output.live import FileSink, PartFiles, SocketSink, connector
from hamlet.output.place import check_destination
from hamlet.runtime.drive import Driver
from hamlet.runtime.feed import BadRows
from hamlet.runtime.output import FolderOutput, Output, TextOutput
from hamlet.runtime.saves import FIELDS, Saves, work_of
from hamlet.runtime.stop import Stop
from hamlet.runtime.tenant import Tenant

_SCHEMES = ("tcp://", "unix:", "kafka://")
LIVE_OPTIONS = (
    click.option(
        "--follow",
        is_flag=True,
        help="Go on reading files as they grow, also through rotation, and folders as files appear in them.",
    ),
    click.option("--clock", is_flag=True, help="Let the wall clock move time once no event has come for --idle."),
    click.option("--idle", metavar="DURATION", default="5 s", show_default=True, help="How long --clock waits."),
    click.option("--columns", metavar="NAME,NAME", help="The columns of CSV without a header."),
    click.option(
        "--checkpoint", metavar="DIR", type=click.Path(), help="Save place and state there, and go on from them."
    ),
    click.option("--every", metavar="DURATION", default="10 s", show_default=True, help="How often to save."),
    click.option("--http", metavar="HOST:PORT", help="Serve /metrics, /health and a page about the run."),
)


@dataclass(frozen=True, kw_only=True)
class Live:
    """What the command line says about a stream that does not end."""

    follow: bool = False
    clock: bool = False
    idle: str = "5 s"
    columns: str | None = None
    checkpoint: str | None = None
    every: str = "10 s"
    http: str | None = None

    @property
    def names(self) -> list[str] | None:
        """The columns of CSV."""
        return None if self.columns is None else [each.strip() for each in self.columns.split(",")]


def live_of(options: dict[str, Any]) -> Live:
    """What `LIVE_OPTIONS` say, taken out of the options of a command."""
    return Live(**{name: options.pop(name) for name in Live.__dataclass_fields__ if name in options})


def is_live(
    source: Input | None, output: Sequence[str], live: Live, input_format: str | None, whole: bool = False
) -> bool:
    """Whether the input, or the output, is one that does not end.

    With `whole`, an option asks for all of the input at once: then a pipe is read to its end, and copied.
    """
    asked = live.follow or live.clock or live.checkpoint is not None or live.http is not None
    if asked or live.columns is not None or input_format == "arrow":
        return True
    if len(output) > 1 or any(each.startswith(_SCHEMES) for each in output):
        return True
    inputs = inputs_of(source)
    if any(each.startswith(_SCHEMES) for each in inputs):
        return True
    return not whole and input_format != "parquet" and any(each == "-" or _is_pipe(each) for each in inputs)


def refuse_live(given: Mapping[str, Any]) -> None:
    """Refuse options that need the whole input at once."""
    for name, value in given.items():
        if value is not None and value is not False:
            raise click.UsageError(f"--{name} needs the whole input at once, and a stream goes on; leave it out")


def _is_pipe(path: str) -> bool:
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)
    except OSError:
        return False


def _seconds(text: str, option: str) -> float:
    """A duration of an option."""
    try:
        found = seconds_of(text)
    except OptionError:
        found = None
    if found is None or found <= 0:
        raise click.UsageError(f"{option} is {text!r}; it must be a duration such as '5 s'")
    return float(found)


def sources_of(source: Input | None, live: Live, lines: LineForm) -> list[Source]:
    """The inputs of a command, opened; files that end are merged by time."""
    return merged([_source(each, live) for each in inputs_of(source)], lines)


def _source(name: str, live: Live) -> Source:
    if name == "-":
        return PipeSource(getattr(sys.stdin, "buffer", None), "standard input")
    if name.startswith(("tcp://", "unix:")):
        return ListenSource(name)
    if name.startswith("kafka://"):
        from hamlet.input.live.kafka import KafkaSource  # needed for such inputs only

        return KafkaSource(name)
    if "://" in name:
        raise OptionError(f"{name}: streams come from -, files, folders, tcp://, unix: and kafka://")
    path = Path(name)
    if path.is_dir():
        return FolderSource(path, live.follow)
    return PipeSource(None, name, path) if _is_pipe(name) else FileSource(path, live.follow)


States = Iterator[bytes]  # what tenants were saved as; empty where they begin


@dataclass
class Destinations:
    """Where the rows of a command go.

    Attributes
    ----------
    outputs : sequence of str
        As the user named them; ``-`` by default.
    output_format : str or None
    overwrite : bool
    keep : sequence of str
        Files that must not be lost.
    """

    outputs: Sequence[str]
    output_format: str | None = None
    overwrite: bool = False
    keep: Sequence[str] = ()


def drive(
    made: Callable[[States], Sequence[Tenant]],
    source: Input | None,
    destinations: Destinations,
    live: Live,
    *,
    bad_rows: str = "error",
    lines: LineForm | None = None,
    quiet: bool = False,
    notes: Callable[[], Sequence[str]] | None = None,
) -> tuple[int, int]:
    """Read the inputs until they end or somebody stops; gives the exit code (130 or 143 after a stop) and the rows.

    Parameters
    ----------
    made : callable
        Gives the tenants, of what they were saved as, where they were.
    source : str or list of str
    destinations : Destinations
    live : Live
    bad_rows : {'fail', 'error', 'drop'}
    lines : LineForm, optional
        The form of all inputs, and where their times are.
    quiet : bool
    notes : callable, optional
        What is to be said at the end.
    """
    started = time.perf_counter()
    lines = lines or LineForm()
    bad = BadRows(bad_rows == "drop")
    stop = Stop(_say)
    with ExitStack() as stack:
        stack.enter_context(stop.listening())
        tenants = list(made(iter(())))
        names = list(destinations.outputs or ["-"])
        saves = _saves(live, tenants, inputs_of(source), names)
        topics = [each for each in names if each.startswith("kafka://")]
        producer = None
        if topics:
            from hamlet.output.kafka import RowProducer  # needed for such outputs only

            folder = None if saves is None else saves.folder.path
            producer = RowProducer(topics, folder, _seconds(live.every, "--every"))
        if saves is not None:
            saves.transactions = producer
            stack.callback(saves.folder.close)
            if saves.load(None if producer is None else producer.committed()):
                if saves.ended:
                    _say(f"the run of the checkpoint {live.checkpoint} has come to its end; nothing is left to be read")
                    return 0, 0
                tenants = list(made(iter(saves.states)))
        sources = sources_of(source, live, lines)
        for each in sources:
            stack.callback(each.close)
        outputs = [
            _output(each, destinations, tenants, stop, saves, number)
            if producer is None or not each.startswith("kafka://")
            else TextOutput(producer.sink(each), _text_format(destinations, each), tenants, begun=True)
            for number, each in enumerate(names)
        ]
        driver = Driver(
            tenants,
            sources,
            outputs,
            stop,
            bad=bad,
            form=lines.form,
            idle=_seconds(live.idle, "--idle") if live.clock else None,
            save=None if saves is None else saves.save,
            every=_seconds(live.every, "--every"),
        )
        stop.events = lambda: driver.events
        if saves is not None:
            for line in saves.resume(sources, tenants, driver):
                _say(line)
            saves.save(driver, False)  # from here on the output is known to be its own
        if live.http is not None:
            from hamlet.runtime.http import Server, Watch  # needed for this option only

            watch = Watch(driver)
            driver.watch = watch.see
            server = Server(live.http, watch, ", ".join(name for each in tenants for name in each.names))
            stack.callback(server.close)
            if not quiet:
                _say(f"serving {server.url}")
        if not quiet:
            for each in sources:
                if isinstance(each, ListenSource):
                    _say(f"listening at {each.name}")
        try:
            done = driver.run()
            for output in outputs:
                output.close()
        except OutputError as error:
            if not stop.asked:
                raise
            done = False
            _say(str(error))  # of rows that nobody would take until the stop
        finally:
            _counts(driver, bad)
    if not done:
        _say(stop.line())
        return stop.exit_code, driver.meter.rows
    if not quiet:
        for line in notes() if notes is not None else ():
            _say(f"note: {line}")
        stats: Mapping[str, Any] = {"events": driver.events, "rows": driver.meter.rows}
        _say(summary_line(stats, time.perf_counter() - started))
    return 0, driver.meter.rows


def _counts(driver: Driver, bad: BadRows) -> None:
    """Say how many rows were bad, and how many events late."""
    if bad.dropped.rows:
        _say(f"{bad.dropped.rows} bad rows: {'; '.join(bad.dropped.examples)}")
    if driver.late_events:
        _say(f"{driver.late_events} late events")


def _say(text: str) -> None:
    """Write a line to standard error."""
    try:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        return


def _saves(live: Live, tenants: Sequence[Tenant], sources: list[str], outputs: list[str]) -> Saves | None:
    """What is kept in the folder of the checkpoint; None without one."""
    if live.checkpoint is None:
        return None
    folder = Folder(Path(live.checkpoint), work_of([each.text() for each in tenants]), FIELDS)
    return Saves(folder, sources, outputs)


def _output(
    name: str,
    destinations: Destinations,
    tenants: Sequence[Tenant],
    stop: Stop,
    saves: Saves | None,
    number: int,
) -> Output:
    chosen = destinations.output_format
    text = chosen or "json"
    if (name == "-" or name.startswith(_SCHEMES)) and text == "parquet":
        raise OptionError(f"Parquet cannot be written to {_spoken(name)}; choose json or csv, or a directory")
    if name == "-":
        sys.stdout.flush()
        return TextOutput(FileSink(sys.stdout.buffer, "standard output"), text, tenants)
    if name.startswith(("tcp://", "unix:")):
        return TextOutput(SocketSink(connector(name, host_of), name, lambda: stop.asked), text, tenants)
    resumed = saves is not None and saves.fields is not None
    place = Path(name).resolve() if resumed else check_destination(name, destinations.overwrite, destinations.keep)
    if destinations.overwrite and place.exists() and not resumed:
        shutil.rmtree(place)
    parts = [(each.kind, part) for each in tenants for part in each.names]
    form = chosen or "parquet"
    files = PartFiles(place, form, parts, saves is None)
    if saves is not None and resumed:
        files.resume(saves.part(number))
    return FolderOutput(files, form, tenants)


def _text_format(destinations: Destinations, name: str) -> str:
    """The format of rows that are messages."""
    chosen = destinations.output_format or "json"
    if chosen == "parquet":
        raise OptionError(f"Parquet cannot be written to {name}; choose json or csv, or a directory")
    return chosen


def _spoken(name: str) -> str:
    return "standard output" if name == "-" else name
