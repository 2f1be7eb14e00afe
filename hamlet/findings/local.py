"""Which events of a batch a variable of a query takes: those of its type that pass its local predicate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hamlet.input.buffers import filled, scalar, to_numpy
from hamlet.input.columns import StringPool, column, values
from hamlet.kernel.expression import OverflowInExpression
from hamlet.language.expression_types import times_as_compiled, type_of_attribute
from hamlet.language.meaning import AnalysedQuery
from hamlet.language.schema import Schema
from hamlet.planner.program import ProgramWriter

Mask = npt.NDArray[np.bool_]


class LocalPredicate:
    """The condition on single events that a variable of a query has.

    Parameters
    ----------
    query : AnalysedQuery
    variable : str
        One with a local predicate.
    schema : Schema
        Of the events.
    """

    def __init__(self, query: AnalysedQuery, variable: str, schema: Schema) -> None:
        schema = replace(schema, closed=True)  # of a stream that is complete, the types are known for good
        self._strings = StringPool()
        self._program = ProgramWriter(
            lambda reference: type_of_attribute(variable, reference.attribute, query, schema),
            lambda _: True,
            self._strings,
            times_as_compiled(query, schema),
        ).program(query.local[variable])
        self._columns = [
            (name, type_of_attribute(variable, name, query, schema)) for name in self._program.vector_columns
        ]

    @property
    def columns(self) -> list[str]:
        """What it reads."""
        return [name for name, _ in self._columns]

    def accepts(self, batch: pa.RecordBatch) -> Mask:
        """Which events pass, whatever their types; shape (rows,). All of them where an expression passes 64 bits."""
        columns = [values(batch, name, kind, self._strings) for name, kind in self._columns]
        try:
            found = self._program.select(columns, batch.num_rows, self._strings.ranks)
        except OverflowInExpression:  # the run says so, as an error
            return np.ones(batch.num_rows, np.bool_)
        return found.astype(np.bool_)


def of_type(batch: pa.RecordBatch, type_column: str, kind: str) -> Mask:
    """Which events have a type; shape (rows,)."""
    types = column(batch, type_column)
    if types is None or pa.types.is_null(types.type):
        return np.zeros(batch.num_rows, np.bool_)
    same = filled(pc.equal(types, scalar(kind).cast(_plain(types.type))), False)
    found: Mask = to_numpy(same)
    return found


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind
