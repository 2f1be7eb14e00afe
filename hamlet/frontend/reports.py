"""The messages about a text, which may lie in several files.

Places count through all the files that a text includes: file after file, each behind the one before. So a `Span` alone
says which file it is in, and `Reports` gives every message the text and the name of that file.
"""

from __future__ import annotations

import bisect

from hamlet.errors import Diagnostic, Severity, Span


class Reports:
    """Collects the mistakes and the warnings of one text.

    Parameters
    ----------
    text, source : str
        The text and its file name; included files are added by `include`.
    """

    def __init__(self, text: str, source: str) -> None:
        self.text = text
        self.source = source
        self.errors: list[Diagnostic] = []
        self.warnings: list[Diagnostic] = []
        self._starts = [0]
        self._texts = [(text, source)]
        self._seen: set[tuple[str, Span]] = set()

    def include(self, text: str, source: str) -> int:
        """Add a file; returns the place of its first character."""
        start = self._starts[-1] + len(self._texts[-1][0]) + 1
        self._starts.append(start)
        self._texts.append((text, source))
        return start

    def error(self, message: str, span: Span, hint: str | None = None) -> None:
        """Record a mistake, once."""
        if (message, span) not in self._seen:
            self._seen.add((message, span))
            self.errors.append(self._diagnostic(message, span, hint, "error"))

    def warn(self, message: str, span: Span, hint: str | None = None) -> None:
        """Record what is allowed but probably not meant."""
        self.warnings.append(self._diagnostic(message, span, hint, "warning"))

    def words(self, span: Span) -> str:
        """The text of a span on one line."""
        place = self._file(span)
        text, start = self._texts[place][0], self._starts[place]
        return " ".join(text[span.start - start : span.end - start].split())

    def quote(self, span: Span, longest: int = 40) -> str:
        """The text of a span on one line, cut where it is long, in single quotes."""
        return f"'{shorten(self.words(span), longest)}'"

    def place(self, span: Span) -> str:
        """``line 3, column 14``."""
        return f"{self.line(span)}, column {self._diagnostic('', span, None, 'error').column}"

    def line(self, span: Span) -> str:
        """``line 3``, with the file where it is an included one."""
        here = self._diagnostic("", span, None, "error")
        return f"line {here.line}" + (f" of {here.source}" if self._file(span) else "")

    def _file(self, span: Span) -> int:
        return bisect.bisect_right(self._starts, span.start) - 1

    def _diagnostic(self, message: str, span: Span, hint: str | None, severity: Severity) -> Diagnostic:
        place = self._file(span)
        (text, source), start = self._texts[place], self._starts[place]
        if start:
            span = Span(span.start - start, min(span.end - start, len(text)))
        return Diagnostic(message, span, hint, severity, text, source)


def shorten(text: str, longest: int = 30) -> str:
    """The text on one line, cut where it is long."""
    words = " ".join(text.split())
    return words if len(words) <= longest else words[: longest - 3] + "..."
