"""Place in the sources and state of the tenants, saved together, so that a run goes on after any end."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Protocol

import pyarrow as pa

from hamlet.checkpoint.columns import BlobReader, BlobWriter, Json
from hamlet.checkpoint.folder import Folder
from hamlet.checkpoint.frame import Work
from hamlet.errors import RestoreError, option
from hamlet.frontend.time_column import TIME
from hamlet.input.file_form import Dropped
from hamlet.input.live.sources import Source
from hamlet.runtime.drive import Driver
from hamlet.runtime.output import FolderOutput, Output

FIELDS = (
    "sources",
    "places",
    "events",
    "last_time",
    "bad",
    "late",
    "rows",
    "ended",
    "tenants",
    "columns",
    "outputs",
    "parts",
)


class Transactions(Protocol):
    """Rows that others see with a save and not before."""

    def commit(self, generation: int, sources: Sequence[Any]) -> None:
        """Let rows be seen; the sources' places are part of it."""
        ...


def work_of(texts: Sequence[str]) -> Work:
    """What a checkpoint of some texts is of."""
    return Work("streams", "\n\n".join(texts))


class Saves:
    """The saves of a driven run.

    Parameters
    ----------
    folder : Folder
    names : sequence of str
        Of the outputs, as the user gave them.
    """

    def __init__(self, folder: Folder, sources: Sequence[str], names: Sequence[str]) -> None:
        self.folder = folder
        self._sources, self._names = list(sources), list(names)
        self.transactions: Transactions | None = None
        self.fields: dict[str, Json] | None = None
        self.states: list[bytes] = []
        self.columns: list[bytes] = []

    def load(self, at_most: int | None = None) -> bool:
        """Read what was saved last; whether there is something.

        Raises
        ------
        RestoreError
        """
        found = self.folder.read(at_most)
        if found is None:
            if self.folder.saves():
                raise RestoreError(f"the rows of no save of the checkpoint {self.folder.path} were committed to Kafka")
            return False
        self.fields, blobs = found
        self._check()
        self.states = _blobs(blobs, self.fields["tenants"])
        self.columns = _blobs(blobs, self.fields["columns"])
        return True

    def _check(self) -> None:
        assert self.fields is not None
        for what, now in (("sources", self._sources), ("outputs", self._names)):
            if self.fields[what] != now:
                known = " ".join(self.fields[what]) or "nothing"
                option = "--input" if what == "sources" else "--output"
                raise RestoreError(
                    f"the checkpoint {self.folder.path} is of a run with {option} {known}\n"
                    "hint: go on with the same inputs and outputs, or choose another folder for the checkpoint"
                )

    def refuse_other_options(self, asked: Sequence[Any], saved: Sequence[Any]) -> None:
        """Raise RestoreError where tenants that were saved have other options than those that are asked for.

        A limit of memory is heard, so it may be another one (`hamlet.runtime.sizes.limit_of`).
        """
        for wanted, kept in zip((each.asked for each in asked), (each.asked for each in saved), strict=True):
            for name, value in wanted.items():
                if name == "max_memory" or (name == "time_column" and value in (None, TIME)):
                    continue
                if json.dumps(value, default=str) != json.dumps(kept[name], default=str):
                    without = kept[name] is None or kept[name] is False
                    told = f"without {option(name)}" if without else f"with {option(name, kept[name])}"
                    raise RestoreError(
                        f"the checkpoint {self.folder.path} is of a run {told}\n"
                        "hint: go on with the same options, or choose another folder for the checkpoint"
                    )

    @property
    def ended(self) -> bool:
        """Whether the run that was saved had come to its end."""
        return self.fields is not None and bool(self.fields["ended"])

    @property
    def rows(self) -> int:
        """How many rows had been given."""
        return 0 if self.fields is None else sum(map(sum, self.fields["rows"]))

    def part(self, number: int) -> int:
        """The number of the first files of an output that were not sealed."""
        return 0 if self.fields is None else int(self.fields["parts"][number])

    def resume(self, sources: Sequence[Source], tenants: Sequence[Any], driver: Driver) -> list[str]:
        """Let sources, tenants and counts go on; gives what is to be said of sources that cannot."""
        if self.fields is None:
            return []
        said = []
        for number, (source, place) in enumerate(zip(sources, self.fields["places"], strict=True)):
            if source.repeatable:
                driver.begun[number] = source.resume(place)
                continue
            events, time = self.fields["events"], self.fields["last_time"]
            at = "" if time is None else f" (time {time})"
            said.append(f"a pipe cannot be read again: events after number {events}{at} were at stake")
        for tenant, columns in zip(tenants, self.columns, strict=True):
            if columns and hasattr(tenant, "known"):
                tenant.known.resume(pa.ipc.read_schema(pa.py_buffer(columns)))
        rows, examples = self.fields["bad"]
        driver.bad.dropped = Dropped(rows, list(examples))
        driver.meter.rows_of = [list(each) for each in self.fields["rows"]]
        driver.meter.rows = sum(map(sum, driver.meter.rows_of))
        return said

    def save(self, driver: Driver, ended: bool) -> None:
        """Write all down."""
        outputs: Sequence[Output] = driver.outputs
        for each in outputs:
            if isinstance(each, FolderOutput):
                each.files.seal()
        blobs = BlobWriter()
        states = [b"" if ended else each.save() for each in driver.tenants]
        columns = [_columns(each) for each in driver.tenants]
        fields: dict[str, Json] = {
            "sources": self._sources,
            "places": driver.places(),
            "events": driver.events,
            "last_time": next((each.last_time for each in driver.tenants if each.last_time is not None), None),
            "bad": [driver.bad.dropped.rows, driver.bad.dropped.examples],
            "late": driver.late_events,
            "rows": driver.meter.rows_of,
            "ended": ended,
            "tenants": [blobs.blob(each) for each in states],
            "columns": [blobs.blob(each) for each in columns],
            "outputs": self._names,
            "parts": [each.files.number if isinstance(each, FolderOutput) else 0 for each in outputs],
        }
        self.folder.write(fields, blobs)
        if self.transactions is not None:
            self.transactions.commit(self.folder.generation, driver.sources)
        for each in outputs:
            if isinstance(each, FolderOutput):
                each.files.show()


def _columns(tenant: Any) -> bytes:
    """What a tenant has learnt of its columns."""
    if not hasattr(tenant, "known"):
        return b""
    return tenant.known.saved().serialize().to_pybytes()  # type: ignore[no-any-return]


def _blobs(blobs: BlobReader, lengths: Json) -> list[bytes]:
    return [bytes(blobs.blob(each)) for each in lengths]
