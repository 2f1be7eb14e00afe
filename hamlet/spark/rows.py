"""From partial rows to result rows and files: what the last tasks of a job run; no pyspark needed."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from hamlet.errors import OutputError
from hamlet.input.ordering import BATCH_ROWS
from hamlet.input.widening import conform
from hamlet.output.files import folder_name, part_file
from hamlet.output.query_rows import QueryRows, ResultColumn
from hamlet.output.rows import present, result_columns
from hamlet.output.tables import to_arrow
from hamlet.spark.tasks import Shipment, codec_of

WRITTEN = pa.schema([("query", pa.int32()), ("rows", pa.int64()), ("infinite", pa.int64())])


class Presenter:
    """Makes result rows of partial rows.

    Parameters
    ----------
    shipment : Shipment
    """

    def __init__(self, shipment: Shipment) -> None:
        compiled = shipment.compiled()
        self.schema = compiled.schema
        self._queries = {query.analysed.index: query for query in compiled.queries}
        self._tops = shipment.tops
        self._codecs = {place: codec_of(query, self.schema) for place, query in self._queries.items()}

    @property
    def names(self) -> list[str]:
        """The names of the queries, in the order of the workload."""
        return [self._queries[place].name for place in sorted(self._queries)]

    def columns(self, query: int) -> tuple[ResultColumn, ...]:
        """The columns of a query."""
        return result_columns(self._queries[query], self.schema)

    def rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, QueryRows]]:
        """Result rows from partial rows that are sorted by query, window and group; equal ones are merged."""
        for query, pieces in itertools.groupby(_by_query(batches), key=lambda piece: piece[0]):
            windows: list[int] = []
            groups: list[bytes] = []
            components: list[bytes] = []
            for _, piece in pieces:
                windows += piece.column("window").to_pylist()
                groups += piece.column("group").to_pylist()
                components += piece.column("components").to_pylist()
                border = _last_window if query in self._tops else _last_border
                cut = border(windows, groups) if len(windows) >= BATCH_ROWS else 0
                if cut:
                    yield query, self._present(query, windows[:cut], groups[:cut], components[:cut])
                    windows, groups, components = windows[cut:], groups[cut:], components[cut:]
            yield query, self._present(query, windows, groups, components)

    def _present(self, query: int, windows: list[int], groups: list[bytes], components: list[bytes]) -> QueryRows:
        rows = self._codecs[query].merge(windows, groups, components)
        return present(self._queries[query], self.columns(query), rows, self.schema.units)


def _by_query(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The batches cut where the query changes."""
    for batch in batches:
        if not batch.num_rows:
            continue
        queries = batch.column("query").to_numpy()
        starts = [0, *(np.nonzero(np.diff(queries))[0] + 1).tolist(), batch.num_rows]
        for start, end in itertools.pairwise(starts):
            yield int(queries[start]), batch.slice(start, end - start)


def _last_border(windows: list[int], groups: list[bytes]) -> int:
    """Where the last window and group begins."""
    place = len(windows) - 1
    while place and (windows[place - 1], groups[place - 1]) == (windows[-1], groups[-1]):
        place -= 1
    return place


def _last_window(windows: list[int], _: list[bytes]) -> int:
    """Where the last window begins: TOP compares all of its rows."""
    return windows.index(windows[-1])  # they are in order


def result_batches(
    rows: Iterable[QueryRows], shipment: Shipment, schema: pa.Schema, names: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Result rows as batches of one schema for all queries.

    Parameters
    ----------
    rows : iterable of QueryRows
    shipment : Shipment
    schema : pyarrow.Schema
        The union of the queries' columns; NULL where a query lacks one.
    names : sequence of str
        What Spark calls these columns.
    """
    clock = shipment.schema().clock
    for each in rows:
        for batch in to_arrow(each, clock, shipment.options.count_type).combine_chunks().to_batches():
            yield pa.RecordBatch.from_arrays(conform(batch, schema).columns, list(names))


def write_files(
    shipment: Shipment, folder: str, output_format: str, part: str, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Write a task's sorted partial rows as result files, one per query, and say what was written.

    A file gets its name when it is whole, so tasks that are run twice leave no piece of a file.

    Raises
    ------
    OutputError
        If the disk cannot take the files, or a value does not fit the count type.
    """
    presenter = Presenter(shipment)
    count_type, clock = shipment.options.count_type, presenter.schema.clock
    for query, pieces in itertools.groupby(presenter.rows(batches), key=lambda piece: piece[0]):
        path = Path(folder, folder_name(presenter.names[query]), f"part-{part}.{output_format}")
        unfinished = path.with_name(f".{path.name}.{os.getpid()}")
        rows = infinite = 0
        try:
            with part_file(unfinished, output_format, presenter.columns(query), clock, count_type) as write:
                for _, piece in pieces:
                    rows += len(piece)
                    infinite += write(piece)
            unfinished.replace(path)
        except (OSError, pa.ArrowException) as error:
            raise OutputError(f"cannot write {path}: {getattr(error, 'strerror', None) or error}") from error
        yield pa.RecordBatch.from_pylist([{"query": query, "rows": rows, "infinite": infinite}], WRITTEN)
