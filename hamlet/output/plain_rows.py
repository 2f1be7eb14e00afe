"""Rows in numpy's columns, with as much of the face of `pyarrow.RecordBatch` as text is written from.

Who writes rows of integers, floats and Booleans as lines needs no Arrow for it, which takes longer to load than a small
run, and more memory than many a large one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from hamlet.arrays import np, npt, pa
from hamlet.input.buffers import from_numpy


class PlainRows:
    """Rows, column by column.

    Parameters
    ----------
    columns : mapping of str to array of int64, float64 or bool of shape (rows,)
        Not empty.
    missing : mapping of str to bool array of shape (rows,)
        Of columns with NULL, where it is.
    """

    def __init__(
        self, columns: Mapping[str, npt.NDArray[Any]], missing: Mapping[str, npt.NDArray[np.bool_]] | None = None
    ) -> None:
        self._columns = dict(columns)
        self._missing = dict(missing or {})
        self.column_names = list(self._columns)

    @property
    def nbytes(self) -> int:
        """Bytes of the columns."""
        return sum(each.nbytes for each in (*self._columns.values(), *self._missing.values()))

    @property
    def num_rows(self) -> int:
        """How many there are."""
        return len(self._columns[self.column_names[0]])

    @property
    def num_columns(self) -> int:
        """How wide they are."""
        return len(self.column_names)

    def column(self, name: str) -> Any:
        """A column; masked where it has NULL."""
        found, missing = self._columns[name], self._missing.get(name)
        return found if missing is None else np.ma.MaskedArray(found, missing)

    @property
    def columns(self) -> list[Any]:
        """All columns."""
        return [self.column(name) for name in self.column_names]

    def slice(self, begin: int, rows: int | None = None) -> PlainRows:
        """Some rows."""
        part = slice(begin, None if rows is None else begin + rows)
        return PlainRows(
            {name: column[part] for name, column in self._columns.items()},
            {name: missing[part] for name, missing in self._missing.items()},
        )

    def in_arrow(self) -> pa.RecordBatch:
        """These rows as Arrow's."""
        arrays = [from_numpy(column, missing=self._missing.get(name)) for name, column in self._columns.items()]
        return pa.RecordBatch.from_arrays(arrays, names=self.column_names)


Rows: TypeAlias = "PlainRows | pa.RecordBatch"


def arrow_rows(rows: Rows) -> pa.RecordBatch:
    """Rows of either kind as Arrow's."""
    return rows.in_arrow() if isinstance(rows, PlainRows) else rows


def joined_rows(parts: Sequence[Rows]) -> Rows:
    """Rows without NULL, one behind the other; integers of more than 64 bits make columns of decimals."""
    if len(parts) == 1:
        return parts[0]
    if all(isinstance(each, PlainRows) for each in parts):
        return PlainRows(
            {name: np.concatenate([each.column(name) for each in parts]) for name in parts[0].column_names}
        )
    tables = [pa.Table.from_batches([arrow_rows(each)]) for each in parts]
    whole = pa.concat_tables(tables, promote_options="permissive").combine_chunks()
    return whole.to_batches()[0]
