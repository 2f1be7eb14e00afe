"""`run`: policies over a whole input, all rows at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

import pyarrow as pa

from hamlet.errors import MemoryLimitError, OptionError, UnsupportedError, option
from hamlet.output.columnar import dicts_of
from hamlet.output.result import Asked, Results, TablePart
from hamlet.policies.analysis.bare_bounds import notes_of_bounds
from hamlet.policies.analysis.policy import Policy
from hamlet.policies.logs.source import chosen_by, open_source
from hamlet.policies.options import FileOptions, RunOptions
from hamlet.policies.plan.evaluation import Evaluation
from hamlet.policies.runner import runner_of
from hamlet.policies.verdicts.automata import Verdicts
from hamlet.runtime.expected import in_no_relation, of_no_predicate
from hamlet.runtime.options import made_of, takes
from hamlet.runtime.progress import showing
from hamlet.runtime.sizes import bytes_of, size_text

if TYPE_CHECKING:
    from hamlet.why.evidence import Evidence

_ROWS_ALWAYS = 30_000_000  # bytes of rows that a run holds, whatever the limit


def policies_of(policy: Policy | Iterable[Policy]) -> list[Policy]:
    """One policy or several, each under a name of its own.

    Raises
    ------
    OptionError
        If it is none, names are equal, or signatures differ.
    """
    policies = [policy] if isinstance(policy, Policy) or not isinstance(policy, Iterable) else list(policy)
    if not policies:
        raise OptionError("there is no policy to run")
    for each in policies:
        if not isinstance(each, Policy):
            raise OptionError(f"a policy is a hamlet.policies.Policy, not a {type(each).__name__}")
        if each.signature != policies[0].signature:
            raise OptionError(f"the policies {policies[0].name!r} and {each.name!r} have different signatures")
    named: list[Policy] = []
    taken: set[str] = set()
    for place, each in enumerate(policies, 1):
        found = each if each.name != "policy1" or place == 1 else each.renamed(f"policy{place}")
        if found.name in taken:
            raise OptionError(
                f"two policies have the name {found.name!r}; give one another: Policy.parse(..., name=...)"
            )
        taken.add(found.name)
        named.append(found)
    return named


@takes(FileOptions)
def run(
    policy: Policy | Iterable[Policy],
    events: Any,
    **options: Unpack[RunOptions],
) -> Results:
    """Evaluate policies over a complete input.

    Parameters
    ----------
    policy : Policy, or several
        Several share the evaluation of equal sub-formulas.
    events : path, pyarrow Table or RecordBatchReader, dict of numpy arrays, iterable of dicts
        A path that ends in ``.log`` is a log in MonPoly's format. An event's type is its predicate, the signature's
        attribute names are its columns.
    negate : bool
        Whether rows are the valuations that do not satisfy the formula; for a policy it changes nothing.
    time_points : {'step', 'event'}
        Whether the events of one time (and order) are one time-point, or each event is one.
    verdicts : {'satisfied', 'all', 'equivalent'}
        Rows for satisfying valuations; or a verdict per time-point (and key) of a propositional policy, where
        'equivalent' does not keep time-points that must come out the same.
    mode : {'local', 'global'}
        Of 'equivalent': whether such time-points are of one time-stamp, or of any.
    open_end : bool
        Whether more time-points may follow, so that only what is decided without them has rows.
    ignore_unknown : bool
        Whether tuples of a log whose predicate is unknown are counted and left out.
    max_memory : int or str, optional
        The most that may be kept between batches.
    time_column, type_column, order_column, time_unit, input_format, delimiter, bad_rows, missing_columns, where, since,
    until
        As of `hamlet.run`; of a log, which has no columns, `bad_rows` alone.
    progress : callable or bool, optional
        As of `hamlet.run`.

    Returns
    -------
    Results
        Rows by policy, in the order of time-points: ``time``, ``time_point`` and the free variables.

    Raises
    ------
    PolicyError
        If a policy cannot be monitored.
    DataError, OptionError, MemoryLimitError

    Examples
    --------
    >>> policy = Policy.parse("ALWAYS FORALL u. p(u) IMPLIES EVENTUALLY[0,5] q(u)", signature="p(u: int) q(u: int)")
    >>> events = [{"time": 1, "type": "p", "u": 7}, {"time": 9, "type": "q", "u": 7}]
    >>> run(policy, events).rows()
    [{'policy': 'policy1', 'time': 1, 'time_point': 0, 'u': 7}]
    """
    chosen = made_of(FileOptions, options)
    policies = policies_of(policy)
    signature, negate = policies[0].signature, chosen.negate
    kind = chosen.automaton
    wanted = (
        Evaluation(policies, negate=negate).wanted
        if kind is None
        else {key for each in policies for key in Verdicts(each.formula, signature, kind).predicates}
    )
    source = open_source(
        events,
        signature,
        wanted,
        time_points=chosen.time_points,
        ignore_unknown=chosen.ignore_unknown,
        input_format=chosen.input_format,
        filtered=chosen_by(chosen.where, chosen.since, chosen.until),
        delimiter=chosen.delimiter,
        bad_rows=chosen.bad_rows,
        missing_columns=chosen.missing_columns,
        **chosen.columns,
    )
    per_second, open_end, limit = source.per_second, chosen.open_end, chosen.max_memory
    runner = runner_of(policies, kind, source.time_type, per_second, negate=negate, open_end=open_end, max_memory=limit)
    parts: list[list[pa.RecordBatch]] = [[] for _ in policies]
    most, held = bytes_of(limit), 0
    with showing(chosen.progress, source.rows) as told:
        for place, rows in runner.run(source.chunks(told)):
            parts[place].append(rows)
            held += rows.nbytes
            if most is not None and held > max(most, _ROWS_ALWAYS):
                raise MemoryLimitError(
                    f"the run stops, since its rows need more memory than its limit, {size_text(most)}\n"
                    "hint: a Monitor gives rows as they come, hamlet monitor --output DIR writes them; or raise the "
                    f"limit ({option('max_memory')})"
                )
    tables = [_table(batches, schema) for batches, schema in zip(parts, runner.schemas, strict=True)]
    unit = source.time_type.unit if pa.types.is_timestamp(source.time_type) else chosen.time_unit
    again = {name: value for name, value in options.items() if name != "progress"}
    asked = Asked(
        partial(_why, policies, events, again),
        partial(_explained, policies, negate),
        whole=True,
    )
    parts_of_results = [
        TablePart(each.name, "policy", table, partial(dicts_of, unit=unit), always=True)
        for each, table in zip(policies, tables, strict=True)
    ]
    stats = source.stats
    left_out = *of_no_predicate(stats.get("unknown_events", 0)), *in_no_relation(stats.get("null_events", 0))
    notes = [*notes_of_bounds(policies, source.shown_type), *source.notes(), *left_out]
    return Results(parts_of_results, source.stats, notes, asked)


def _explained(policies: Sequence[Policy], negate: bool) -> str:
    return "\n\n".join(each.explain(negate=negate) for each in policies)


def _why(policies: Sequence[Policy], events: Any, options: Mapping[str, Any], row: Mapping[str, Any]) -> Evidence:
    """The proof behind a row, or behind its absence: `hamlet.why.of_policy`, loaded when it is first asked for."""
    import hamlet

    if isinstance(events, Iterator):
        raise UnsupportedError("the events were a stream, which can be read once only; give a file or a table")
    named = [each for each in policies if row.get("policy", policies[0].name) == each.name]
    if not named or (len(policies) > 1 and "policy" not in row):
        raise OptionError(f"the row's policy must be one of {', '.join(each.name for each in policies)}")
    return hamlet.why.of_policy(named[0], events, row, **options)


def _table(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """Rows as one table; a column that large integers made wider somewhere is wider throughout."""
    if not batches:
        return schema.empty_table()
    if all(batch.schema == batches[0].schema for batch in batches):
        return pa.Table.from_batches(batches)
    wide: dict[str, pa.DataType] = {}
    for batch in batches:
        for field in batch.schema:
            known = wide.setdefault(field.name, field.type)
            if known != field.type and not pa.types.is_string(known):
                wide[field.name] = field.type if known == schema.field(field.name).type else known
    target = pa.schema(list(wide.items()))
    return pa.Table.from_batches([batch.cast(target) for batch in batches])
