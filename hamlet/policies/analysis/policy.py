"""A policy: a formula, its signature and its name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from html import escape
from pathlib import Path

from hamlet.errors import Diagnostic, OptionError
from hamlet.frontend.files import text_of_file
from hamlet.frontend.reports import Reports
from hamlet.policies.analysis.typecheck import check_types
from hamlet.policies.syntax.columns import column_names
from hamlet.policies.syntax.diagnostics import PolicyError, deep_recursion
from hamlet.policies.syntax.formula import Formula, free_variables
from hamlet.policies.syntax.parser import parse_formula
from hamlet.policies.syntax.printing import print_formula
from hamlet.policies.syntax.signature import Signature


class Policy:
    """A formula of metric first-order temporal logic over the predicates of a signature.

    Attributes
    ----------
    formula : Formula
        As it was written.
    signature : Signature
    name : str
        What the rows are marked with.
    text, source : str
        The text that the formula was read from, and its file's name.
    warnings : tuple of Diagnostic
        What is allowed but probably not meant.

    Examples
    --------
    >>> policy = Policy.parse("ALWAYS FORALL u. p(u) IMPLIES ONCE[0,5] q(u)", signature="p(int) q(int)")
    >>> print(policy)
    ALWAYS FORALL u. p(u) IMPLIES ONCE[0,5] q(u)
    """

    def __init__(
        self,
        formula: Formula,
        signature: Signature,
        name: str = "policy1",
        text: str | None = None,
        source: str = "<policy>",
        warnings: tuple[Diagnostic, ...] = (),
    ) -> None:
        self.formula = formula
        self.signature = signature
        self.name = name
        self.text = print_formula(formula) if text is None else text
        self.source = source
        self.warnings = warnings

    @classmethod
    def parse(cls, text: str, signature: str | Signature, name: str | None = None, source: str = "<policy>") -> Policy:
        """The policy that a text describes; syntax and types are checked.

        Parameters
        ----------
        text : str
            One formula.
        signature : str or Signature
            The predicates, or the text that describes them.
        name : str, optional
            What the rows are marked with; ``policy1`` by default.
        source : str
            The file's name for messages.

        Raises
        ------
        PolicyError
            With every mistake of the text.
        """
        if isinstance(signature, str):
            signature = Signature.parse(signature)
        if not isinstance(text, str):
            raise OptionError(f"a policy is text, not a {type(text).__name__}")
        if not isinstance(signature, Signature):
            raise OptionError(f"a signature is text such as 'withdraw(user: int)', not a {type(signature).__name__}")
        formula, warnings = parse_formula(text, source)
        reports = Reports(text, source)
        with deep_recursion():
            check_types(formula, signature, reports)
        if reports.errors:
            raise PolicyError(reports.errors)
        warnings += tuple(_renamed_columns(formula, text, source))
        return cls(formula, signature, name or "policy1", text, source, warnings)

    @classmethod
    def from_file(
        cls, path: str | os.PathLike[str], signature: str | os.PathLike[str] | Signature, name: str | None = None
    ) -> Policy:
        """The policy of a file.

        Parameters
        ----------
        path : path
            A ``.mfotl`` file.
        signature : path or Signature
            A ``.sig`` file, or what it describes.
        name : str, optional
            By default the stem of the file's name.

        Raises
        ------
        OptionError
            If a file cannot be read.
        PolicyError
            With every mistake of the text.
        """
        if not isinstance(signature, Signature):
            signature = Signature.from_file(signature)
        return cls.parse(text_of_file(path, "policy"), signature, name or Path(path).stem, os.fspath(path))

    def renamed(self, name: str) -> Policy:
        """This policy under another name."""
        return Policy(self.formula, self.signature, name, self.text, self.source, self.warnings)

    def explain(self, *, negate: bool = False) -> str:
        """How the policy will be evaluated, and what each operator keeps: the text of ``hamlet explain``."""
        from hamlet.policies.plan.explaining import evaluated, explain  # seldom needed

        formula, columns, violations = evaluated(self.formula, negate)
        return explain(self.name, self.source, formula, columns, violations=violations)

    def _repr_html_(self) -> str:
        """The text, for a notebook."""
        return f"<pre>{escape(self.text)}</pre>"

    def __str__(self) -> str:
        with deep_recursion():
            return print_formula(self.formula)

    def __repr__(self) -> str:
        return f"<Policy {self.name}: {self}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Policy) and (self.formula, self.signature, self.name) == (
            other.formula,
            other.signature,
            other.name,
        )

    def __hash__(self) -> int:
        return hash((self.name, str(self)))


def _renamed_columns(formula: Formula, text: str, source: str) -> Iterator[Diagnostic]:
    """A note for each free variable that has another name in rows."""
    names = free_variables(formula)
    for name, column in zip(names, column_names(names), strict=True):
        if name != column:
            said = f"rows have a column '{name}' of their own; the variable '{name}' is the column '{column}'"
            yield Diagnostic(said, formula.span, None, "warning", text, source)
