"""``hamlet monitor``, ``check``, ``explain`` and ``submit`` for policies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import click
import pyarrow as pa

from hamlet.cli.loading import lasting
from hamlet.cli.notations import Advance, Part, Settings, Write
from hamlet.engine.memory_limit import bytes_of, size_text
from hamlet.engine.where import FilteredEvents
from hamlet.errors import MemoryLimitError
from hamlet.policies import Policy
from hamlet.policies.signature import Signature
from hamlet.policies.source import Source, open_source
from hamlet.policies.verdicts import Verdicts, mode_of, stripped


def prepare(paths: Sequence[str], settings: Settings) -> PreparedPolicies:
    """Policies, checked, beside their input."""
    signature = _signature(settings)
    policies = [Policy.from_file(path, signature) for path in paths]
    if not settings.quiet:
        _warn(policies)
    return PreparedPolicies(policies, signature, settings)


def _signature(settings: Settings) -> Signature:
    if settings.signature is None:
        raise click.UsageError("policies need --signature FILE.sig, which names their predicates")
    return Signature.from_file(settings.signature)


def _warn(policies: Sequence[Policy]) -> None:
    for policy in policies:
        for warning in policy.warnings:
            click.echo(warning.format(), err=True)


def _opened(settings: Settings, signature: Signature, wanted: Any) -> Source:
    """The input, by what the command line says of it."""
    assert settings.source is not None
    columns = dict(settings.columns)
    input_format = columns.pop("input_format", None)
    where = settings.where
    return open_source(
        lasting(settings.source, input_format, ("monpoly",)),
        signature,
        wanted,
        time_points=settings.time_points,
        ignore_unknown=settings.ignore_unknown,
        input_format=input_format,
        filtered=None if where is None else partial(_filtered, where=where),
        **columns,
    )


def _filtered(events: Any, where: str) -> Any:
    return FilteredEvents(events, where)


class PreparedPolicies:
    """Policies of one call over one input."""

    def __init__(self, policies: Sequence[Policy], signature: Signature, settings: Settings) -> None:
        self._policies = policies
        self._settings = settings
        self._limit = bytes_of(settings.max_memory)
        self._verdicts: list[Verdicts] = []
        if settings.verdicts != "satisfied":
            mode = mode_of(settings.verdicts, settings.mode)
            unopened = [Verdicts(each.formula, signature, mode) for each in policies]
            self._source = _opened(settings, signature, set().union(*(each.predicates for each in unopened)))
            self._verdicts = [
                Verdicts(each.formula, signature, mode, per_second=self._source.per_second, negate=settings.negate)
                for each in policies
            ]
            self.parts = [self._verdict_part(*pair) for pair in zip(policies, self._verdicts, strict=True)]
        else:
            raise NotImplementedError

    @property
    def rows(self) -> int | None:
        """How many events the input has."""
        return self._source.rows

    def _verdict_part(self, policy: Policy, verdicts: Verdicts) -> Part:
        return Part(
            name=policy.name,
            kind="policy",
            schema=verdicts.schema(self._source.time_type),
            title="verdict",
            tuples=None,
        )

    def run(self, write: Write, progress: Advance | None) -> Mapping[str, Any]:
        """Monitor the input."""
        for place, rows in self._all_rows(progress):
            write(place, rows)
        stats: dict[str, Any] = dict(self._source.stats)
        stats["notes"] = list(self._notes(stats))
        return stats

    def _all_rows(self, progress: Advance | None) -> Iterator[tuple[int, pa.RecordBatch]]:
        kind = self._source.time_type
        for chunk in self._source.chunks(progress):
            for place, verdicts in enumerate(self._verdicts):
                for rows in verdicts.feed(chunk, kind):
                    yield place, rows
            self._check_memory()
        for place, verdicts in enumerate(self._verdicts):
            for rows in verdicts.close(kind, self._settings.open_end):
                yield place, rows

    def _check_memory(self) -> None:
        if self._limit is None:
            return
        held = [each.nbytes for each in self._verdicts]
        if sum(held) > self._limit:
            most = max(range(len(held)), key=held.__getitem__)
            raise MemoryLimitError(
                f"the run stops, since it needs more memory than its limit, {size_text(self._limit)}; policy "
                f"'{self._policies[most].name}' holds the most, {size_text(held[most])}\n"
                "hint: --verdicts equivalent holds less, or raise the limit (--max-memory)"
            )

    def _notes(self, stats: Mapping[str, Any]) -> Iterator[str]:
        """What a user should know of a run that went well."""
        unknown, nulls = stats.get("unknown_events", 0), stats.get("null_events", 0)
        if unknown:
            yield f"{unknown:,} events are of no predicate of the signature and were left out"
        if nulls:
            yield f"{nulls:,} events have no value for an attribute of their predicate and are in no relation"
        for policy in self._policies:
            if stripped(policy.formula)[1] and self._verdicts:
                yield f"{policy.name} is a rule (ALWAYS ...): its verdicts say where it holds"
