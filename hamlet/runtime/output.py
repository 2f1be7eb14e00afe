"""Rows of all tenants on their way to all destinations, written before the next events are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hamlet.errors import OutputError
from hamlet.output.live import PartFiles, Sink
from hamlet.runtime.tenant import Pieces, RowText, Tenant, count_of


class TextOutput:
    """Rows as lines of one sink; CSV has one header for all."""

    def __init__(self, sink: Sink, output_format: str, tenants: Sequence[Tenant], *, begun: bool = False) -> None:
        self._sink = sink
        self._tenants = tenants
        self._format = output_format
        self._texts: dict[tuple[int, int], RowText] = {}
        self._begun = begun

    @property
    def begun(self) -> bool:
        """Whether the header was written."""
        return self._begun

    def write(self, place: int, pieces: Pieces) -> None:
        """Write rows of a tenant."""
        found = [] if self._begun else [self._head()]
        self._begun = True
        for part, rows in pieces:
            text = self._text(place, part)
            found += [text.lines(rows), text.tail()]
        self._sink.write("".join(found))

    def _text(self, place: int, part: int) -> RowText:
        key = (place, part)
        if key not in self._texts:
            self._texts[key] = self._tenants[place].row_text(part, self._format, lead=True, header=self._header())
        return self._texts[key]

    def _header(self) -> list[str]:
        named = [each.kind for each in self._tenants if getattr(each, "named", True)]
        union = [name for each in self._tenants for part in range(len(each.names)) for name in each.columns(part)]
        return list(dict.fromkeys([*named, *union]))

    def _head(self) -> str:
        return self._text(0, 0).head() if self._tenants else ""

    def finish(self) -> None:
        """Write what an output without rows has: a header."""
        if not self._begun:
            self._begun = True
            self._sink.write(self._head())

    def close(self) -> None:
        """Let go of the sink."""
        self._sink.close()


class FolderOutput:
    """Rows in a folder, a file per part."""

    def __init__(self, files: PartFiles, output_format: str, tenants: Sequence[Tenant]) -> None:
        self.files = files
        self._format = output_format
        self._tenants = tenants
        self._texts: dict[tuple[int, int], RowText] = {}
        self._first = [sum(len(each.names) for each in tenants[:place]) for place in range(len(tenants))]
        self._parts = [(place, part) for place, each in enumerate(tenants) for part in range(len(each.names))]

    def write(self, place: int, pieces: Pieces) -> None:
        """Write rows of a tenant."""
        for part, rows in pieces:
            number = self._first[place] + part
            if self._format == "parquet":
                self.files.write_batch(number, self._tenants[place].batch(part, rows))
                continue
            text = self._text(place, part)
            head = text.head() if self.files.is_new(number) else ""
            self.files.write(number, head + text.lines(rows) + text.tail())

    def _text(self, place: int, part: int) -> RowText:
        key = (place, part)
        if key not in self._texts:
            self._texts[key] = self._tenants[place].row_text(part, self._format, lead=False)
        return self._texts[key]

    def finish(self) -> None:
        """Write what a part without rows has: a file with a header."""
        if self._format != "parquet" and self.files.number == 0:
            for number, (place, part) in enumerate(self._parts):
                if self.files.is_new(number):
                    self.files.write(number, self._text(place, part).head())

    def close(self) -> None:
        """Bring all rows to the disk."""
        self.files.close()


Output = TextOutput | FolderOutput


def rows_in(pieces: Pieces) -> int:
    """How many rows there are."""
    return sum(count_of(rows) for _, rows in pieces)


def written(outputs: Sequence[Any], place: int, pieces: Pieces) -> int:
    """Write rows everywhere, also where one of the outputs fails; gives their number."""
    failed: OSError | OutputError | None = None
    for each in outputs if pieces else ():
        try:
            each.write(place, pieces)
        except (OSError, OutputError) as error:
            failed = failed or error
    if failed is not None:
        raise failed
    return rows_in(pieces)
