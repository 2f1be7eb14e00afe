"""What the language has and the engine does not run yet: refused, so that no row is computed with another meaning."""

from __future__ import annotations

from collections.abc import Iterator

from hamlet.errors import UnsupportedError
from hamlet.language.meaning import AnalysedQuery, Analysis


def refuse_unsupported(analysis: Analysis) -> None:
    """Raise UnsupportedError where a query asks for what the engine does not run."""
    for query in analysis.queries:
        for what in _unsupported(query):
            raise UnsupportedError(f"the query {query.query.name} asks for {what}, which the engine does not run yet")


def _unsupported(query: AnalysedQuery) -> Iterator[str]:
    if query.upstream:
        yield "the rows of other queries"
