"""Local Parquet files in parts, each of which a task reads by itself: no event becomes a row of Spark.

Where events need not be shuffled (`hamlet.spark.products`) nobody but the task has to see them. Spark would read them
into rows, make Arrow batches of the rows, and send those through a socket, which costs more than the engine does.

A part is some row groups. Row groups are put in the order of time by the statistics of the files, which are a guess:
what they lead to is measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from hamlet.input.files import ParquetFile
from hamlet.input.widening import conform

MOST_ROWS = 1 << 22  # of a part, where more parts would not leave cores idle: work that is lost with a task


@dataclass(frozen=True)
class RowGroup:
    """A row group of a file.

    Attributes
    ----------
    path : str
    number : int
    rows : int
    times : (int, int) or None
        The least and the greatest time as the file stores them; None where it does not say.
    """

    path: str
    number: int
    rows: int
    times: tuple[int, int] | None


Part = tuple[RowGroup, ...]


def row_groups(paths: Iterable[str], time: str, chosen: Mapping[str, Sequence[int]] | None = None) -> list[RowGroup]:
    """The row groups of files that have rows, in the order of time where all files tell it, else as they come.

    Parameters
    ----------
    paths : iterable of str
    time : str
        The time column.
    chosen : mapping of str to sequence of int, optional
        The row groups of each file that count; by default all.

    Raises
    ------
    OSError, pyarrow.ArrowException
        A file has changed since its columns were looked at.
    """
    found = []
    for path in paths:
        metadata = pq.read_metadata(path)
        for number in range(metadata.num_row_groups) if chosen is None else chosen[path]:
            group = metadata.row_group(number)
            if group.num_rows:
                found.append(RowGroup(path, number, group.num_rows, _times(group, time)))
    if all(each.times is not None for each in found):
        found.sort(key=lambda each: each.times or ())
    return found


def _times(group: pq.RowGroupMetaData, time: str) -> tuple[int, int] | None:
    for place in range(group.num_columns):
        column = group.column(place)
        if column.path_in_schema == time and column.is_stats_set and column.statistics.has_min_max:
            least, most = column.statistics.min_raw, column.statistics.max_raw
            return (least, most) if isinstance(least, int) else None
    return None


def parts_of(groups: Sequence[RowGroup], slots: int) -> list[Part]:
    """Row groups as parts of about equal size, in their order: a multiple of `slots`, the tasks that run at a time.

    Examples
    --------
    >>> groups = [RowGroup("f", number, 10, None) for number in range(5)]
    >>> [[group.number for group in part] for part in parts_of(groups, 2)]
    [[0, 1, 2], [3, 4]]
    """
    rows = sum(each.rows for each in groups)
    count = slots * max(1, -(-rows // (slots * MOST_ROWS)))
    parts: list[list[RowGroup]] = [[] for _ in range(count)]
    before = 0
    for each in groups:
        parts[(before + each.rows // 2) * count // rows].append(each)
        before += each.rows
    return [tuple(part) for part in parts if part]


def read_part(part: Part, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The events of a part, file by file, with the columns of a schema.

    Raises
    ------
    DataError
        A file cannot be read.
    """
    for path, groups in groupby(part, key=lambda each: each.path):
        file = ParquetFile(Path(path))
        own = [name for name in schema.names if name in file.schema.names]
        file.groups = [each.number for each in groups]
        for batch in file.batches(own):
            yield conform(batch, schema)
