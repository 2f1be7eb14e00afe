"""Evidence for a row: what makes the answer easy to check, as text, JSON and a page."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Mapping
from typing import Any

from hamlet.errors import OptionError
from hamlet.output.plain import json_value

_SHOWN = 20  # rows of an ambiguous answer that are listed


class Evidence:
    """What makes a row, or its absence, easy to check.

    Attributes
    ----------
    data : dict
        One object of JSON: ``kind``, ``row``, ``holds``, and what the kind has.
    """

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data

    @property
    def kind(self) -> str:
        """Of what: ``trends``, ``proof``, ``value`` or ``match``."""
        return str(self.data["kind"])

    @property
    def holds(self) -> bool:
        """Whether the result has the row."""
        return bool(self.data["holds"])

    def json(self, indent: int | None = None) -> str:
        """The evidence as one JSON object."""
        return json.dumps(self.data, ensure_ascii=False, indent=indent)

    def text(self) -> str:
        """The evidence as text for a terminal."""
        from hamlet.why.texts import text_of

        return text_of(self.data)

    def html(self) -> str:
        """The evidence as a page of its own, without anything from the network."""
        from hamlet.why.page import page_of

        return page_of(self.data)

    def fragment(self, prefix: str = "") -> str:
        """The evidence as a part of a page, whose names begin alike."""
        from hamlet.why.page import fragment_of

        return fragment_of(self.data, prefix)

    def _repr_html_(self) -> str:
        return self.fragment()

    def __repr__(self) -> str:
        return f"<Evidence {self.kind}, {'in' if self.holds else 'not in'} the result: {self.data['row']}>"


def only_row(rows: Iterable[Mapping[str, Any]], wanted: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The row that has the wanted values, None where none has.

    Raises
    ------
    OptionError
        If several have, with a list of them.
    """
    found = [row for row in rows if all(name in row and same(row[name], value) for name, value in wanted.items())]
    if len(found) > 1:
        listed = "\n".join(f"  {json.dumps(json_value(each), ensure_ascii=False)}" for each in found[:_SHOWN])
        more = f"\n  ... and {len(found) - _SHOWN:,} more" if len(found) > _SHOWN else ""
        raise OptionError(f"{len(found):,} rows match; name one of them with more columns:\n{listed}{more}")
    return found[0] if found else None


def same(value: Any, wanted: Any) -> bool:
    """Whether a value of a result is the one that a user named, perhaps in JSON."""
    if isinstance(value, datetime.datetime) and isinstance(wanted, str):
        try:
            return value == datetime.datetime.fromisoformat(wanted)
        except (ValueError, TypeError):
            return False
    if isinstance(value, bool) is not isinstance(wanted, bool):
        return False
    return bool(json_value(value) == json_value(wanted))
