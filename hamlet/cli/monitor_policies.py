"""``hamlet monitor``, ``check``, ``explain`` and ``submit`` for policies."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hamlet.arrays import pa
from hamlet.cli.lasting import lasting
from hamlet.cli.live_options import Live, States
from hamlet.cli.notations import (
    Advance,
    Part,
    Settings,
    Write,
    checkpoint_of,
    following,
    read_all,
    say_notes,
    say_warnings,
)
from hamlet.cli.options import input_name, inputs_of
from hamlet.cli.progress import task_bar
from hamlet.errors import DataError, Diagnostic
from hamlet.policies import Policy
from hamlet.policies.analysis.bare_bounds import notes_of_bounds
from hamlet.policies.analysis.rewriting import stripped
from hamlet.policies.logs.source import Source, chosen_by, open_source
from hamlet.policies.rows import first_row
from hamlet.policies.runner import PolicyRunner, runner_of
from hamlet.policies.syntax.signature import Signature
from hamlet.policies.verdicts.modes import mode_of
from hamlet.runtime.definitions import COLUMNS
from hamlet.runtime.expected import in_no_relation, of_no_predicate

if TYPE_CHECKING:
    from hamlet.parallel.routing.rates import Rates
    from hamlet.policies.tenant import PolicyTenant


def prepare(paths: Sequence[str], settings: Settings) -> PreparedPolicies:
    """Policies, checked, beside their input."""
    policies = load(paths, settings)
    return PreparedPolicies(policies, settings)


def tenants(paths: Sequence[str], settings: Settings, live: Live, states: States) -> list[PolicyTenant]:
    """Policies, checked, over a stream."""
    from hamlet.engine.live_filter import filter_of
    from hamlet.policies.tenant import PolicyTenant  # with all that streams without an end need

    policies = load(paths, settings)
    columns = dict(settings.columns)
    options = {name: columns[name] for name in COLUMNS if name in columns}
    options |= {
        name: getattr(settings, name)
        for name in ("negate", "time_points", "verdicts", "mode", "open_end", "max_memory", "lateness", "late")
    }
    return [
        PolicyTenant(
            policies,
            options,
            chosen=filter_of(
                settings.where, settings.since, settings.until, **{name: options[name] for name in COLUMNS}
            ),
            ignore_unknown=settings.ignore_unknown,
            drops=columns.get("bad_rows") == "drop",
            first=settings.stop_at_first,
            names=live.names,
            delimiter=columns.get("delimiter"),
            saved=next(states, None),
        )
    ]


def load(paths: Sequence[str], settings: Settings) -> list[Policy]:
    """Policies over one signature; the mistakes of all files are told together."""
    if settings.signature is None:
        raise click.UsageError("policies need --signature FILE.sig, which names their predicates")
    signature = Signature.from_file(settings.signature)
    policies = read_all(paths, lambda path: Policy.from_file(path, signature))
    say_warnings(policies, settings.quiet)
    return policies


def check(path: str, settings: Settings) -> str:
    """What is said of a policy without errors; with an input its columns are checked, too."""
    (policy,) = load([path], settings)
    runner = PolicyRunner([policy], None, 1, negate=settings.negate)
    if settings.source is not None:
        source = _opened(settings, policy.signature, runner.predicates)
        for _ in source.chunks():
            if not source.expected.missing:
                break
        say_notes(source.notes(), settings.quiet)
    return f"{path}: {'violations' if runner.violations[0] else 'satisfying valuations'} can be monitored, no errors"


def warnings(path: str, settings: Settings) -> Sequence[Diagnostic]:
    """What is allowed in a policy but probably not meant."""
    return Policy.from_file(path, settings.signature or "").warnings


def explain(path: str, settings: Settings, shown_as: str, html: str | None) -> None:
    """Show how a policy will be evaluated."""
    from hamlet.policies.plan.explaining import evaluated, tree  # seldom needed
    from hamlet.policies.plan.explaining import explain as explained

    (policy,) = load([path], settings)
    wanted = PolicyRunner([policy], None, 1, negate=settings.negate).predicates
    if settings.source is not None:
        _opened(settings, policy.signature, wanted)
    formula, columns, violations = evaluated(policy.formula, settings.negate)
    if html is None:
        click.echo(explained(policy.name, policy.source, formula, columns, violations=violations, shown_as=shown_as))
        return
    from hamlet.pages.policies import explanation  # brings in jinja2, which nothing else needs

    explanation([(policy.name, policy.text, tree(formula), columns, violations)], str(settings.signature), html)


def submit(paths: Sequence[str], settings: Settings, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """A Spark job for one policy."""
    (policy,) = load(paths, settings)
    given = dict(options)
    if settings.verdicts != "satisfied":
        raise click.UsageError("hamlet submit writes what satisfies a policy; hamlet monitor gives other --verdicts")
    say_warnings([policy], settings.quiet)
    if given.pop("stream"):
        return _follow(policy, settings, given)
    from hamlet.spark import policies  # brings in pyspark, which nothing else needs

    with task_bar(settings.quiet) as progress:
        found = policies.submit(
            policy,
            settings.source or "",
            given["output"],
            slices=given["slices"] or given["partitions"],
            statistics=_rates(given, policy, settings),
            master=given["master"],
            output_format=given["output_format"],
            overwrite=given["overwrite"],
            negate=settings.negate,
            open_end=settings.open_end,
            time_points=settings.time_points,
            keep=[*paths, str(settings.signature)],
            progress=progress,
            ignore_unknown=settings.ignore_unknown,
            **settings.columns,
        )
    said = [*in_no_relation(found.get("null_events", 0)), *_rules([policy], "its rows are the violations")]
    return found | {"notes": [*found["notes"], *said]}


def _rules(policies: Iterable[Policy], what: str) -> Iterator[str]:
    """What is to be known of the rows of policies that are rules."""
    for policy in policies:
        if stripped(policy.formula)[1]:
            yield f"{policy.name} is a rule (ALWAYS ...): {what}"


def _follow(policy: Policy, settings: Settings, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """The continuous job, until it is stopped."""
    checkpoint = checkpoint_of(given)
    from hamlet.spark import policies  # brings in pyspark, which nothing else needs

    if not isinstance(settings.source, str):
        raise click.UsageError("--stream of a policy follows one folder; give one --input")
    return policies.submit_stream(
        policy,
        settings.source,
        given["output"],
        checkpoint,
        output_format=given["output_format"],
        slices=given["slices"] or given["partitions"],
        statistics=_rates(given, policy, settings),
        negate=settings.negate,
        time_points=settings.time_points,
        lateness=settings.lateness,
        late=settings.late,
        max_memory=settings.max_memory,
        **following(given, settings.quiet),
        **settings.columns,
    )


def _rates(given: Mapping[str, Any], policy: Policy, settings: Settings) -> Rates | None:
    """What --statistics says of a policy's predicates."""
    from hamlet.spark.policies import rates_from

    path = given["statistics"]
    if path is None:
        return None
    try:
        known = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise DataError(f"{path} is not JSON: {error}") from error
    return rates_from(known, policy, settings.negate)


