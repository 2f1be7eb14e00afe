"""A specification's text to its program, with every mistake at once.

The stages, each of which reports what it finds and leaves the rest whole for the next: tokens and syntax
(`streams.syntax.parser`), names (`declarations`), types (`expressions`), pacing (`timing`), conditions
(`presence`), order (`layers`), and the program (`lowering`).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from hamlet.errors import Diagnostic, Span, WorkloadError
from hamlet.frontend.reports import Reports
from hamlet.streams.check.declarations import Declared, Table, declare
from hamlet.streams.check.expressions import Expressions
from hamlet.streams.check.layers import order
from hamlet.streams.check.lowering import lower
from hamlet.streams.check.presence import check_agreement
from hamlet.streams.check.timing import Clauses, find_pacing
from hamlet.streams.check.unify import STRING, Type, describe, tuple_of, unify, width
from hamlet.streams.check.unresolved import ClauseDraft, Node
from hamlet.streams.program.ir import Program
from hamlet.streams.syntax import tree as s
from hamlet.streams.syntax.parser import read

_DEEPEST_INCLUDE = 20
MOST_VALUES = 1_000  # of a tuple, those of the tuples in it among them


@dataclass(frozen=True)
class Checked:
    """What the check of a specification finds.

    Attributes
    ----------
    text : SpecificationText
        The syntax tree.
    program : Program
        What is evaluated.
    warnings : tuple of Diagnostic
        What is allowed but probably not meant.
    """

    text: s.SpecificationText
    program: Program
    warnings: tuple[Diagnostic, ...]


def analyse(text: str, source: str = "<specification>") -> Checked:
    """Read and check a specification.

    Parameters
    ----------
    text : str
        The whole of a ``.lola`` file.
    source : str
        The file's name, for messages and for what ``include`` names beside it.

    Raises
    ------
    WorkloadError
        With every mistake.

    Examples
    --------
    >>> analyse("input a: Int64 output b := a + 1").program.streams[1].type
    Scalar(name='Int64')
    """
    reports = Reports(text, source)
    files = _Files(source, reports)
    statements = read(text, reports, files.include)
    syntax_errors = len(reports.errors)
    program: Program | None = None
    table = declare(statements, reports)
    if syntax_errors:
        _quiet(table, reports)
    else:
        program = _check(table, statements, reports, text, source)
    if reports.errors or program is None:
        raise WorkloadError(reports.errors)
    return Checked(s.SpecificationText(text, source, statements), program, tuple(reports.warnings))


def _quiet(table: Table, reports: Reports) -> None:
    """With syntax errors, names are missing that the text may declare: types of what is whole are still checked."""
    before = len(reports.errors)
    for stream in table.streams:
        if stream.output is not None:
            _clauses(table, stream, reports)
    unknown = ("there is no stream", "there is no function")
    reports.errors[before:] = [each for each in reports.errors[before:] if not each.message.startswith(unknown)]


def _check(
    table: Table, statements: tuple[s.Statement, ...], reports: Reports, text: str, source: str
) -> Program | None:
    for each in statements:
        if isinstance(each, s.ConstantDeclaration):
            Expressions(table, reports, None).constant(each)
    clauses = {stream.id: _clauses(table, stream, reports) for stream in table.streams if stream.output is not None}
    known = find_pacing(table, clauses, reports)
    check_agreement(table, clauses, reports)
    layers = order(table, clauses, known, reports)
    if reports.errors or any(_too_wide(reports, each, each.type) for each in table.streams):
        return None  # what a tuple holds may be known only where all is
    program = lower(table, clauses, layers, reports, text, source)
    for stream in program.streams:
        if stream.parameters and stream.close is None:
            hint = "every new instance stays in memory; add close when ... to end those that are over"
            reports.warn(f"instances of {stream.name} are never closed", stream.span, hint)
    return program


# ------------------------------------------------------------------------------------------------------- clauses


def _clauses(table: Table, stream: Declared, reports: Reports) -> Clauses:
    """The clauses of an output as nodes, with their types."""
    output = stream.output
    assert output is not None
    builder = Expressions(table, reports, stream)
    spawn: ClauseDraft | None = None
    if output.spawn is not None:
        builder.parameters = {}
        spawn = _spawn(builder, stream, output, output.spawn)
        builder.parameters = stream.parameters
    elif stream.parameters:
        names = ", ".join(stream.parameters)
        hint = f"say what {names} {'is' if len(stream.parameters) == 1 else 'are'}: spawn with ..."
        reports.error(f"{stream.name} has parameters but no spawn", stream.span, hint)
    evals = [_eval(builder, stream, clause) for clause in output.evals]
    close: ClauseDraft | None = None
    if output.close is not None:
        condition = builder.boolean(output.close.condition, "what stands behind when")
        close = ClauseDraft("close", condition, [], output.close.span)
    return Clauses(stream, spawn, evals, close)


def _spawn(builder: Expressions, stream: Declared, output: s.Output, clause: s.SpawnClause) -> ClauseDraft:
    reports, wanted = builder.reports, stream.parameters
    condition = builder.boolean(clause.condition, "what stands behind when")
    expression = clause.expression
    if isinstance(expression, s.MakeTuple) and expression.parts:
        given = list(expression.parts)
    else:
        given = [] if expression is None or isinstance(expression, s.MakeTuple) else [expression]
    built = [builder.build(tree) for tree in given]
    if not wanted and given and expression is not None:
        hint = f"write output {stream.name}(p) ..., or leave with out" if output.name else "write trigger (p) spawn ..."
        reports.error(f"{stream.name} has no parameters that could be spawned with", expression.span, hint)
    elif len(given) != len(wanted):
        many = f"{len(wanted)} parameter{'s' if len(wanted) > 1 else ''}"
        hint = f"write spawn with ({', '.join('...' for _ in wanted)})" if len(wanted) > 1 else "write spawn with ..."
        span = clause.span if expression is None else expression.span
        reports.error(f"{stream.name} has {many}, and spawn gives {len(given)}", span, hint)
    else:
        for node, (name, kind) in zip(built, wanted.items(), strict=True):
            _fits(builder, node, kind, f"the parameter {name}")
    return ClauseDraft("spawn", condition, built, clause.span)


def _fits(builder: Expressions, node: Node, kind: Type, what: str) -> None:
    """Make the type of a node that of something else."""
    if node.kind == "wrong":
        return
    if node.type.optional:
        builder.missing_default(node)
        return
    first, second = describe(node.type), describe(kind)
    if not unify(node.type, kind):
        builder.reports.error(f"{builder.reports.quote(node.span)} is {first}, {what} {second}", node.span, None)


def _eval(builder: Expressions, stream: Declared, clause: s.EvalClause) -> ClauseDraft:
    reports = builder.reports
    condition = builder.boolean(clause.condition, "what stands behind when" if stream.output else "")
    if clause.expression is None:
        kind = Type(STRING) if stream.trigger else tuple_of(())
        node = Node("constant", kind, clause.span, value="") if stream.trigger else Node("tuple", kind, clause.span)
    else:
        node = builder.build(clause.expression)
    if stream.trigger:
        if clause.condition is None:
            hint = "write trigger eval when condition with message"
            reports.error("a trigger needs a condition", clause.span, hint)
        if node.kind != "wrong" and not node.type.root().mask & STRING:
            message = f"the message of a trigger is a String, and {reports.quote(node.span)} is {describe(node.type)}"
            reports.error(message, node.span, f'write "{{{{}}}}".format({reports.quote(node.span)[1:-1]})')
        else:
            unify(node.type, Type(STRING))
    elif node.kind == "wrong":
        pass
    elif node.type.optional:
        _optional_output(builder, stream, node)
    else:
        _fits_output(builder, stream, node)
    return ClauseDraft("eval", condition, [node], clause.span)


def _optional_output(builder: Expressions, stream: Declared, node: Node) -> None:
    shown = builder.reports.quote(node.span)
    hint = f"say what counts then: {shown[1:-1] if len(shown) < 30 else ''}.defaults(to: ...)"
    builder.reports.error(f"{shown} may have no value, and {stream.name} needs one", node.span, hint)


def _fits_output(builder: Expressions, stream: Declared, node: Node) -> None:
    reports, output = builder.reports, stream.output
    if _too_wide(reports, stream, node.type):
        return
    first, second = describe(node.type), describe(stream.type)
    if unify(node.type, stream.type):
        return
    hint = None
    if node.kind == "constant" and isinstance(node.value, int) and "Float" in second:
        hint = f"write {node.value}.0"
    elif first[:1].isupper() and second[:1].isupper() and not {"Bool", "String"} & {first, second} and "(" not in first:
        hint = f"convert it: cast<{first}, {second}>(...)"
    declared_here = output is not None and output.type is not None and not isinstance(output.type, s.InferredType)
    word = "declared" if declared_here else "used as"
    reports.error(f"{reports.quote(node.span)} is {first}, and {stream.name} is {word} {second}", node.span, hint)


def _too_wide(reports: Reports, stream: Declared, kind: Type) -> bool:
    """Whether a stream's tuples hold too many values, which is reported: tuples of tuples double."""
    values = width(kind)
    if values <= MOST_VALUES:
        return False
    hint = "keep what is read later in outputs of their own"
    reports.error(
        f"{stream.name} is a tuple of {values:,} values; at most {MOST_VALUES:,} are possible", stream.span, hint
    )
    return True


# --------------------------------------------------------------------------------------------------------- files


class _Files:
    """Reads what ``include`` names, beside the file that names it."""

    def __init__(self, source: str, reports: Reports) -> None:
        self.folder = Path(source).parent if not source.startswith("<") else None
        self.reports = reports
        self.seen: set[str] = {os.path.realpath(source)}

    def include(self, path: str, span: Span) -> tuple[str, str] | None:
        """Text and name of a file; None after a mistake, or where it has been read already."""
        if self.folder is None and not os.path.isabs(path):
            self.reports.error(
                "a text that is in no file has nothing beside it to include", span, "read it from a file"
            )
            return None
        place = Path(path) if self.folder is None else self.folder / path
        name = os.path.realpath(place)
        if name in self.seen:
            return None
        if len(self.seen) > _DEEPEST_INCLUDE:
            self.reports.error("too many files are included", span, f"at most {_DEEPEST_INCLUDE}")
            return None
        self.seen.add(name)
        try:
            return place.read_text(encoding="utf-8"), os.fspath(place)
        except (OSError, UnicodeDecodeError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "it is no UTF-8 text"
            self.reports.error(f"cannot read {path}: {reason}", span, None)
            return None
