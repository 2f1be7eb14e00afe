"""Spark SQL as the host of a clause's expressions: columns before the tasks match rows, measures behind them.

What reads the candidate row and rows at a fixed distance is a Boolean column, with `lag` and `lead` over partitions.
What conditions over labels read of single rows, and measures of rows of a match, are columns, too: one exchange and one
sort serve all of them. The tasks find matches and give, for each row of the result, the values at the rows that its
measures read (`hamlet.spark.pattern_tasks`); over these Spark SQL computes measures and aggregates.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DayTimeIntervalType,
    DoubleType,
    IntegerType,
    LongType,
    NullType,
    StringType,
    StructType,
    YearMonthIntervalType,
)

from hamlet.errors import Span
from hamlet.frontend.reports import Reports
from hamlet.patterns.clause.expressions import LABEL, NUMBER, Aggregation, Navigation, Read, placeholder
from hamlet.patterns.match.conditions import Failed, host_text, report_said
from hamlet.patterns.match.evaluate import Meaning, distinct_columns, listed_columns
from hamlet.patterns.match.measures import host_call
from hamlet.patterns.match.ordered import INPUT, UnknownError, not_boolean
from hamlet.patterns.match.run import AggregateNames, word_in
from hamlet.patterns.match.search import Tables, native_programs
from hamlet.spark.frames import quoted
from hamlet.spark.pattern_masks import Mask, Moved, check, kind_of, mask_of, over, texts_of

TASK, MATCH, AT, SHOWN = "__hamlet_task", "__hamlet_match", "__hamlet_at", "__hamlet_shown"
POINT, MATCHED, VARIABLE, FIRST = "__hamlet_point", "__hamlet_matched", "__hamlet_variable", "__hamlet_first"
TIME, DEADLINE = "__hamlet_time", "__hamlet_deadline"
_WINDOW, _KEY, _ORDER = "__hamlet_window", "__hamlet_key_{}", "__hamlet_order_{}"
_IN_ORDER = {"array_agg", "collect_list", "listagg", "string_agg", "any_value", "max_by", "min_by"}
_LISTED = {"listagg", "string_agg"}
_NO_FRAME = {"median", "percentile", "percentile_cont", "percentile_disc", "mode", "any_value", *_LISTED}


Refusal = PySparkException, Py4JJavaError  # of an expression: some have no class of their own in Python


def said(error: PySparkException | Py4JJavaError) -> str:
    """What Spark says is wrong, in a line."""
    text = str(error.java_exception.getMessage() if isinstance(error, Py4JJavaError) else error)
    lines = text.strip().splitlines() or ["Spark SQL cannot read it"]
    return re.sub(r"^\[[A-Z_.0-9]+\] |\s*SQLSTATE: .*$", "", lines[0])


class SparkAggregates(AggregateNames):
    """The aggregate functions of Spark SQL, and those of a dialect that are translated to it."""

    def __init__(self, spark: SparkSession, dialect: str) -> None:
        super().__init__(dialect)
        self._spark, self._own = spark, dialect in ("spark", "flink")
        self._groups: dict[str, bool] = {}

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str) or name in self._OTHERS:
            return False
        if name not in self._groups:
            java: Any = self._spark._jvm
            catalyst = java.org.apache.spark.sql.catalyst
            registry = catalyst.analysis.FunctionRegistry.builtin()
            found = registry.lookupFunction(catalyst.FunctionIdentifier(name))
            self._groups[name] = found.isDefined() and found.get().getGroup() == "agg_funcs"
        return self._groups[name] or (not self._own and super().__contains__(name))


@dataclass(frozen=True)
class Output:
    """A column of what tasks give.

    Attributes
    ----------
    name : str
    kind : str
        ``shown``: a column at the row that is shown; ``current``: at the current row; ``value``: at the row that a
        reading leads to; ``there``: whether there is one; ``label``: its variable; ``count``: how many rows a reading
        counts; else one of the names of this module.
    column : str
        Of the rows in order.
    reading : Navigation or Aggregation or None
    """

    name: str
    kind: str
    column: str = ""
    reading: Navigation | Aggregation | None = None


@dataclass
class Layout:
    """What tasks are given and give.

    Attributes
    ----------
    masks : dict of str to Mask
        By variable, which rows it takes.
    windowed : bool
        Whether Spark says which rows are the first of their partitions; else the keys do.
    keys : list of str
        The columns of PARTITION BY.
    numbers : list of (str, str)
        The columns that conditions over labels read, and their kinds.
    native : (Tables, list) or None
        The programs of these conditions; None where the kernel lacks one.
    every_row : bool
        Whether all rows of matches are given, as aggregates read them.
    outputs : list of Output
    """

    masks: dict[str, Mask] = field(default_factory=dict)
    windowed: bool = True
    keys: list[str] = field(default_factory=list)
    numbers: list[tuple[str, str]] = field(default_factory=list)
    native: tuple[Tables, list[Any]] | None = None
    every_row: bool = False
    outputs: list[Output] = field(default_factory=list)


class Columns:
    """The rows of a clause's table in order, with columns of expressions; `hamlet.patterns.match.ordered.Expressions`.

    Parameters
    ----------
    view : str
        The table, with a column `INPUT`.
    types : StructType
        Of the view.
    meaning : Meaning
        Read in Spark's dialect.
    """

    dialect: ClassVar[str] = "spark"
    times: ClassVar[Mapping[tuple[str, str, str], str]] = {}

    def __init__(self, spark: SparkSession, view: str, types: StructType, meaning: Meaning, reports: Reports) -> None:
        self._spark, self._meaning, self._reports = spark, meaning, reports
        self.names = [each for each in types.names if each != INPUT]
        self._types = types
        added: list[str] = []  # columns of expressions; what is a column already is exchanged once
        self.keys = [self._named(each.text, _KEY.format(i), added) for i, each in enumerate(meaning.partition)]
        self.order = [self._named(each.text, _ORDER.format(i), added) for i, each in enumerate(meaning.order)]
        self._inner = f"SELECT {', '.join(['*', *added])} FROM {view}"
        items = [
            f"{column} {'DESC' if each.descending else 'ASC'} NULLS {'FIRST' if each.nulls_first else 'LAST'}"
            for column, each in zip(self.order, meaning.clause.order, strict=True)
        ]
        self._partition = ", ".join(self.keys)
        self._items = ", ".join([*items, INPUT])
        by = f"PARTITION BY {self._partition} " if self.keys else ""
        self._over = f"WINDOW {_WINDOW} AS ({by}ORDER BY {self._items})"
        by = f"DISTRIBUTE BY {self._partition} SORT BY {self._partition}, {self._items}"
        self._in_order = f"SELECT * FROM ({self._inner}) {by if self.keys else f'ORDER BY {self._items}'}"
        self.computed: dict[str, str] = {}  # columns by their texts
        self._kinds: dict[str, str] = {}

    def in_order(self) -> DataFrame:
        """The rows exchanged and in order, to be kept for several clauses."""
        return self._spark.sql(self._in_order)

    def read_from(self, view: str) -> None:
        """Read rows that are in order."""
        self._inner = self._in_order = f"SELECT * FROM {view}"

    # What the host of expressions is asked.

    def label_text(self, name: str) -> str:
        """A text of Spark."""
        return "CAST('" + name.replace("\\", "\\\\").replace("'", "\\'") + "' AS STRING)"

    def shifted(self, value: str, step: int) -> str:
        """`lag` and `lead` over the partition."""
        return f"({'lead' if step > 0 else 'lag'}(({value}), {abs(step)}) OVER {_WINDOW})" if step else f"({value})"

    def numbers(self, text: str) -> tuple[str, npt.NDArray[Any], npt.NDArray[np.uint8]]:
        """The kind of a column; its values are the tasks'."""
        if text not in self._kinds:
            try:
                self._kinds[text] = kind_of(self.type_of(text))
            except Refusal:
                raise UnknownError from None  # what is wrong is said where the condition is checked
        return self._kinds[text], np.zeros(0, np.int64), np.zeros(0, np.uint8)

    def without_row(self, text: str) -> Any:
        """An expression over NULL, computed on the driver."""
        listed = ", ".join(
            f"CAST(NULL AS {each.dataType.simpleString()}) AS {quoted(each.name)}" for each in self._types
        )
        frame = self._spark.sql(f"SELECT ({text}) AS v FROM (SELECT {listed} FROM VALUES (1) AS t(x))")
        value = frame.collect()[0][0]
        if value is None or isinstance(value, (bool, int, float)):
            return value
        if isinstance(value, Decimal):
            return int(value.scaleb(-int(value.as_tuple().exponent)))
        raise UnknownError

    # Columns.

    def type_of(self, text: str) -> DataType:
        """The type of an expression over the rows in order."""
        return self._spark.sql(f"SELECT ({text}) AS v FROM ({self._inner}) {self._over}").schema[0].dataType

    def column(self, text: str) -> str:
        """The column of the rows in order that an expression is."""
        if text not in self.computed:
            self.computed[text] = self._own(text) or f"__hamlet_column_{len(self.computed)}"
        return self.computed[text]

    def _own(self, text: str) -> str | None:
        """The column of the table that an expression is."""
        bare = text.strip()
        return next((each for each in self.names if bare in (each, quoted(each))), None)

    def _named(self, text: str, name: str, added: list[str]) -> str:
        """The column that an expression is, as an identifier; one of a name that is added where it is none."""
        own = self._own(text)
        if own is None:
            added.append(f"({text}) AS {name}")
        return name if own is None else quoted(own)

    def types_of(self, texts: Sequence[str]) -> dict[str, DataType]:
        """The types of some expressions over single rows.

        Raises
        ------
        UnknownError
            If Spark refuses one of them.
        """
        listed = ", ".join(f"({text}) AS v{place}" for place, text in enumerate(texts))
        try:
            schema = self._spark.sql(f"SELECT {listed} FROM ({self._inner})").schema
        except Refusal:
            raise UnknownError from None
        return {text: field.dataType for text, field in zip(texts, schema, strict=True)}

    @property
    def is_windowed(self) -> bool:
        """Whether some column reads several rows."""
        return any(_WINDOW in text for text in self.computed)

    def frame(self, windowed: bool) -> DataFrame:
        """The rows in order with all columns that have been asked for."""
        listed = [f"row_number() OVER {_WINDOW} = 1 AS {FIRST}"] if windowed else []
        taken = set()
        for text, name in self.computed.items():
            if name not in taken:
                taken.add(name)
                listed.append(f"({text}) AS {quoted(name)}")
        if windowed:
            return self._spark.sql(f"SELECT {', '.join(listed)} FROM ({self._inner}) {self._over}")
        return self._spark.sql(f"SELECT {', '.join(listed)} FROM ({self._in_order})")

    def check(self, text: str, read: Read, *, condition: bool = False) -> None:
        """Report what Spark says against an expression."""
        try:
            kind = self.type_of(text)
        except Refusal as error:
            report(self._reports, read, error)
            return
        if condition and not isinstance(kind, (BooleanType, NullType)):
            wrong = not_boolean(kind.simpleString().upper())
            self._reports.error(wrong.message, read.expression.span, wrong.hint)

    def check_order(self) -> None:
        """Report what Spark says against PARTITION BY and ORDER BY.

        Raises
        ------
        Failed
        """
        reads = (*self._meaning.partition, *self._meaning.order)
        texts = [f"({each.text}) AS v{place}" for place, each in enumerate(reads)]
        with contextlib.suppress(*Refusal):
            _ = self._spark.sql(f"SELECT {', '.join(['1 AS v', *texts])} FROM ({self._missing()})").schema
            return
        for each, text in zip(reads, texts, strict=True):
            try:
                _ = self._spark.sql(f"SELECT {text} FROM ({self._missing()})").schema
            except Refusal as error:
                report(self._reports, each, error)
        raise Failed

    def _missing(self) -> str:
        """A row of NULL."""
        kinds = ((each.dataType.simpleString(), quoted(each.name)) for each in self._types)
        return f"SELECT {', '.join(f'CAST(NULL AS {kind}) AS {name}' for kind, name in kinds)} FROM VALUES (1) AS t(x)"


