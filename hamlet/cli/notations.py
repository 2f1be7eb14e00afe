"""The notations, told apart by the extension of a file, and what they have in common.

The commands of a notation are a module of this folder, or are made of the six things that a notation is
(`hamlet.notation`), which `register` takes. They are functions; only what is monitored has the first two and the last::

    prepare(paths, settings) -> Prepared    all files checked and the input opened; no event read yet
    tenants(paths, settings, live, states) -> list    all files checked, to be driven over a stream that does not end
    check(path, settings) -> str or None    what is said of a file without errors
    warnings(path, settings) -> list        what is allowed but probably not meant
    explain(path, settings, shown_as, html) -> None
    submit(paths, settings, options) -> Mapping[str, Any]    a Spark job; what it counted

They raise the errors of `hamlet.errors`, and leave the printing of rows to the command: `Prepared.run` hands batches of
rows on as they are decided.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, cast

import click

from hamlet.arrays import pa
from hamlet.cli.live_options import Live, States
from hamlet.cli.options import Input
from hamlet.errors import Diagnostic, HamletError, OptionError, WorkloadError, one_of
from hamlet.runtime.definitions import COLUMNS, READING
from hamlet.runtime.tenant import Tenant

if TYPE_CHECKING:
    import hamlet.notation.notation

Write: TypeAlias = "Callable[[int, pa.RecordBatch], None]"
Advance = Callable[[int], None]
Read = TypeVar("Read")


@dataclass(frozen=True)
class Registered:
    """A notation.

    Attributes
    ----------
    metavar : str
        Its files in a command's usage.
    called : str
        What a file of it is.
    commands : str or hamlet.notation.Notation
        The module of its commands, or what they are made of.
    monitored : bool
        Whether ``hamlet monitor`` runs it.
    """

    metavar: str
    called: str
    commands: str | hamlet.notation.notation.Notation
    monitored: bool = True


QUERIES = ".sase"  # what a file of no other extension is read as
_REGISTERED = {
    QUERIES: Registered("WORKLOAD.sase", "a workload", "hamlet.cli.queries", monitored=False),
    ".mfotl": Registered("POLICY.mfotl", "a policy", "hamlet.cli.monitor_policies"),
    ".lola": Registered("SPEC.lola", "a specification", "hamlet.cli.monitor_streams"),
    ".sql": Registered("TEXT.sql", "a text of SQL", "hamlet.cli.sql", monitored=False),
}


def register(notation: hamlet.notation.notation.Notation) -> None:
    """Have all commands know a notation."""
    _REGISTERED[notation.extension] = Registered(notation.metavar, f"a {notation.kind}", notation)


def metavars(*, monitored: bool = False) -> str:
    """The files that a command takes, for its usage: of all notations, or of those that are monitored."""
    return "|".join(each.metavar for each in _REGISTERED.values() if each.monitored or not monitored)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the command line says about how to monitor; a notation reads what concerns it.

    Attributes
    ----------
    source : str, list of str or None
        The input as the user named it, or several; ``-`` is standard input.
    columns : mapping
        `COLUMNS` and `READING` (`hamlet.runtime.definitions`), as `hamlet.input.events.open_events` takes them.
    where : str or None
        The condition that events must fulfil.
    since, until : str or None
        The first time whose events a specification reads, and the first whose events it does not read any more.
    signature : str or None
        The file of a policy's predicates.
    negate, open_end, ignore_unknown, values : bool
        As the options of these names.
    verdicts : {'satisfied', 'all', 'equivalent'}
    mode : {'local', 'global'}
        Which time-points ``equivalent`` compares.
    time_points : {'step', 'event'}
    start : str or None
        When the clocks of a specification start.
    max_deadlines : int or None
        Most deadlines of a specification between two events.
    trends : str or None
        The workload of trend queries whose rows are the events of a specification.
    lateness : int or str
        Ticks of the time column, or a duration.
    late : {'error', 'drop'}
    max_memory : str or None
    report : str or None
        Where a page about the run goes.
    every_time_point, stop_at_first : bool
        Whether MonPoly's lines tell of all time-points; whether a policy's run ends with its first row.
    load, save : str or None
        The files of the state that a policy's run begins with, and ends with.
    queries : sequence of str
        The queries of a workload that are explained; by default all.
    timezone : str or None
        The zone in which days begin, for windows of a workload.
    quiet : bool
    """

    source: Input | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)
    where: str | None = None
    since: str | None = None
    until: str | None = None
    signature: str | None = None
    negate: bool = False
    open_end: bool = False
    ignore_unknown: bool = False
    values: bool = False
    verdicts: str = "satisfied"
    mode: str = "local"
    time_points: str = "step"
    start: str | None = None
    max_deadlines: int | None = None
    trends: str | None = None
    lateness: int | str = 0
    late: str = "error"
    max_memory: str | None = None
    report: str | None = None
    every_time_point: bool = False
    stop_at_first: bool = False
    load: str | None = None
    save: str | None = None
    queries: Sequence[str] = ()
    timezone: str | None = None
    quiet: bool = False


@dataclass(frozen=True, kw_only=True)
class Part:
    """Rows of one kind: those of one policy, or of one specification.

    Attributes
    ----------
    name : str
        What the rows are of; the part's folder is ``<kind>=<name>``.
    kind : str
        ``policy``, ``specification`` or the like.
    made : callable
        Gives the schema.
    columns : sequence of str, optional
        The names of its columns, where they are known without it.
    named : bool
        Whether rows on standard output begin with a column of the name of the kind.
    sparse : bool
        Whether a NULL in JSON is left out, for rows that do not all have the same columns.
    title : str
        What the rows are, for the head of a table: ``violations``.
    tuples : sequence of str or None
        The columns of a tuple in MonPoly's lines, none for a closed formula; None where such lines do not exist.
    """

    name: str
    kind: str
    made: Callable[[], pa.Schema]
    columns: Sequence[str] | None = None
    named: bool = True
    sparse: bool = False
    title: str = "row"
    tuples: Sequence[str] | None = None

    @property
    def schema(self) -> pa.Schema:
        """Of the batches of rows. No column has the name of the kind where `named` is true."""
        return self.made()

    @property
    def names(self) -> Sequence[str]:
        """Of the columns."""
        return self.schema.names if self.columns is None else self.columns


