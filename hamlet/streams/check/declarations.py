"""The names of a specification: what each means, and the mistakes of two that are alike or one that is unknown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from hamlet.errors import Span, near_miss
from hamlet.frontend.reports import Reports
from hamlet.streams.check.unify import BITS, PLAIN, Type, declared
from hamlet.streams.program.ir import STRING, OptionalOf, Scalar, TupleOf, ValueType
from hamlet.streams.syntax import tree as s

MODULES = ("math", "regex")
COLUMNS = ("trigger", "stream", "time", "value")  # of the rows that a run gives
_ALIASES = {"Int": "Int64", "UInt": "UInt64", "Float": "Float64", "Float16": "Float32"}
_TYPES = sorted(BITS)
_MOST_LOOKED_AT = 200_000  # names, of all that hints are looked for among


@dataclass
class Declared:
    """An input, an output or a trigger while it is being checked.

    Attributes
    ----------
    id : int
        Inputs first, then outputs and triggers in the order of the text.
    name : str
        Of a trigger ``trigger 1``.
    type : Type
        Of its values.
    output : s.Output or None
        None for an input.
    parameters : dict of str to Type
        In order.
    """

    id: int
    name: str
    type: Type
    span: Span
    output: s.Output | None = None
    parameters: dict[str, Type] = field(default_factory=dict)

    @property
    def trigger(self) -> bool:
        """Whether it is a trigger."""
        return self.output is not None and self.output.name is None

    @property
    def spawned(self) -> bool:
        """Whether its instances begin with a spawn clause."""
        return self.output is not None and self.output.spawn is not None


@dataclass
class Table:
    """All names of a specification.

    Attributes
    ----------
    streams : list of Declared
        By number.
    names : dict of str to Declared
        Inputs and outputs.
    constants : dict of str to s.ConstantDeclaration
    types : dict of str to ValueType
        Of ``type`` declarations.
    fields : dict of str to int or None
        Names of their parts and the places of these; None where two types disagree.
    modules : set of str
        Imported ones.
    """

    streams: list[Declared]
    names: dict[str, Declared] = field(default_factory=dict)
    constants: dict[str, s.ConstantDeclaration] = field(default_factory=dict)
    types: dict[str, ValueType] = field(default_factory=dict)
    fields: dict[str, int | None] = field(default_factory=dict)
    modules: set[str] = field(default_factory=set)
    _looked: int = 0

    def near(self, name: str, more: Iterable[str] = ()) -> str:
        """A hint for a name that is unknown."""
        known = [*more, *self.names, *self.constants]
        self._looked += 1
        meant = near_miss(name, known) if self._looked * len(known) < _MOST_LOOKED_AT else None
        if meant is not None:
            return f"did you mean {meant}?"
        shown = ", ".join(known[:8]) + (", ..." if len(known) > 8 else "")
        return f"known are {shown}" if known else "declare it: input name: Int64"


def declare(statements: Iterable[s.Statement], reports: Reports) -> Table:
    """Collect all declarations of a specification; mistakes go to `reports`."""
    table = Table([])
    inputs: list[s.Input] = []
    outputs: list[s.Output | s.Mirror] = []
    places: dict[str, Span] = {}
    for each in statements:
        match each:
            case s.Import(name=name):
                _import(table, name, each.span, reports)
            case s.TypeDeclaration():
                _declare_type(table, each, reports)
            case s.Input():
                if _new(each.name, each.name_span, places, reports):
                    inputs.append(each)
            case s.ConstantDeclaration():
                if _new(each.name, each.name_span, places, reports):
                    table.constants[each.name] = each
            case s.Output(name=None):
                outputs.append(each)
            case s.Output(name=str(name)) | s.Mirror(name=str(name)):
                if _new(name, each.name_span, places, reports):
                    outputs.append(each)
    for each_input in inputs:
        _add_input(table, each_input, reports)
    originals = {each.name: each for each in outputs if isinstance(each, s.Output) and each.name is not None}
    triggers = 0
    for output in outputs:
        whole = _mirrored(output, originals, reports) if isinstance(output, s.Mirror) else output
        if whole is not None:
            triggers += whole.name is None
            _add_output(table, whole, whole.name or f"trigger {triggers}", reports)
    return table


def _new(name: str, span: Span, places: dict[str, Span], reports: Reports) -> bool:
    """Whether a name is declared for the first time."""
    if name in places:
        message = f"the name '{name}' is taken, in {reports.line(places[name])}"
        reports.error(message, span, "streams and constants need names of their own")
        return False
    places[name] = span
    return True


def _import(table: Table, name: str, span: Span, reports: Reports) -> None:
    if name not in MODULES:
        meant = near_miss(name, MODULES)
        hint = f"did you mean {meant}?" if meant else "there are the modules math and regex"
        reports.error(f"there is no module '{name}'", span, hint)
    table.modules.add(name)


def _declare_type(table: Table, each: s.TypeDeclaration, reports: Reports) -> None:
    if each.name in table.types or each.name in BITS or each.name in _ALIASES:
        reports.error(f"the type '{each.name}' exists", each.span, "take another name")
        return
    parts: list[ValueType] = []
    for place, (name, kind) in enumerate(each.fields):
        parts.append(read_type(table, kind, reports) or Scalar("Int64"))
        known = table.fields.setdefault(name, place)
        if known != place:
            table.fields[name] = None
    table.types[each.name] = TupleOf(tuple(parts))


def _add_input(table: Table, each: s.Input, reports: Reports) -> None:
    kind = read_type(table, each.type, reports)
    if isinstance(each.type, s.InferredType):
        reports.error("the type of an input cannot be left out", each.type.span, f"write input {each.name}: Int64")
    if kind is not None and has_optional(kind):
        hint = "an event that has no value for an input does not extend it; write the type without ?"
        reports.error("an input is never optional", each.type.span, hint)
        kind = None
    found = Declared(len(table.streams), each.name, Type(PLAIN) if kind is None else declared(kind), each.name_span)
    table.streams.append(found)
    table.names[each.name] = found


def _add_output(table: Table, each: s.Output, name: str, reports: Reports) -> None:
    kind = STRING if each.name is None else None if each.type is None else read_type(table, each.type, reports)
    if kind is not None and each.type is not None and has_optional(kind):
        reports.error(
            f"{name} is an output of the optional type {kind}",
            each.type.span,
            "outputs always have a value: write the type without ? and end the expression with .defaults(to: ...)",
        )
        kind = None
    span = each.name_span
    found = Declared(len(table.streams), name, Type(PLAIN) if kind is None else declared(kind), span, each)
    for parameter in each.parameters:
        key = parameter.name
        if key == "_" in found.parameters:
            key = f"_{len(found.parameters) + 1}"  # of parameters that nothing reads, there may be several
        if key in found.parameters:
            reports.error(
                f"a second parameter '{parameter.name}'", parameter.span, "parameters need names of their own"
            )
        if parameter.name in COLUMNS:
            message = f"a parameter cannot be called '{parameter.name}'"
            reports.error(message, parameter.span, f"rows have a column {parameter.name} already; take another name")
        kind = None if parameter.type is None else read_type(table, parameter.type, reports)
        if kind is not None and has_optional(kind):
            reports.error("a parameter is never optional", parameter.span, "write the type without ?")
            kind = None
        found.parameters[key] = Type(PLAIN) if kind is None else declared(kind)
    table.streams.append(found)
    if not found.trigger:
        table.names[name] = found


def _mirrored(mirror: s.Mirror, originals: dict[str, s.Output], reports: Reports) -> s.Output | None:
    """The output that a mirror is short for: that of its target, with one condition more in every eval."""
    target = originals.get(mirror.target)
    if target is None:
        meant = near_miss(mirror.target, originals)
        hint = f"did you mean {meant}?" if meant else "only outputs that are written out can be mirrored"
        reports.error(f"there is no output '{mirror.target}' to mirror", mirror.target_span, hint)
        return None
    evals = []
    for clause in target.evals:
        condition = mirror.condition
        if clause.condition is not None:
            condition = s.Binary("&&", clause.condition, condition, span=mirror.condition.span)
        evals.append(replace(clause, condition=condition))
    return replace(target, name=mirror.name, evals=tuple(evals), name_span=mirror.name_span, span=mirror.span)


def read_type(table: Table, kind: s.TypeSyntax, reports: Reports) -> ValueType | None:
    """The type that is written; None where it is left open or unknown (which is reported)."""
    match kind:
        case s.TypeName(name=name):
            name = _ALIASES.get(name, name)
            if name in BITS:
                return Scalar(name)
            if name in table.types:
                return table.types[name]
            reports.error(f"there is no type '{name}'", kind.span, _type_hint(name, table))
            return None
        case s.OptionalType(inner=inner):
            inside = read_type(table, inner, reports)
            return None if inside is None else OptionalOf(inside)
        case s.TupleType(parts=parts):
            read = [read_type(table, part, reports) for part in parts]
            return None if None in read else TupleOf(tuple(part for part in read if part is not None))
    return None


def _type_hint(name: str, table: Table) -> str:
    meant = near_miss(name, [*_TYPES, *table.types])
    others = {"string": "String", "boolean": "Bool", "double": "Float64", "integer": "Int64", "number": "Float64"}
    meant = others.get(name.lower(), meant)
    if meant is not None:
        return f"did you mean {meant}?"
    return "types are Bool, Int8 to Int64, UInt8 to UInt64, Float32, Float64, String, Bytes and tuples of them"


def has_optional(kind: ValueType) -> bool:
    """Whether a type is optional or has an optional part."""
    if isinstance(kind, TupleOf):
        return any(has_optional(part) for part in kind.parts)
    return isinstance(kind, OptionalOf)
