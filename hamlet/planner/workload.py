"""A workload: queries that have been read and checked as a whole, before any event is seen."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from html import escape
from typing import Any

from hamlet.errors import Diagnostic, OptionError, WorkloadError, near_miss
from hamlet.frontend.files import text_of_file
from hamlet.frontend.reports import Reports
from hamlet.input.columns import StringPool
from hamlet.language.analysis import analyse_text, column_errors, row_name_errors
from hamlet.language.conditions import references
from hamlet.language.meaning import Analysis
from hamlet.language.printing import to_text
from hamlet.language.query import AttributeType, NullTest, Query, Reference
from hamlet.language.schema import Schema
from hamlet.language.typecheck import check, check_zone, unlike
from hamlet.language.unknown import misspelled
from hamlet.planner.compile import compile_workload
from hamlet.planner.compiled import CompiledWorkload

_NOT_A_LINE_END = re.compile(r"[^\r\n]")


class Workload:
    """Queries in the order of their text.

    Attributes
    ----------
    analysis : hamlet.language.analysis.Analysis
        What the check found: variables, predicates by kind, partition attributes.

    Examples
    --------
    >>> workload = Workload.parse("RETURN COUNT(*) PATTERN SEQ(A, B+) WITHIN 10 s")
    >>> workload.names
    ('q1',)
    """

    def __init__(self, analysis: Analysis) -> None:
        self.analysis = analysis
        self._compiled: tuple[object, CompiledWorkload] | None = None  # for what it was asked for last
        self._checked: tuple[Schema, tuple[Diagnostic, ...]] | None = None

    @classmethod
    def parse(cls, text: str, source: str = "<workload>") -> Workload:
        """Read and check a workload's text.

        Raises
        ------
        OptionError
            If it is no text.
        WorkloadError
            With every mistake of the text, not only the first.
        """
        if not isinstance(text, str):
            raise OptionError(f"the text of a workload is a str, not a {type(text).__name__}")
        return cls(analyse_text(text, source))

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Workload:
        """Read and check a workload file (UTF-8).

        Raises
        ------
        OptionError
            If the file cannot be read.
        WorkloadError
            With every mistake of the text.
        """
        return cls.parse(text_of_file(path, "workload"), os.fspath(path))

    def select(self, names: Iterable[str]) -> Workload:
        """Some of the queries, in the order of the text.

        Parameters
        ----------
        names : iterable of str
            A text is the name of one.

        Raises
        ------
        OptionError
            A name that no query has, no name at all, or a query that asks about the rows of one that is left out.

        Examples
        --------
        >>> text = "a: RETURN COUNT(*) PATTERN A+ WITHIN 1 s; b: RETURN COUNT(*) PATTERN B+ WITHIN 1 s"
        >>> Workload.parse(text).select(["b"]).names
        ('b',)
        """
        wanted = {names} if isinstance(names, str) else set(names)
        if not wanted:
            raise OptionError(f"name a query to select; the queries are {', '.join(self.names)}")
        for name in sorted(wanted.difference(self.names)):
            meant = near_miss(name, self.names)
            hint = f"did you mean {meant!r}?" if meant else f"the queries are {', '.join(self.names)}"
            raise OptionError(f"there is no query {name!r}; {hint}")
        for each in self.analysis.queries:
            missing = sorted(set(each.upstream) - wanted) if each.query.name in wanted else []
            if missing:
                raise OptionError(
                    f"the query {each.query.name!r} asks about the rows of {' and '.join(missing)}; select "
                    f"{'it' if len(missing) == 1 else 'them'}, too"
                )
        whole = self.analysis.text
        chosen = tuple(query for query in self.queries if query.name in wanted)
        if any(query.name_span is None for query in chosen):  # its name was its place, which will be another
            return self.parse(to_text(replace(whole, queries=chosen)), whole.source)
        text = whole.text
        for query in self.queries:
            if query.name not in wanted:  # blanks in its place, so that messages still point at the right line
                start, end = query.span.start, query.span.end
                text = text[:start] + _NOT_A_LINE_END.sub(" ", text[start:end]) + text[end:]
        return self.parse(text, whole.source)

    @property
    def queries(self) -> tuple[Query, ...]:
        """The queries as written."""
        return self.analysis.text.queries

    @property
    def names(self) -> tuple[str, ...]:
        """The queries' names."""
        return tuple(query.name for query in self.queries)

    @property
    def input_types(self) -> tuple[str, ...]:
        """The event types of which events may come: those that queries name and of which none gives the rows."""
        rows = set(self.names)
        types = (kind for each in self.analysis.queries for kind in each.types.values())
        return tuple(dict.fromkeys(kind for kind in types if kind not in rows))

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """What is legal and probably not meant."""
        return self.analysis.warnings

    @property
    def durations(self) -> frozenset[str]:
        """The attributes that every declaration which has them declares DURATION."""
        declared = [each for one in self.analysis.text.declarations for each in one.attributes]
        others = {each.name for each in declared if each.type is not AttributeType.DURATION}
        return frozenset(each.name for each in declared) - others

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        """Every attribute that some query reads: what a reader has to load besides time, type and order."""
        found: dict[str, None] = {}
        for query in self.analysis.queries:
            of_rows = {variable for variable, kind in query.types.items() if kind in query.upstream}
            found.update((key, None) for key in query.partition if query.is_of_input(key))
            for conditions in (*query.local.values(), *query.adjacent.values()):
                read = (each for one in conditions for each in references(one))
                found.update((each.attribute, None) for each in read if each.variable not in of_rows)
            named = [(each.variable, each.attribute) for each in query.aggregates]
            named += [(each.variable, each.attribute) for each in query.taken]
            found.update((attribute, None) for variable, attribute in named if attribute and variable not in of_rows)
        return tuple(found)

    def without_null_keys(self) -> Workload:
        """These queries over only the events that have a value of every equivalence and GROUP-BY attribute.

        Events of a declared type that lacks the attribute are taken as before.
        """
        queries = []
        for query in self.analysis.queries:
            local = dict(query.local)
            for variable in query.types:
                declared = query.declared.get(variable)
                carried = [name for name in query.partition if declared is None or name in declared]
                tests = [NullTest(Reference(variable, name), negated=True) for name in carried]
                local[variable] = (*tests, *local.get(variable, ()))
            queries.append(replace(query, local={name: tests for name, tests in local.items() if tests}))
        return Workload(replace(self.analysis, queries=tuple(queries)))

    def check(self, schema: Schema) -> Sequence[Diagnostic]:
        """Check names and types against the columns of an input.

        Returns
        -------
        sequence of Diagnostic
            Warnings.

        Raises
        ------
        WorkloadError
            With every mistake.
        """
        if self._checked is None or self._checked[0] != schema:
            self._checked = schema, tuple(check(self.analysis, schema))
        found = list(self._checked[1])
        errors = [each for each in found if each.severity == "error"]
        if errors:
            raise WorkloadError(errors)
        return found

    def unlike(self, schema: Schema) -> list[str]:
        """What it compares that is of two kinds, by the types of dicts that have come; files are checked before."""
        return [] if schema.closed else unlike(self.analysis, schema)

    def check_zone(self, timezone: str | None) -> None:
        """Check whether windows have a place in a time zone, without an input.

        Raises
        ------
        OptionError
            There is none of the name.
        WorkloadError
            With every mistake.
        """
        reports = Reports(self.analysis.text.text, self.analysis.text.source)
        for query in self.queries:
            check_zone(query, timezone, reports)
        if reports.errors:
            raise WorkloadError(reports.errors)

    def refuse_misspelled(self, schema: Schema, types: Collection[str]) -> None:
        """Raise WorkloadError at attributes that no dict has, though events of these types have nearly such ones."""
        found = [] if schema.closed else misspelled(self.analysis, schema, types)
        if found:
            raise WorkloadError(found)

    def explain(self, events: Any = None, **columns: Any) -> str:
        """How the workload will run: templates, who can share with whom, operators and memory.

        Parameters
        ----------
        events : optional
            The events to be read, as for `hamlet.run`; their columns say which attributes are numbers.
        **columns
            The options of `hamlet.run` that say how they are read: ``time_column``, ``type_column``, ``time_unit`` ...

        Returns
        -------
        str
            The text of ``hamlet explain``. A notebook shows it with a table of the queries.

        Raises
        ------
        WorkloadError
            Names, types or durations that do not fit the events.

        Examples
        --------
        >>> text = Workload.parse("RETURN COUNT(*) PATTERN SEQ(A, B+) WITHIN 10 min").explain()
        >>> text.splitlines()[0]
        '1 query in 1 partitioning'
        """
        from hamlet.input.events import open_events  # these two are seldom needed, and take long to load
        from hamlet.planner.explain import explain

        return explain(self, None if events is None else open_events(events, **columns).schema)

    def compiled(
        self, schema: Schema, strings: StringPool, *, exact: bool, together: bool, settled: bool, indexed: bool = True
    ) -> CompiledWorkload:
        """The workload for a run over such columns (`compile_workload`).

        It is kept for the next run over the same ones, unless there are predicates: many runs are short.
        """
        asked = schema, exact, together, settled, indexed
        if self._compiled is None or self._compiled[0] != asked:
            found = compile_workload(
                self.analysis, schema, strings, exact=exact, together=together, settled=settled, indexed=indexed
            )
            if not found.is_plain:
                return found
            self._compiled = asked, found
        return self._compiled[1].anew(strings)

    def __str__(self) -> str:
        return to_text(self.analysis.text)

    def __repr__(self) -> str:
        return f"<Workload: {', '.join(self.names[:10])}{', ...' if len(self.names) > 10 else ''}>"

    def _repr_html_(self) -> str:
        """The text of the queries, for a notebook."""
        return f"<pre>{escape(str(self))}</pre>"


def workload_of(given: object) -> Workload:
    """What was given for a workload, if it is one.

    Raises
    ------
    OptionError
        Says how a text or a file becomes one.
    """
    if isinstance(given, Workload):
        return given
    raise OptionError(
        f"the workload is a {type(given).__name__}; read it first, with hamlet.Workload.from_file(path) or "
        "hamlet.Workload.parse(text)"
    )


def mistakes(path: str | os.PathLike[str], schema: Schema) -> list[Diagnostic]:
    """What is wrong with a workload file in view of an input's columns, also where the text itself has mistakes.

    Raises
    ------
    OptionError
        If the file cannot be read.
    """
    return column_errors(text_of_file(path, "workload"), os.fspath(path), schema)


def mistaken_row_names(path: str | os.PathLike[str], special: Mapping[str, str]) -> list[Diagnostic]:
    """Columns of rows that are events and are named like the time, type or order column, also in a text with mistakes.

    Parameters
    ----------
    path : str or os.PathLike
        The workload file.
    special : mapping of str to str
        What these columns are for (``time``, ...), by their names.

    Raises
    ------
    OptionError
        If the file cannot be read.
    """
    return row_name_errors(text_of_file(path, "workload"), os.fspath(path), special)
