"""From partial rows to result rows and files: what the last tasks of a job run; no pyspark needed."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from hamlet.errors import OutputError
from hamlet.findings import Tally, tally_of
from hamlet.input.ordering import BATCH_ROWS
from hamlet.input.widening import conform
from hamlet.output.files import part_file
from hamlet.output.place import folder_name
from hamlet.output.query_rows import QueryRows, ResultColumn
from hamlet.output.rows import present, result_columns
from hamlet.output.tables import CountTypes, to_arrow, unsettled
from hamlet.planner.workload import Workload
from hamlet.spark.online import met
from hamlet.spark.tasks import Shipment, codec_of

# of a file; the largest COUNT as hexadecimal digits
WRITTEN = pa.schema([("query", pa.int32()), ("rows", pa.int64()), ("infinite", pa.int64()), ("most", pa.string())])


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

    def columns(self, query: int) -> tuple[ResultColumn, ...]:
        """The columns of a query."""
        return result_columns(self._queries[query], self.schema)

    def decided(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, QueryRows]]:
        """Result rows from what slices have decided, by the places of queries."""
        return self.rows(met(batches))

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


class Tallied:
    """Counts result rows as they pass.

    Parameters
    ----------
    workload : Workload

    Attributes
    ----------
    found : dict of int to Tally
        By the query's place in the workload.
    """

    def __init__(self, workload: Workload) -> None:
        self._queries = {query.name: (place, query) for place, query in enumerate(workload.queries)}
        self.found: dict[int, Tally] = {}

    def passing(self, rows: Iterable[QueryRows]) -> Iterator[QueryRows]:
        """The rows, as they come."""
        for each in rows:
            place, query = self._queries[each.name]
            self.found[place] = self.found.get(place, Tally()).plus(tally_of(query, each))
            yield each


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
        for batch in to_arrow(each, clock, unsettled(shipment.options.count_type)).combine_chunks().to_batches():
            yield pa.RecordBatch.from_arrays(conform(batch, schema).columns, list(names))


def write_files(
    shipment: Shipment,
    folder: str,
    output_format: str,
    part: str,
    batches: Iterable[pa.RecordBatch],
    types: Sequence[CountTypes] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Write a task's sorted partial rows as result files; as `write_rows`."""
    return write_rows(shipment, folder, output_format, part, Presenter(shipment).rows(batches), types)


def write_rows(
    shipment: Shipment,
    folder: str,
    output_format: str,
    part: str,
    rows: Iterable[tuple[int, QueryRows]],
    types: Sequence[CountTypes] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Write rows that are sorted by query as result files, one per query, and say what was written.

    `types` says per query what COUNT and SUM are; by default the count type of the options does. A file gets its name
    when it is whole, so tasks that are run twice leave no piece of a file.

    Raises
    ------
    OutputError
        If the disk cannot take the files, or a value does not fit the count type.
    """
    queries = shipment.workload.queries
    count_type, clock = shipment.options.count_type, shipment.schema().clock
    for query, pieces in itertools.groupby(rows, key=lambda piece: piece[0]):
        path = Path(folder, folder_name(queries[query].name), f"part-{part}.{output_format}")
        unfinished = path.with_name(f".{path.name}.{os.getpid()}")
        infinite, tally = 0, Tally()
        try:
            chosen = count_type if types is None else types[query]
            _, first = next(pieces)
            with part_file(unfinished, output_format, first.columns, clock, chosen) as write:
                for _, piece in itertools.chain([(query, first)], pieces):
                    tally = tally.plus(tally_of(queries[query], piece))
                    infinite += write(piece)
            unfinished.replace(path)
        except (OSError, pa.ArrowException) as error:
            raise OutputError(f"cannot write {path}: {getattr(error, 'strerror', None) or error}") from error
        row = {"query": query, "rows": tally.rows, "infinite": infinite, "most": f"{tally.most:x}"}
        yield pa.RecordBatch.from_pylist([row], WRITTEN)