def spoken_of(message: str, text: str, span: Span) -> Span | None:
    """Where in a part of a text the name is that a message of Spark speaks of."""
    names = re.findall(r"`([^`]+)`", message)
    return next(filter(None, (word_in(text, span, each) for each in names)), None)


def report(reports: Reports, read: Read, error: PySparkException | Py4JJavaError) -> None:
    """Report what Spark says against an expression, at the name that it speaks of."""
    message, span = said(error), read.expression.span
    report_said(reports, read, message, place=spoken_of(message, reports.text, span) or span)


@dataclass
class HostedClause:
    """A clause with Spark SQL as its host.

    Attributes
    ----------
    spark : SparkSession
    meaning : Meaning
        Read in Spark's dialect.
    columns : Columns
    reports : Reports
    """

    spark: SparkSession
    meaning: Meaning
    columns: Columns
    reports: Reports
    layout: Layout = field(init=False, default_factory=Layout)

    # Before the tasks.

    def prepare(self) -> DataFrame:
        """The rows in order, with the columns that the tasks read.

        Raises
        ------
        Failed
            With the mistakes reported.
        """
        columns, layout = self.columns, self.layout
        known = len(self.reports.errors)
        columns.check_order()
        layout.keys = [columns.column(each) for each in columns.keys]
        texts = self._masks() or self._conditions()
        try:
            self._within()
        except Refusal as error:
            assert self.meaning.within is not None
            report(self.reports, self.meaning.within, error)
        values = self._outputs()
        try:
            layout.windowed = layout.windowed or columns.is_windowed
            frame = columns.frame(layout.windowed)
            types = dict(zip(frame.columns, (each.dataType for each in frame.schema), strict=True))
            masks = layout.masks.values()
            right = all(isinstance(types[each.column], BooleanType) for each in masks if isinstance(each, Moved))
        except Refusal:
            right = False
        if not right:
            for name, text in texts.items():
                columns.check(text, self.meaning.conditions[name].read, condition=True)
            for text, read in values:
                columns.check(text, read)
        if len(self.reports.errors) > known:
            raise Failed
        return frame

    def _masks(self) -> dict[str, str] | None:
        """Columns of single rows that conditions compare; gives texts of conditions, None where one needs a window."""
        near = {name: each for name, each in self.meaning.conditions.items() if not each.reads_match}
        columns, layout = self.columns, self.layout
        try:
            masks = {name: mask_of(each, columns.dialect) for name, each in near.items()}
            texts = [text for each in masks.values() for text in texts_of(each)]
            types = columns.types_of([*columns.keys, *dict.fromkeys(texts)])
            kinds = [check(each, types) for each in masks.values()]
            keys = [kind_of(types[each]) for each in columns.keys]
        except UnknownError:
            return None
        if not keys or "real" in keys or any(each != "bool" for each in kinds):
            return None  # one task has all rows; -0.0 and 0.0 are one key; Spark says that it is no condition
        layout.windowed = False
        layout.masks = {name: over(each, columns.column) for name, each in masks.items()}
        self._numbers()
        return {name: host_text(self.meaning.clause, each, columns) for name, each in near.items()}

    def _conditions(self) -> dict[str, str]:
        """Columns for the conditions; gives the texts of those that look at rows at a fixed distance."""
        meaning, columns = self.meaning, self.columns
        texts = {
            name: host_text(meaning.clause, each, columns)
            for name, each in meaning.conditions.items()
            if not each.reads_match
        }
        self.layout.masks = {name: Moved(columns.column(f"({text})")) for name, text in texts.items()}
        self._numbers()
        return texts

    def _numbers(self) -> None:
        """Columns that conditions over labels read."""
        meaning, columns, layout = self.meaning, self.columns, self.layout
        if meaning.reads_labels:
            layout.native = native_programs(meaning, columns)
        if layout.native is not None:
            kinds = layout.native[0].column_kinds
            layout.numbers = [(columns.column(text), kind) for text, (_, kind) in kinds.items()]
        elif meaning.reads_labels:
            for name in columns.names:
                columns.column(quoted(name))

    def _within(self) -> None:
        """Columns of the time and of the last time of a match that begins there; of doubles the duration."""
        if self.meaning.within is None:
            return
        text, span = self.meaning.within.text, self.meaning.within.expression.span
        kind = self.spark.sql(f"SELECT ({text}) AS d FROM VALUES (1) AS t(x)").schema[0].dataType
        zero = "INTERVAL '0' SECOND" if isinstance(kind, DayTimeIntervalType) else "0"
        zero = "INTERVAL '0' MONTH" if isinstance(kind, YearMonthIntervalType) else zero
        query = f"SELECT ({text}) IS NULL, ({text}) < {zero} FROM VALUES (1) AS t(x)"
        is_null, is_negative = self.spark.sql(query).collect()[0]
        if is_null or is_negative:
            wrong = "NULL" if is_null else "negative"
            self.reports.error(f"WITHIN must not be {wrong}", span, "WITHIN INTERVAL '1' HOUR")
            return
        time = self.columns.order[0]
        deadline = f"{time} + ({text})"
        kind = self.columns.type_of(deadline)
        if isinstance(kind, DoubleType):
            deadline = f"CAST(({text}) AS DOUBLE)"
        self.columns.computed[f"CAST({time} AS {kind.simpleString()})"] = TIME
        self.columns.computed[deadline] = DEADLINE

    # What the tasks give.

    def _outputs(self) -> list[tuple[str, Read]]:
        """What the tasks give; gives the texts of columns that are computed for it."""
        meaning, layout = self.meaning, self.layout
        readings = [each for read in meaning.measures for each in read.readings]
        layout.every_row = any(_is_computed(each) for each in readings)
        given = layout.outputs
        own = [MATCHED] * (meaning.clause.rows == "unmatched")
        own += [NUMBER] * any(each.reads_number for each in meaning.measures)
        if layout.every_row:
            own = [POINT, MATCHED, NUMBER, TASK, MATCH, AT, SHOWN, LABEL, VARIABLE]
        given += [Output(name, name) for name in own]
        checked: list[tuple[str, Read]] = []
        used: dict[str, None] = {}
        for place, read in enumerate(meaning.measures):
            used |= dict.fromkeys(self._used(read.text))
            for number, reading in enumerate(read.readings):
                name = _value(place, number)
                if isinstance(reading, Aggregation):
                    if _is_computed(reading):
                        parts = (reading.arguments, reading.condition, reading.order, reading.within)
                        used |= dict.fromkeys(self._used(" ".join(parts)))
                    else:
                        given.append(Output(name, "count", reading=reading))
                elif reading.value == LABEL:
                    given.append(Output(name, "label", reading=reading))
                elif reading.reads_label or reading.reads_number:
                    given += [Output(f"{name}_there", "there", reading=reading)]
                    given += [Output(f"{name}_label", "label", reading=reading)]
                    for each in self._used(reading.value):
                        column = self.columns.column(quoted(each))
                        given.append(Output(f"{name}_of_{each}", "value", column, reading))
                else:
                    checked.append((reading.value, read))
                    given.append(Output(name, "value", self.columns.column(reading.value), reading))
        given += [Output(each, "current", self.columns.column(quoted(each))) for each in used]
        plain = listed_columns(meaning, layout.keys, [], {each: quoted(each) for each in self.columns.names})
        for place, (_, text) in enumerate(plain):
            column = text if text in layout.keys else self.columns.column(text)
            given.append(Output(f"__hamlet_shown_{place}", "shown", column))
        self._shown = {text: f"__hamlet_shown_{place}" for place, (_, text) in enumerate(plain)}
        return checked

    def _used(self, text: str) -> Iterator[str]:
        """The columns that an expression may read."""
        folded = text.lower()
        everything = re.search(r"[(,]\s*\*", re.sub(r"count\s*\(\s*\*\s*\)", "", folded)) is not None
        return (each for each in self.columns.names if everything or each.lower() in folded)

    def output_schema(self, rows: StructType) -> StructType:
        """The columns that tasks give."""
        kinds: dict[str, DataType] = dict.fromkeys((MATCHED, SHOWN, "there"), BooleanType())
        kinds |= dict.fromkeys((TASK, VARIABLE), IntegerType())
        kinds |= dict.fromkeys((LABEL, "label"), StringType())
        found = StructType()
        for each in self.layout.outputs:
            kind = rows[each.column].dataType if each.column else kinds.get(each.kind, LongType())
            found.add(each.name, kind)
        return found

    # Behind the tasks.

    def rows(self, view: str) -> DataFrame:
        """The rows of the clause, from a view of what tasks gave.

        Raises
        ------
        Failed
            With the mistakes reported.
        """
        meaning = self.meaning
        texts = [self._measure(place, read) for place, read in enumerate(meaning.measures)]
        measures = [(each.name, text) for each, text in zip(meaning.clause.measures, texts, strict=True)]
        shown = {each: quoted(each) for each in self.columns.names}
        listed = listed_columns(meaning, self.layout.keys, measures, shown)
        listed = [(name, self._shown.get(text, text)) for name, text in listed]
        source = self._aggregated(view)
        behind = f" WHERE {SHOWN} DISTRIBUTE BY {TASK} SORT BY {TASK}, {POINT}" if self.layout.every_row else ""
        columns = ", ".join(f"{text} AS {quoted(name)}" for name, text in distinct_columns(listed))
        try:
            return self.spark.sql(f"SELECT {columns} FROM {source}{behind}")
        except Refusal as error:
            self._wrong(view, texts, error)
            raise Failed from None

    def _wrong(self, view: str, texts: Sequence[str], error: PySparkException | Py4JJavaError) -> None:
        """Report the measures that are wrong alone, or all."""
        known = len(self.reports.errors)
        for text, read in zip(texts, self.meaning.measures, strict=True):
            try:
                _ = self.spark.sql(f"SELECT {text} AS v FROM {self._aggregated(view, read)}").schema
            except Refusal as own:
                report(self.reports, read, own)
        if len(self.reports.errors) == known:
            self.reports.error(said(error), self.meaning.clause.span)

    def _measure(self, place: int, read: Read) -> str:
        """A measure over what tasks gave, and aggregates of it."""
        text = read.text
        for number, reading in enumerate(read.readings):
            name = _value(place, number)
            own = name
            looks = isinstance(reading, Navigation) and reading.value != LABEL
            if looks and (reading.reads_label or reading.reads_number):
                own = f"(CASE WHEN {name}_there THEN {self._at(reading, name)} END)"  # type: ignore[arg-type]
            text = text.replace(placeholder(number), own)
        return f"CASE WHEN {MATCHED} THEN ({text}) END" if self.meaning.clause.rows == "unmatched" else f"({text})"

    def _at(self, reading: Navigation, name: str) -> str:
        """The expression of a reading over the columns of the row that it leads to."""
        import sqlglot
        from sqlglot import exp

        names = {each.lower(): each for each in self.columns.names}
        tree = sqlglot.parse_one(f"({reading.value})", dialect="spark")
        for column in list(tree.find_all(exp.Column)):
            first = column.parts[0]
            if first.name.lower() == LABEL.lower():
                first.replace(exp.to_identifier(f"{name}_label"))
            elif first.name.lower() in names:
                first.replace(exp.to_identifier(f"{name}_of_{names[first.name.lower()]}", quoted=True))
        return tree.sql("spark")

    def _aggregated(self, view: str, only: Read | None = None) -> str:
        """What tasks gave with the aggregates of measures, a row for each row that they gave or for each match."""
        found = [
            (_value(place, number), reading)
            for place, read in enumerate(self.meaning.measures)
            if only is None or read is only
            for number, reading in enumerate(read.readings)
            if isinstance(reading, Aggregation) and _is_computed(reading)
        ]
        if not found:
            return view
        grouped = self.meaning.clause.rows == "one"
        calls = {name: self._call(reading) for name, reading in found}
        if grouped and not any(each.function.lower() in _IN_ORDER for each in calls.values()):
            kept = [each.name for each in self.layout.outputs if each.name not in (TASK, MATCH)]
            listed = [f"first({quoted(each)}) FILTER (WHERE {SHOWN}) AS {quoted(each)}" for each in kept]
            listed += [f"{each.text()} AS {name}" for name, each in calls.items()]
            return f"(SELECT {TASK}, {MATCH}, {', '.join(listed)} FROM {view} GROUP BY {TASK}, {MATCH})"
        windows, joins = [], []
        for name, reading in found:
            call = calls[name]
            final = grouped or reading.mode == "FINAL"
            in_order = call.function.lower() in _IN_ORDER - _NO_FRAME
            if not (call.distinct or call.within or call.function.lower() in _NO_FRAME) and (in_order or not final):
                windows.append(f"{call.over(final)} AS {name}")
            elif final:
                query = f"SELECT {TASK}, {MATCH}, {call.text()} AS {name} FROM {view} GROUP BY {TASK}, {MATCH}"
                joins.append(f" LEFT JOIN ({query}) USING ({TASK}, {MATCH})")
            else:
                pairs = f"SELECT a.{AT} AS __hamlet_to, b.* FROM {view} a JOIN {view} b "
                pairs += f"ON b.{TASK} = a.{TASK} AND b.{MATCH} = a.{MATCH} AND b.{AT} <= a.{AT}"
                query = f"SELECT {TASK}, __hamlet_to AS {AT}, {call.text()} AS {name} FROM ({pairs})"
                joins.append(f" LEFT JOIN ({query} GROUP BY {TASK}, __hamlet_to) USING ({TASK}, {AT})")
        return f"(SELECT * FROM (SELECT {', '.join(['*', *windows])} FROM {view}){''.join(joins)})"

    def _call(self, reading: Aggregation) -> _Call:
        function, arguments, left = host_call(reading, self.meaning.translate, "spark")
        clause = self.meaning.clause
        numbers = [place for place, name in enumerate(clause.variables) if name in clause.members(reading.variable)]
        seen = f"{VARIABLE} IN ({', '.join(map(str, numbers))})"
        translate = self.meaning.translate
        for each in (translate(reading.condition) if reading.condition else "", left):
            seen += f" AND ({each})" if each else ""
        within = reading.within
        if function.lower() in _LISTED and not within and not reading.distinct:
            within = AT
        return _Call(function, arguments, reading.distinct, seen, within, reading.order)


