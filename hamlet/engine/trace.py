"""The trace: one record per burst that some query had trends to extend in, and what was decided for it.

Columns: ``pane`` (ticks of the stream's clock: where the pane of the burst begins), ``key`` (the partition: name=value,
joined by commas), ``type``, the counts of the benefit model by the paper's symbols (``b``, ``n``, ``g``, ``k``,
``s_c``, ``s_p``), ``shared_cost`` and ``non_shared_cost`` (nanoseconds, or operations under the model ``paper``): of
all queries with trends that the burst extends, if they share it and if each is on its own; ``decision`` (``shared``,
``alone``, ``split``, ``merged``) and ``queries``, those that shared. Where windows overlap, ``n`` is an estimate.

Source: HAMLET (SIGMOD'21) §4, Fig. 6.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hamlet._core import DECISIONS
from hamlet.errors import OptionError, OutputError
from hamlet.output.place import check_place

if TYPE_CHECKING:
    import pyarrow.parquet as pq

OPTION = "--trace"
COUNTS = ("b", "n", "g", "k", "s_c", "s_p")

SCHEMA = pa.schema(
    [
        ("pane", pa.int64()),
        ("key", pa.string()),
        ("type", pa.string()),
        *((name, pa.int64()) for name in COUNTS),
        ("shared_cost", pa.float64()),
        ("non_shared_cost", pa.float64()),
        ("decision", pa.string()),
        ("queries", pa.list_(pa.string())),
    ]
)


def records(
    bursts: npt.NDArray[np.void],
    shared: npt.NDArray[np.int32],
    keys: Sequence[str],
    types: Sequence[str],
    queries: Sequence[Sequence[str]],
) -> pa.RecordBatch:
    """What a kernel has recorded, with names.

    Parameters
    ----------
    bursts, shared
        From `hamlet._core.Kernel.take_trace`.
    keys : sequence of str, one per burst
    types : sequence of str
        Names by number.
    queries : sequence of sequence of str
        Names of the queries that each of the kernel's queries serves.
    """
    served = np.array([len(names) for names in queries], np.int64)
    last = np.concatenate([np.zeros(1, np.int64), np.cumsum(served[shared])])
    ends = last[np.concatenate([np.zeros(1, np.int64), np.cumsum(bursts["queries"])])].astype(np.int32)
    names = pa.array([name for number in shared.tolist() for name in queries[number]], pa.string())
    columns: list[Any] = [
        pa.array(bursts["pane"]),
        pa.array(keys, pa.string()),
        pa.array([types[number] for number in bursts["type"].tolist()], pa.string()),
        *(pa.array(bursts[name]) for name in (*COUNTS, "shared_cost", "non_shared_cost")),
        pa.array([DECISIONS[number] for number in bursts["decision"].tolist()], pa.string()),
        pa.ListArray.from_arrays(pa.array(ends), names),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


class TraceFile:
    """A trace on its way into a file; the file is there once the run has ended, whole, or not at all.

    Parameters
    ----------
    path : path
        ``.parquet``, or ``.jsonl`` / ``.json`` for a JSON object per line. A file of that name is replaced.
    keep : iterable of str
        Files that must not be replaced, and folders of such files: the workload and the input.

    Raises
    ------
    OptionError
        For another extension.
    OutputError
        The file cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str], keep: Iterable[str] = ()) -> None:
        self.path = Path(path)
        if self.path.suffix not in (".parquet", ".jsonl", ".json"):
            raise OptionError(f"the trace file {str(path)!r} must end in .parquet, .jsonl or .json")
        self._place = check_place(path, OPTION, keep, example="bursts.parquet").resolve()
        self._fresh = self._place.with_name(f".{self._place.name}.{uuid.uuid4().hex}")
        self._parquet: pq.ParquetWriter | None = None
        self._text: TextIO | None = None

    def __enter__(self) -> TraceFile:
        try:
            if self.path.suffix == ".parquet":
                import pyarrow.parquet as pq  # needed for this format only

                self._parquet = pq.ParquetWriter(self._fresh, SCHEMA)
            else:
                self._text = self._fresh.open("w", encoding="utf-8", newline="\n")
        except OSError as error:
            raise OutputError(f"cannot write the trace {self.path}: {error.strerror or error}") from error
        return self

    def write(self, table: pa.Table) -> None:
        """Append records."""
        try:
            if self._parquet is not None and table.num_rows:
                self._parquet.write_table(table)
            elif self._text is not None:
                self._text.writelines(f"{json.dumps(record, ensure_ascii=False)}\n" for record in table.to_pylist())
        except OSError as error:
            raise OutputError(f"cannot write the trace {self.path}: {error.strerror or error}") from error

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        try:
            for file in (self._parquet, self._text):
                if file is not None:
                    file.close()
            if kind is None:
                self._fresh.replace(self._place)
        except OSError as error:
            raise OutputError(f"cannot write the trace {self.path}: {error.strerror or error}") from error
        finally:
            self._fresh.unlink(missing_ok=True)