def _opened(settings: Settings, signature: Signature, wanted: Any, *, arrow: bool = True) -> Source:
    """The input, by what the command line says of it."""
    assert settings.source is not None
    columns = dict(settings.columns)
    input_format = columns.pop("input_format", None)
    return open_source(
        lasting(settings.source, input_format, ("monpoly",)),
        signature,
        wanted,
        time_points=settings.time_points,
        ignore_unknown=settings.ignore_unknown,
        input_format=input_format,
        filtered=chosen_by(settings.where, settings.since, settings.until),
        arrow=arrow,
        **columns,
    )


class PreparedPolicies:
    """Policies of one call over one input."""

    def __init__(self, policies: Sequence[Policy], settings: Settings) -> None:
        self._policies = policies
        self._settings = settings
        arrow = settings.report is not None or settings.stop_at_first  # which look into the rows
        mode = None if settings.verdicts == "satisfied" else mode_of(settings.verdicts, settings.mode)
        # What cannot be monitored is told before the input is opened.
        wanted = runner_of(policies, mode, None, 1, negate=settings.negate).predicates
        self._source = _opened(settings, policies[0].signature, wanted, arrow=False)
        self._runner = runner_of(
            policies,
            mode,
            self._source.shown_type,
            self._source.per_second,
            negate=settings.negate,
            open_end=settings.open_end or settings.save is not None,
            max_memory=settings.max_memory,
            every_time_point=settings.every_time_point,
            arrow=arrow,
        )
        if settings.load is not None and isinstance(self._runner, PolicyRunner):
            from hamlet.policies.states import load_state  # needed with the option only

            load_state(settings.load, policies, self._runner.evaluation, str(self._source.time_type))
        self.parts = [
            Part(
                name=policy.name,
                kind="policy",
                made=partial(self._schema, place),
                columns=self._runner.names[place],
                title=self._title(place),
                tuples=self._runner.tuples[place] if isinstance(self._runner, PolicyRunner) else None,
            )
            for place, policy in enumerate(policies)
        ]

    def _schema(self, place: int) -> pa.Schema:
        return self._runner.schemas[place]

    def _title(self, place: int) -> str:
        """What the rows of a policy are called."""
        if not isinstance(self._runner, PolicyRunner):
            return "verdict"
        return "violation" if self._runner.violations[place] else "row"

    @property
    def rows(self) -> int | None:
        """How many events the input has."""
        return self._source.rows

    def run(self, write: Write, progress: Advance | None) -> Mapping[str, Any]:
        """Monitor the input."""
        started = time.perf_counter()
        watch = self._report()
        rows = self._runner.run(self._source.chunks(progress))
        for place, batch in rows if not self._settings.stop_at_first else self._first(rows):
            write(place, batch)
            if watch is not None:
                watch.see(place, batch)
        if self._settings.save is not None and isinstance(self._runner, PolicyRunner):
            from hamlet.policies.states import save_state  # needed with the option only

            save_state(self._settings.save, self._policies, self._runner.evaluation, str(self._source.time_type))
        stats: dict[str, Any] = dict(self._source.stats)
        seconds = time.perf_counter() - started
        stats["notes"] = list(self._notes(stats))
        if watch is not None:
            settings = [("time-points", self._settings.time_points), ("verdicts", self._settings.verdicts)]
            commands = [
                ["hamlet", "why", policy.source, "--signature", str(self._settings.signature), *self._read_so()]
                for policy in self._policies
            ]
            watch.write(input_name(self._settings.source), settings, stats, seconds, self._why, commands)
        return stats

    def _read_so(self) -> list[str]:
        """How the command line of `hamlet why` reads the input as this run does."""
        settings = self._settings
        words = [word for each in inputs_of(settings.source) for word in ("--input", each)]
        words += ["--negate"] * settings.negate + ["--open-end"] * settings.open_end
        words += ["--ignore-unknown"] * settings.ignore_unknown + ["--check"]
        return words

    def _why(self, place: int, row: Mapping[str, Any]) -> Any:
        """The evidence of a row of a policy."""
        from hamlet.why import of_policy

        settings = self._settings
        options: dict[str, Any] = {
            "negate": settings.negate,
            "open_end": settings.open_end,
            "verdicts": settings.verdicts,
            "time_points": settings.time_points,
            "ignore_unknown": settings.ignore_unknown,
            **{name: value for name, value in settings.columns.items() if value is not None},
        }
        return of_policy(self._policies[place], settings.source, row, **options)

    def _first(self, rows: Iterable[tuple[int, pa.RecordBatch]]) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The first row: of its time-point the least in MonPoly's order; and the empty time-points before it."""
        for place, batch in rows:
            first, found = first_row(batch, self.parts[place].tuples or ())
            yield place, first
            if found:
                return

    def _report(self) -> Any:
        """What watches the run for a page about it, if one is wanted."""
        if self._settings.report is None:
            return None
        from hamlet.pages.policies import ViolationReport  # brings in jinja2, which nothing else needs

        fixed = {"time", "time_point", "offset", "same_as_time", "same_as_offset"}
        about = [
            (policy.name, policy.text, f"{part.title}s", [name for name in part.schema.names if name not in fixed])
            for policy, part in zip(self._policies, self.parts, strict=True)
        ]
        return ViolationReport(about, self._settings.report, inputs_of(self._settings.source))

    def _notes(self, stats: Mapping[str, Any]) -> Iterator[str]:
        """What a user should know of a run that went well."""
        yield from notes_of_bounds(self._policies, self._source.shown_type)
        yield from self._source.notes()
        yield from of_no_predicate(stats.get("unknown_events", 0))
        yield from in_no_relation(stats.get("null_events", 0))
        verdicts = not isinstance(self._runner, PolicyRunner)
        yield from _rules(
            self._policies, "its verdicts say where it holds" if verdicts else "its rows are the violations"
        )