def read_all(paths: Iterable[str], read: Callable[[str], Read]) -> list[Read]:
    """Files, checked; the mistakes of all of them are told together."""
    found, wrong = [], []
    for path in paths:
        try:
            found.append(read(path))
        except WorkloadError as error:
            wrong.append(error)
    if wrong:
        raise wrong[0] if len(wrong) == 1 else HamletError("\n".join(map(str, wrong)))
    return found


def say_warnings(works: Iterable[Any], quiet: bool) -> None:
    """What texts have that is allowed but probably not meant goes to standard error."""
    for work in () if quiet else works:
        for warning in work.warnings:
            click.echo(warning.format(), err=True)


def say_notes(notes: Iterable[str], quiet: bool) -> None:
    """What is to be known goes to standard error, a line each."""
    for note in () if quiet else notes:
        click.echo(f"note: {note}", err=True)


def checkpoint_of(given: Mapping[str, Any]) -> str:
    """Where a continuous Spark job keeps its state."""
    if given["checkpoint"] is None:
        raise click.UsageError("--stream needs --checkpoint DIR, where the job keeps its place and its state")
    return str(given["checkpoint"])


def following(given: Mapping[str, Any], quiet: bool) -> dict[str, Any]:
    """How a continuous Spark job follows its folder, of what the command line says, and what becomes of its notes."""
    names = ("master", "trigger", "available_now", "files_per_batch", "verbose", "conf", "log_level", "adaptive")
    return {**{name: given[name] for name in names}, "said": lambda note: say_notes([note], quiet)}


class Prepared(Protocol):
    """Files of one notation, checked, beside an input that is open."""

    @property
    def parts(self) -> Sequence[Part]:
        """What kinds of rows will come, in the order in which they are shown."""
        ...

    @property
    def rows(self) -> int | None:
        """How many events the input has, where that is known."""
        ...

    def run(self, write: Write, progress: Advance | None) -> Mapping[str, Any]:
        """Read the events, and hand on rows by the place of their part; gives what was counted, for the summary."""
        ...


class Notation(Protocol):
    """A module for files of one extension; see the head of this one."""

    def prepare(self, paths: Sequence[str], settings: Settings) -> Prepared: ...  # noqa: D102
    def tenants(  # noqa: D102
        self, paths: Sequence[str], settings: Settings, live: Live, states: States
    ) -> Sequence[Tenant]: ...
    def check(self, path: str, settings: Settings) -> str | None: ...  # noqa: D102
    def warnings(self, path: str, settings: Settings) -> Sequence[Diagnostic]: ...  # noqa: D102
    def explain(self, path: str, settings: Settings, shown_as: str, html: str | None) -> None: ...  # noqa: D102
    def submit(  # noqa: D102
        self, paths: Sequence[str], settings: Settings, options: Mapping[str, Any]
    ) -> Mapping[str, Any]: ...


def extension_of(path: str) -> str:
    """The extension of a file of some notation; any other file is a workload of trend queries."""
    found = Path(path).suffix.lower()
    return found if found in _REGISTERED else QUERIES


def is_monitored(path: str) -> bool:
    """Whether a file is one that ``hamlet monitor`` runs."""
    return _REGISTERED[extension_of(path)].monitored


def notation_of(extension: str) -> Notation:
    """The commands of a notation; loading them brings in what only this notation needs."""
    commands = _REGISTERED[extension].commands
    if isinstance(commands, str):
        return cast(Notation, importlib.import_module(commands))
    from hamlet.cli.registered import Commands

    return Commands(commands)


def by_notation(paths: Sequence[str]) -> dict[str, list[str]]:
    """Files by the extension of their notation, in the order of the first of each.

    Raises
    ------
    OptionError
        At a file of no notation, and at two files of one name, whose rows nobody could tell apart.
    """
    found: dict[str, list[str]] = {}
    stems: dict[tuple[str, str], str] = {}
    for path in paths:
        extension = extension_of(path)
        if not is_monitored(path):
            known = one_of([f"{ending} ({each.called})" for ending, each in _REGISTERED.items() if each.monitored])
            more = "; hamlet run counts the trends of a workload" if path.lower().endswith(".sase") else ""
            raise OptionError(f"{path}: a file to monitor ends in {known}{more}")
        key = (extension, Path(path).stem)
        if key in stems:
            raise OptionError(f"{stems[key]} and {path} have one name, by which their rows are told apart; rename one")
        stems[key] = path
        found.setdefault(extension, []).append(path)
    return found


def settings_of(options: dict[str, Any]) -> Settings:
    """Settings from the options of a command, which are taken out of `options`; others keep their defaults."""
    chosen = {name: options.pop(name) for name in (*COLUMNS, *READING) if name in options}
    own = {name: options.pop(name) for name in Settings.__dataclass_fields__ if name in options}
    return Settings(columns=chosen, **own)


def together(stats: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What several texts counted over one input: the events once, all else added up."""
    found: dict[str, Any] = {}
    for each in stats:
        for name, value in each.items():
            if not isinstance(value, int) or isinstance(value, bool):
                continue
            found[name] = max(found.get(name, 0), value) if name.endswith("events") else found.get(name, 0) + value
    return found
