"""Files that come to a folder, read as `hamlet.run` reads them, for a monitor; no pyspark needed.

Columns are found by name, and their types are those of the signature and of the first file: they stay what they were
when the job began, in the checkpoint. A file is read once, so one that is written in place afterwards is a mistake,
which is told.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from hamlet.errors import DataError, RestoreError
from hamlet.input.files import open_path, own_columns
from hamlet.input.ordering import SortKey
from hamlet.input.widening import conform
from hamlet.policies.analysis.policy import Policy
from hamlet.policies.logs.reader import Predicate
from hamlet.policies.logs.tables import Tables
from hamlet.policies.options import OnlineOptions

_TYPES = {"int": pa.int64(), "float": pa.float64(), "string": pa.string(), "bool": pa.bool_()}
_MOST_FILES = 10_000  # whose sizes are remembered, the latest


class Arrivals:
    """The files of a folder, as they come.

    Parameters
    ----------
    policy : Policy
    wanted : set of (str, int)
        The predicates that it reads.
    options : OnlineOptions
    input_format : str or None
        By default the extension says.
    first : pathlib.Path
        A file that says of what type times are.
    kept : pathlib.Path
        The folder of the checkpoint in which columns and sizes are kept.

    Attributes
    ----------
    schema : pyarrow.Schema
        The columns that are read.
    gone : list of str
        Files that came and were moved away before they were read.

    Raises
    ------
    DataError
        The first file cannot be read, or its columns are not those of the signature.
    RestoreError
        What was kept is damaged.
    """

    def __init__(
        self,
        policy: Policy,
        wanted: Container[Predicate],
        options: OnlineOptions,
        input_format: str | None,
        first: Path,
        kept: Path,
    ) -> None:
        self._key = SortKey(options.time_column, options.order_column)
        self._type_column = options.type_column
        self._input_format = input_format
        self._columns, self._sizes = kept / "columns.arrow", kept / "files.json"
        self._known: dict[str, int] = {}
        self.gone: list[str] = []
        try:
            if self._sizes.exists():
                self._known = {str(name): int(size) for name, size in json.loads(self._sizes.read_text()).items()}
            self.schema = pa.ipc.read_schema(pa.BufferReader(self._columns.read_bytes()))
        except FileNotFoundError:
            self.schema = self._found(policy, wanted, first)
        except (ValueError, AttributeError, TypeError, pa.ArrowException) as error:
            raise RestoreError(f"the checkpoint is damaged: {kept} cannot be read ({error})") from None

    def _found(self, policy: Policy, wanted: Container[Predicate], first: Path) -> pa.Schema:
        """The columns that are read, with the types that they have in the first file or the signature."""
        reader = open_path(first, self._key, self._type_column, self._input_format)
        key = SortKey(self._key.time, self._key.order, reader.name)
        tables = Tables(policy.signature, wanted, reader.schema, key, self._type_column, open_columns=True)
        said = {
            name: _TYPES[kind]
            for each in policy.signature
            if (each.name, each.arity) in wanted
            for name, kind in zip(each.attributes, each.types, strict=True)
            if name is not None
        }
        fields = [reader.schema.field(name) for name in dict.fromkeys([*self._key.names, self._type_column])]
        for name in tables.columns:
            kind = reader.schema.field(name).type if name in reader.schema.names else pa.null()
            wide = pa.types.is_decimal(kind) and said[name] == pa.int64()
            fields.append(pa.field(name, kind if wide else said[name]))
        return pa.schema([field.with_nullable(True).remove_metadata() for field in fields])

    def remember(self) -> None:
        """Keep columns and sizes."""
        fresh = self._columns.with_suffix(".new")
        fresh.write_bytes(self.schema.serialize().to_pybytes())
        fresh.replace(self._columns)
        self._known = dict(list(self._known.items())[-_MOST_FILES:])
        fresh = self._sizes.with_suffix(".new")
        fresh.write_text(json.dumps(self._known))
        fresh.replace(self._sizes)

    def read(self, paths: Sequence[Path]) -> pa.Table:
        """The events of some files; all of them, or none.

        Raises
        ------
        DataError
            A file cannot be read, lacks a column or has a value of another type; the text says where.
        """
        self.gone += [str(path) for path in paths if not path.exists()]
        found = [batch for path in paths if path.exists() for batch in self._batches(path)]
        return pa.Table.from_batches(found, self.schema)

    def _batches(self, path: Path) -> Iterator[pa.RecordBatch]:
        size = path.stat().st_size
        types = {field.name: field.type for field in self.schema}
        reader = open_path(path, self._key, self._type_column, self._input_format, known=types)
        for events in reader.batches(own_columns(reader, self.schema.names)):
            yield conform(events, self.schema)
        self._known.pop(str(path), None)
        self._known[str(path)] = size

    def check(self) -> None:
        """Check that no file has changed since it was read.

        Raises
        ------
        DataError
            With the file, and what to do instead.
        """
        for name, size in self._known.items():
            path = Path(name)
            now = path.stat().st_size if path.exists() else size
            if now != size:
                raise DataError(
                    f"{name} has changed since it was read: it had {size:,} bytes, and has {now:,} now; what was "
                    "written since then is not read\n"
                    "hint: write a file elsewhere and move it into the folder when it is complete; here move the new "
                    "lines into a file of their own"
                )
