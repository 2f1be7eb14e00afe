"""The messages about a specification, whose text may lie in several files.

Places count through all the files that one specification includes: file after file, each behind the one before. So a
`Span` alone says which file it is in, and `Reports` gives every message the text and the name of that file.
"""

from __future__ import annotations

import bisect

from hamlet.errors import Diagnostic
from hamlet.language.query import Span


class Reports:
    """Collects the mistakes of one specification.

    Parameters
    ----------
    text, source : str
        The specification and its file name; included files are added by `include`.
    """

    def __init__(self, text: str, source: str) -> None:
        self.errors: list[Diagnostic] = []
        self.warnings: list[Diagnostic] = []
        self._starts = [0]
        self._texts = [(text, source)]
        self._seen: set[tuple[str, int, int]] = set()

    def include(self, text: str, source: str) -> int:
        """Add a file; returns the place of its first character."""
        start = self._starts[-1] + len(self._texts[-1][0]) + 1
        self._starts.append(start)
        self._texts.append((text, source))
        return start

    def error(self, message: str, span: Span, hint: str | None = None) -> None:
        """Record a mistake, once."""
        key = (message, span.start, span.end)
        if key not in self._seen:
            self._seen.add(key)
            self.errors.append(self._diagnostic(message, span, hint, "error"))

    def warn(self, message: str, span: Span, hint: str | None = None) -> None:
        """Record what is allowed but probably not meant."""
        self.warnings.append(self._diagnostic(message, span, hint, "warning"))

    def quote(self, span: Span, longest: int = 40) -> str:
        """The text of a span on one line, cut where it is long, in single quotes."""
        place = self._place(span)
        text, start = self._texts[place][0], self._starts[place]
        words = " ".join(text[span.start - start : span.end - start].split())
        return f"'{words}'" if len(words) <= longest else f"'{words[: longest - 3]}...'"

    def place(self, span: Span) -> str:
        """``line 3``, with the file where it is an included one."""
        here = self._diagnostic("", span, None, "error")
        return f"line {here.line}" + (f" of {here.source}" if self._place(span) else "")

    def _place(self, span: Span) -> int:
        return bisect.bisect_right(self._starts, span.start) - 1

    def _diagnostic(self, message: str, span: Span, hint: str | None, severity: str) -> Diagnostic:
        place = self._place(span)
        (text, source), start = self._texts[place], self._starts[place]
        local = Span(span.start - start, min(span.end - start, len(text)))
        return Diagnostic(message, local, hint, severity, text, source)  # type: ignore[arg-type]