@dataclass(frozen=True)
class _Call:
    """An aggregate of Spark over rows of matches."""

    function: str
    arguments: str
    distinct: bool
    seen: str
    within: str
    order: str

    def text(self) -> str:
        """The aggregate of a group."""
        within = f" WITHIN GROUP (ORDER BY {self.within})" if self.within else ""
        order = f" ORDER BY {self.order}" if self.order else ""
        distinct = "DISTINCT " if self.distinct else ""
        return f"{self.function}({distinct}{self.arguments}{order}){within} FILTER (WHERE {self.seen})"

    def over(self, final: bool) -> str:
        """The aggregate of a window; it has no FILTER there, so that what is not seen is NULL."""
        import sqlglot

        arguments = "1" if self.arguments.strip() in ("*", "") else self.arguments
        tree: Any = sqlglot.parse_one(f"SELECT {arguments}", dialect="spark")
        parts = [f"CASE WHEN {self.seen} THEN {each.sql('spark')} END" for each in tree.expressions]
        end = "UNBOUNDED FOLLOWING" if final else "CURRENT ROW"
        frame = f"PARTITION BY {TASK}, {MATCH} ORDER BY {AT} ROWS BETWEEN UNBOUNDED PRECEDING AND {end}"
        return f"{self.function}({', '.join(parts)}) OVER ({frame})"


def _value(place: int, number: int) -> str:
    """The column of a reading of a measure."""
    return f"__hamlet_value_{place}_{number}"


def _is_computed(reading: Navigation | Aggregation) -> bool:
    """Whether Spark SQL computes a reading from the rows of matches."""
    if not isinstance(reading, Aggregation):
        return False
    plain = not (reading.distinct or reading.condition or reading.order or reading.within)
    return not (plain and reading.function.lower() == "count" and reading.arguments.strip() == "*")
