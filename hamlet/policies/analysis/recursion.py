"""LETPAST: whether every use of the name within its own meaning looks at earlier time-points."""

from __future__ import annotations

from dataclasses import dataclass

from hamlet.frontend.reports import Reports
from hamlet.policies.syntax import formula as mfotl

_Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class _Use:
    """What a name within the meaning stands for.

    Attributes
    ----------
    now : bool
        Whether it looks at the LETPAST's name at the same time-point; else at earlier ones only.
    """

    now: bool


def check_recursions(formula: mfotl.Formula, reports: Reports) -> None:
    """Report uses of a LETPAST's name in its own meaning that do not look back."""
    if isinstance(formula, mfotl.LetPast):
        names = {(formula.name, len(formula.parameters)): _Use(now=True)}
        _Checker(formula.name, reports).walk(formula.definition, names, past=False, future=None)
    for child in mfotl.children(formula):
        check_recursions(child, reports)


class _Checker:
    def __init__(self, name: str, reports: Reports) -> None:
        self._name, self._reports = name, reports

    def walk(self, formula: mfotl.Formula, names: dict[_Key, _Use], *, past: bool, future: str | None) -> None:
        """Check a formula that stands under an operator that looks back, or under one that looks ahead."""
        match formula:
            case mfotl.Predicate(name, arguments) if (name, len(arguments)) in names:
                self._use(formula, names[name, len(arguments)], past, future)
            case mfotl.Temporal("PREV", _, body):
                self.walk(body, names, past=True, future=future)
            case mfotl.Temporal("ONCE" | "HISTORICALLY", interval, body):
                self.walk(body, names, past=past or _lacks_now(interval), future=future)
            case mfotl.Since(interval, left, right) | mfotl.Trigger(interval, left, right):
                self.walk(left, names, past=past, future=future)
                self.walk(right, names, past=past or _lacks_now(interval), future=future)
            case mfotl.Let():
                self._let(formula, names, past=past, future=future)
            case _:
                ahead = _looks_ahead(formula) or future
                for child in mfotl.children(formula):
                    self.walk(child, names, past=past, future=ahead)

    def _let(self, formula: mfotl.Let, names: dict[_Key, _Use], *, past: bool, future: str | None) -> None:
        """A LET stands for what its definition says, wherever it is used."""
        key = formula.name, len(formula.parameters)
        within = {each: use for each, use in names.items() if each != key}
        use = _uses(formula.definition, within if isinstance(formula, mfotl.LetPast) else names, False)
        if use is not None:
            within[key] = use
        # What looks ahead in the definition is wrong however it is used; that it does not look back may be mended.
        definition_names = {each: _Use(now=False) for each in (within if isinstance(formula, mfotl.LetPast) else names)}
        self.walk(formula.definition, definition_names, past=True, future=None)
        self.walk(formula.body, within, past=past, future=future)

    def _use(self, formula: mfotl.Predicate, use: _Use, past: bool, future: str | None) -> None:
        name = self._name
        if future is not None:
            said = f"'{name}' stands under {future} in its own meaning, which would need the time-points to come"
            self._reports.error(said, formula.span, f"LETPAST looks back: PREV {name}(...), or ONCE[1,*) {name}(...)")
        elif use.now and not past:
            said = f"'{name}' stands in its own meaning at the same time-point"
            self._reports.error(said, formula.span, f"look back: PREV {formula.name}(...), or ONCE[1,*) ...")


def _uses(formula: mfotl.Formula, names: dict[_Key, _Use], past: bool) -> _Use | None:
    """How a formula uses the name: not at all, at earlier time-points only, or at its own, too."""
    match formula:
        case mfotl.Predicate(name, arguments):
            use = names.get((name, len(arguments)))
            return None if use is None else _Use(now=use.now and not past)
        case mfotl.Temporal("PREV", _, body):
            return _uses(body, names, True)
        case mfotl.Temporal("ONCE" | "HISTORICALLY", interval, body):
            return _uses(body, names, past or _lacks_now(interval))
        case mfotl.Since(interval, left, right) | mfotl.Trigger(interval, left, right):
            found = [_uses(left, names, past), _uses(right, names, past or _lacks_now(interval))]
        case mfotl.Let(name, parameters, definition, body):
            key = name, len(parameters)
            within = {each: use for each, use in names.items() if each != key}
            inner = _uses(definition, within if isinstance(formula, mfotl.LetPast) else names, False)
            found = [_uses(body, {**within, key: inner} if inner is not None else within, past)]
        case _:
            found = [_uses(child, names, past) for child in mfotl.children(formula)]
    known = [each for each in found if each is not None]
    return _Use(now=any(each.now for each in known)) if known else None


def _lacks_now(interval: mfotl.Interval) -> bool:
    return interval.ticks()[0] > 0


def _looks_ahead(formula: mfotl.Formula) -> str | None:
    match formula:
        case mfotl.Temporal(operator, _, _) if operator in ("NEXT", "EVENTUALLY", "ALWAYS"):
            return operator
        case mfotl.Until() | mfotl.Release():
            return type(formula).__name__.upper()
        case mfotl.TemporalMatch("MATCHF", _, _):
            return "MATCHF"
    return None
