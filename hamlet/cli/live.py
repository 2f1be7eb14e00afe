"""``hamlet run``, ``monitor`` and ``sql`` over streams that do not end: sources, sinks, and what is said of them."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from hamlet.checkpoint.folder import Folder
from hamlet.cli.live_options import SCHEMES, Destinations, Live, States, is_pipe
from hamlet.cli.options import Input, inputs_of
from hamlet.cli.progress import summary_line
from hamlet.errors import OptionError, OutputError
from hamlet.input.live.lines import LineForm
from hamlet.input.live.merging import merged
from hamlet.input.live.sources import FileSource, FolderSource, ListenSource, PipeSource, Source, host_of
from hamlet.input.ticks import seconds_of
from hamlet.output.live import FileSink, PartFiles, SocketSink, connector
from hamlet.output.place import check_destination, claimed
from hamlet.runtime.drive import Driver
from hamlet.runtime.feed import BadRows
from hamlet.runtime.garbage import seldom
from hamlet.runtime.output import FolderOutput, Output, TextOutput
from hamlet.runtime.saves import FIELDS, Saves, work_of
from hamlet.runtime.stop import Stop
from hamlet.runtime.tenant import Tenant


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
    names = inputs_of(source)
    _refuse_twice("--input", [each for each in names if each == "-" or is_pipe(each)])
    return merged([_source(each, live) for each in names], lines)


def _refuse_twice(option: str, names: Sequence[str]) -> None:
    """Refuse what can be there once only."""
    for number, name in enumerate(names):
        if name in names[:number]:
            raise OptionError(f"{option} {name} is given twice; {_spoken(name)} can be there once only")


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
    return PipeSource(None, name, path) if is_pipe(name) else FileSource(path, live.follow)


def drive(
    made: Callable[[States], Sequence[Tenant]],
    source: Input | None,
    destinations: Destinations,
    live: Live,
    *,
    bad_rows: str = "error",
    lines: LineForm | None = None,
    quiet: bool = False,
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
    """
    started = time.perf_counter()
    lines = lines or LineForm()
    bad = BadRows(bad_rows == "drop")
    stop = Stop(_say)
    with ExitStack() as stack:
        stack.enter_context(stop.listening())
        tenants = list(made(iter(())))
        names = list(destinations.outputs or ["-"])
        _refuse_twice("--output", names)
        saves = _saves(live, tenants, inputs_of(source), names)
        producer = _producer(names, saves, live)
        if saves is not None:
            saves.transactions = producer
            stack.callback(saves.folder.close)
            if saves.load(None if producer is None else producer.committed()):
                if saves.ended:
                    for number, name in enumerate(names):
                        if _is_folder(name):  # it may have been killed before its last files got their names
                            _output(name, destinations, tenants, stop, saves, number, stack)
                    _say(f"the run of the checkpoint {live.checkpoint} has come to its end; nothing is left to be read")
                    return 0, saves.rows
                asked, tenants = tenants, list(made(iter(saves.states)))
                saves.refuse_other_options(asked, tenants)
        sources = sources_of(source, live, lines)
        for each in sources:
            stack.callback(each.close)
        outputs = [
            _output(each, destinations, tenants, stop, saves, number, stack)
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
            server = _server(driver, live.http, [name for each in tenants for name in each.names])
            stack.callback(server.close)
            if not quiet:
                _say(f"serving {server.url}")
        if not quiet:
            for each in sources:
                if isinstance(each, ListenSource):
                    _say(f"listening at {each.name}")
        seldom()
        try:
            done = _driven(driver, outputs, stop, saves is not None)
        finally:
            _counts(driver, bad)
    if not done:
        _say(stop.line())
        return stop.exit_code, driver.meter.rows
    if not quiet:
        for line in dict.fromkeys(said for tenant in tenants for said in tenant.warnings):
            _say(f"note: {line}")
        stats: Mapping[str, Any] = {"events": driver.events, "rows": driver.meter.rows}
        _say(summary_line(stats, time.perf_counter() - started))
    return 0, driver.meter.rows


def _producer(names: Sequence[str], saves: Saves | None, live: Live) -> Any:
    """What writes rows to Kafka (`hamlet.output.kafka.RowProducer`); None where no output is a topic."""
    topics = [each for each in names if each.startswith("kafka://")]
    if not topics:
        return None
    from hamlet.output.kafka import RowProducer  # needed for such outputs only

    return RowProducer(topics, None if saves is None else saves.folder.path, _seconds(live.every, "--every"))


def _server(driver: Driver, place: str, names: Sequence[str]) -> Any:
    """What shows the run at a port (`hamlet.runtime.http.Server`)."""
    from hamlet.runtime.http import Server, Watch  # needed for this option only

    watch = Watch(driver)
    driver.watch = watch.see
    return Server(place, watch, ", ".join(names))


def _driven(driver: Driver, outputs: Sequence[Output], stop: Stop, keeps: bool) -> bool:
    """Run to the end of the inputs; False where somebody stopped it.

    Rows that are final are given, also where an event or an output is at fault; but where saves are kept, rows get
    their names with the save that covers them.
    """
    try:
        with ExitStack() as ends:
            for output in outputs:
                ends.callback(output.close)
            try:
                return driver.run()
            except BaseException:
                if keeps:
                    ends.pop_all()
                raise
    except OutputError as error:
        if not stop.asked:
            raise
        _say(str(error))  # of rows that nobody would take until the stop
        return False


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
    stack: ExitStack,
) -> Output:
    chosen = destinations.output_format
    text = chosen or "json"
    if not _is_folder(name) and text == "parquet":
        raise OptionError(f"Parquet cannot be written to {_spoken(name)}; choose json or csv, or a directory")
    if name == "-":
        sys.stdout.flush()
        return TextOutput(FileSink(sys.stdout.buffer, "standard output"), text, tenants)
    if name.startswith(("tcp://", "unix:")):
        return TextOutput(SocketSink(connector(name, host_of), name, lambda: stop.asked), text, tenants)
    resumed = saves is not None and saves.fields is not None
    # Folders without a file may have been left by a run that was killed before its first save.
    begun = saves is not None and not any(each.is_file() for each in Path(name).rglob("*"))
    overwrite = destinations.overwrite or begun
    place = Path(name).resolve() if resumed else check_destination(name, overwrite, destinations.keep)
    stack.enter_context(claimed(place))
    for each in place.iterdir() if overwrite and not resumed else ():
        if each.is_dir() and not each.is_symlink():
            shutil.rmtree(each)
        else:
            each.unlink()
    parts = [(each.kind, part) for each in tenants for part in each.names]
    form = chosen or "parquet"
    files = PartFiles(place, form, parts, saves is None)
    if saves is not None and resumed:
        files.resume(saves.part(number))
    return FolderOutput(files, form, tenants)


def _is_folder(output: str) -> bool:
    """Whether rows are kept in a folder."""
    return output != "-" and not output.startswith(SCHEMES)


def _text_format(destinations: Destinations, name: str) -> str:
    """The format of rows that are messages."""
    chosen = destinations.output_format or "json"
    if chosen == "parquet":
        raise OptionError(f"Parquet cannot be written to {name}; choose json or csv, or a directory")
    return chosen


def _spoken(name: str) -> str:
    return "standard output" if name == "-" else name
