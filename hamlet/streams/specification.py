"""A specification: text that has been read and checked as a whole, before any event is seen."""

from __future__ import annotations

import os
from html import escape

from hamlet.errors import Diagnostic, OptionError
from hamlet.frontend.files import text_of_file
from hamlet.streams.check.analysis import Checked, analyse
from hamlet.streams.program.ir import Program, Stream


class Specification:
    """Streams and triggers in the order of their text.

    Attributes
    ----------
    program : hamlet.streams.program.ir.Program
        What is evaluated.

    Examples
    --------
    >>> spec = Specification.parse("input a: Int64  output b := a * 2  trigger b > 10")
    >>> [stream.name for stream in spec.program.streams]
    ['a', 'b', 'trigger 1']
    """

    def __init__(self, checked: Checked) -> None:
        self.checked = checked
        self.program: Program = checked.program

    @classmethod
    def parse(cls, text: str, name: str | None = None) -> Specification:
        """Read and check a specification's text.

        Parameters
        ----------
        text : str
            The whole of a ``.lola`` file.
        name : str, optional
            What messages call it: the file's name.

        Raises
        ------
        OptionError
            If it is no text.
        WorkloadError
            With every mistake of the text, not only the first.
        """
        if not isinstance(text, str):
            raise OptionError(f"the text of a specification is a str, not a {type(text).__name__}")
        return cls(analyse(text, "<specification>" if name is None else name))

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Specification:
        """Read and check a ``.lola`` file (UTF-8).

        Raises
        ------
        OptionError
            If the file cannot be read.
        WorkloadError
            With every mistake of the text.
        """
        return cls.parse(text_of_file(path, "specification"), os.fspath(path))

    def explain(self) -> str:
        """What is computed from what, when, and how much is kept: the text of ``hamlet explain``."""
        from hamlet.streams.explain import explain  # seldom needed

        return explain(self)

    def _repr_html_(self) -> str:
        """The text, for a notebook."""
        return f"<pre>{escape(self.text)}</pre>"

    def __repr__(self) -> str:
        return f"<Specification {self.source}: {', '.join(each.name for each in self.program.streams)}>"

    @property
    def text(self) -> str:
        """The text as it was read."""
        return self.program.text

    @property
    def source(self) -> str:
        """What messages call it."""
        return self.program.source

    @property
    def inputs(self) -> tuple[Stream, ...]:
        """The inputs in the order of the text."""
        return self.program.streams[: self.program.inputs]

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """What is allowed but probably not meant."""
        return self.checked.warnings
