"""Random specifications that the checker accepts, and random traces for them.

A specification is grown output by output. What can be read at a place depends on how it is paced, so every output is
drawn with a `_Scene`: what it can read now, what only with a default, and what its windows can be over.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

SECOND = 10**9
KEYS = ("x", "y", "z")
_PERIODS = {"1Hz": 6, "2Hz": 3, "3Hz": 2, "0.5Hz": 12, "700ms": None, "1.5s": 9}  # in sixths of a second
_NUMBERS = ("Int64", "Float64", "UInt64")
PAIR = "(Float64, Float64)"
_TYPES = ("Int64", "Int64", "Float64", "Float64", "Bool", "String", "UInt64")


@dataclass
class Known:
    """A stream that later ones can read.

    Attributes
    ----------
    pace : str
        ``event`` or a period of `_PERIODS`.
    inputs : frozenset of str
        Of an event-driven stream: the inputs that must be fresh. None: not a conjunction.
    key : str
        The type of its parameter, or nothing.
    dynamic : str
        Under what condition it is evaluated, or nothing; ``spawned`` for one that cannot be read now.
    """

    name: str
    kind: str
    pace: str
    inputs: frozenset[str] | None
    key: str = ""
    dynamic: str = ""


@dataclass
class _Scene:
    now: list[Known] = field(default_factory=list)
    others: list[Known] = field(default_factory=list)
    periodic: bool = False
    parameter: tuple[str, str] | None = None  # name and type
    same_kind: Callable[[Known], bool] = lambda known: True
    after: bool = False  # whether an aggregate over instances may stand here


class Drawing:
    """One random specification.

    Parameters
    ----------
    random : Random
        Decides about everything.
    """

    def __init__(self, random: Random) -> None:
        self.random = random
        self.lines = ["import math", "import regex"]
        self.known: list[Known] = []
        self.inputs: list[Known] = []

    def text(self) -> str:
        """The whole specification."""
        random = self.random
        kinds = ["String", "Int64", *random.choices(_TYPES, k=random.randint(0, 3))]
        for number, kind in enumerate(kinds):
            known = Known(f"i{number}", kind, "event", frozenset({f"i{number}"}))
            self.inputs.append(known)
            self.known.append(known)
            self.lines.append(f"input {known.name}: {kind}")
        if random.random() < 0.3:
            self.inputs.append(Known("pair", PAIR, "event", frozenset({"pair"})))
            self.known.append(self.inputs[-1])
            self.lines.append(f"input pair: {PAIR}")
        for number in range(random.randint(1, 7)):
            forms = [self.event, self.annotated, self.periodic, self.filtered, self.several, self.parameterised]
            forms += [self.event, self.periodic, self.parameterised, self.spawned, self.counter]
            random.choice(forms)(f"s{number}")
        for _ in range(random.randint(1, 3)):
            self.trigger()
        self.tuples(Random(f"tuples {self.lines}"))
        return "\n".join(self.lines) + "\n"

    # ------------------------------------------------------------------------------------------ outputs

    def event(self, name: str) -> None:
        """An output paced by what it reads."""
        reads = self._some([each for each in self.known if self._plain(each) and each.inputs is not None])
        if not reads:
            return
        kind = self.random.choice(_TYPES)
        needed = frozenset().union(*(each.inputs or () for each in reads))
        scene = self._event_scene(needed, reads)
        anchor = " && ".join(f"({each.name} = {each.name})" for each in reads)
        expression = f"if {anchor} then {self.value(kind, scene)} else {self.value(kind, scene)}"
        self.lines.append(f"output {name}{self._type(kind)} := {expression}")
        self.known.append(Known(name, kind, "event", needed))

    def tuples(self, random: Random) -> None:
        """Outputs of tuples of several types, which nobody reads; drawn apart, as the last of all."""
        for number in range(random.choice([0, 0, 0, 2, 3])):
            one, other = random.choices(self.inputs, k=2)
            pair = f"({one.name}, {other.name})" if random.random() < 0.8 else f"({one.name}, ({other.name}, 0.5))"
            self.lines.append(f"output tuple{number} := {pair}")

    def annotated(self, name: str) -> None:
        """An output with an event-driven pacing that is written."""
        chosen = self._some(self.inputs) or self.inputs[:1]
        operator = self.random.choice(["&&", "||"])
        kind = self.random.choice(_TYPES)
        if self.random.random() < 0.15:
            pace, needed = "true", frozenset[str]()
        else:
            pace = f"({f' {operator} '.join(each.name for each in chosen)})"
            needed = frozenset(each.name for each in chosen) if operator == "&&" or len(chosen) == 1 else None
        scene = self._event_scene(needed or frozenset(), None)
        self.lines.append(f"output {name}{self._type(kind)} @{pace} := {self.value(kind, scene)}")
        self.known.append(Known(name, kind, "event", needed))

    def periodic(self, name: str) -> None:
        """An output at a frequency."""
        kind, period = self.random.choice(_TYPES), self.random.choice(list(_PERIODS))
        self.lines.append(
            f"output {name}{self._type(kind)} @{period} := {self.value(kind, self._periodic_scene(period))}"
        )
        self.known.append(Known(name, kind, period, None))

    def filtered(self, name: str) -> None:
        """An output with a condition."""
        chosen = self._some(self.inputs) or self.inputs[:1]
        needed = frozenset(each.name for each in chosen)
        kind, scene = self.random.choice(_TYPES), self._event_scene(needed, None)
        condition = self.value("Bool", scene)
        pace = f"@({' && '.join(sorted(needed))})"
        self.lines.append(f"output {name} eval {pace} when {condition} with {self.value(kind, scene)}")
        self.known.append(Known(name, kind, "event", needed, dynamic=condition))
        if self.random.random() < 0.5:  # a reader under the same condition
            other = self.value("Bool", scene)
            self.lines.append(f"output {name}r eval {pace} when ({condition}) && {other} with {name}")
            self.known.append(Known(f"{name}r", kind, "event", needed, dynamic="condition"))

    def several(self, name: str) -> None:
        """An output with several evals."""
        kind = self.random.choice(_TYPES)
        clauses = []
        periodic = self.random.random() < 0.3
        period = self.random.choice(list(_PERIODS))
        for _ in range(self.random.randint(2, 3)):
            if periodic:
                pace, scene = period, self._periodic_scene(period)
            else:
                chosen = self._some(self.inputs) or self.inputs[:1]
                needed = frozenset(each.name for each in chosen)
                pace, scene = f"({' && '.join(sorted(needed))})", self._event_scene(needed, None)
            condition = f" when {self.value('Bool', scene)}" if self.random.random() < 0.7 else ""
            clauses.append(f"eval @{pace}{condition} with {self.value(kind, scene)}")
        self.lines.append(f"output {name} {' '.join(clauses)}")
        self.known.append(Known(name, kind, period if periodic else "event", None, dynamic="condition"))

    def counter(self, name: str) -> None:
        """An output that reads its own past."""
        chosen = self.random.choice(self.inputs)
        back = self.random.choice([1, 1, 2, 3])
        read = self.random.choice([f"{name}[-{back}].defaults(to: 0)", f"{name}.offset(by: -{back}, or: 1)"])
        scene = self._event_scene(frozenset({chosen.name}), None)
        self.lines.append(f"output {name}: Int64 @{chosen.name} := {read} + ({self.value('Int64', scene, 1)})")
        self.known.append(Known(name, "Int64", "event", frozenset({chosen.name})))

    def parameterised(self, name: str) -> None:
        """An output with an instance for every value of an input."""
        random = self.random
        key = random.choice([each for each in self.inputs if each.kind in ("String", "Int64")])
        kind = random.choice((*_NUMBERS, "Bool"))
        local = random.random() < 0.35
        period = random.choice(list(_PERIODS))
        needed = frozenset({key.name})
        scope = random.choice(["", "", "Global", "Local"]) if local else ""
        scene = self._periodic_scene("") if local else self._event_scene(needed, None)
        scene.parameter = ("p", key.kind)
        spawn = f"spawn with {key.name}"
        if random.random() < 0.3:
            spawn += f" when {self.value('Bool', self._event_scene(needed, None, instances=False))}"
        pace = (f"@{scope}({period})" if scope else f"@{period}") if local else f"@{key.name}"
        condition = "" if local else f" when {key.name} = p"
        if random.random() < 0.3:
            extra = self.value("Bool", scene)
            condition = f"{condition} && {extra}" if condition else f" when {extra}"
        value = self.value(kind, scene)
        if kind != "Bool" and random.random() < 0.6:
            value = f"{name}(p).offset(by: -1).defaults(to: {self._literal(kind)}) + ({value})"
        line = f"output {name}(p: {key.kind}) {spawn} eval {pace}{condition} with {value}"
        if random.random() < 0.5:
            line += f" close {self._closing(name, key, kind)}"
        self.lines.append(line)
        inputs = None if local else needed
        self.known.append(Known(name, kind, period if local else "event", inputs, key.kind, "spawned"))

    def _closing(self, name: str, key: Known, kind: str) -> str:
        random = self.random
        others = [each for each in self.known if each.key == key.kind and each.kind in _NUMBERS]
        if others and random.random() < 0.3:  # what is read may end before
            other = random.choice(others)
            literal = self._literal(other.kind)
            return f"@{random.choice(self.inputs).name} when {other.name}(p).hold(or: {literal}) = {literal}"
        if random.random() < 0.3:  # few periods, so that instances of several streams end at one deadline
            return f"@Local({random.choice(['1Hz', '2Hz'])}) when {self.value('Bool', self._periodic_scene(''))}"
        if random.random() < 0.4:
            return f"@{random.choice(list(_PERIODS))} when {name}(p).hold().defaults(to: {self._literal(kind)}) = " + (
                self._literal(kind)
            )
        scene = self._event_scene(frozenset({key.name}), None)
        scene.parameter = ("p", key.kind)
        return f"@{key.name} when {self.value('Bool', scene)}"

    def spawned(self, name: str) -> None:
        """An output without parameters that begins under a condition."""
        chosen = self.random.choice(self.inputs)
        scene = self._event_scene(frozenset({chosen.name}), None, instances=False)
        period = self.random.choice(list(_PERIODS))
        kind = self.random.choice(_TYPES)
        inside = self._periodic_scene("")
        line = f"output {name} spawn @{chosen.name} when {self.value('Bool', scene)} "
        line += f"eval @{period} with {self.value(kind, inside)}"
        if self.random.random() < 0.4:
            line += f" close @{chosen.name} when {self.value('Bool', scene)}"
        self.lines.append(line)
        self.known.append(Known(name, kind, period, None, dynamic="spawned"))

    def trigger(self) -> None:
        """A trigger of one of the forms."""
        random = self.random
        form = random.randrange(4)
        if form == 0:
            chosen = random.choice(self.inputs)
            scene = self._event_scene(frozenset({chosen.name}), None)
            self.lines.append(f'trigger @{chosen.name} {self.value("Bool", scene)} "message"')
        elif form == 1:
            period = random.choice(list(_PERIODS))
            scene = self._periodic_scene(period)
            kind = random.choice(_TYPES)
            message = f'"value {{{{}}}}".format({self.value(kind, scene)})'
            self.lines.append(f"trigger eval @{period} when {self.value('Bool', scene)} with {message}")
        elif form == 2:
            key = random.choice([each for each in self.inputs if each.kind in ("String", "Int64")])
            scene = self._event_scene(frozenset({key.name}), None)
            scene.parameter = ("p", key.kind)
            condition = f"{key.name} = p && {self.value('Bool', scene)}"
            line = f"trigger (p: {key.kind}) spawn with {key.name} eval @{key.name} when {condition}"
            self.lines.append(f'{line} with "{{{{}}}}: {{{{}}}}".format(p, {self.value("Int64", scene)})')
        else:
            chosen = random.choice(self.inputs)
            self.lines.append(f"trigger {chosen.name} = {chosen.name}")

    # ------------------------------------------------------------------------------------------- scenes

    def _plain(self, known: Known) -> bool:
        return not known.dynamic and not known.key

    def _event_scene(self, needed: frozenset[str], now: list[Known] | None, instances: bool = True) -> _Scene:
        """What an event-driven clause can read where these inputs are fresh."""
        fits = [each for each in self.known if self._plain(each) and each.inputs is not None and each.inputs <= needed]
        fits = [each for each in fits if each.inputs or not needed or each.pace == "event"]
        scene = _Scene(fits if now is None else [*now, *fits], list(self.known), after=instances)
        scene.same_kind = lambda known: known.pace == "event"
        return scene

    def _periodic_scene(self, period: str) -> _Scene:
        """What a periodic clause can read; without a period it reads nothing now."""
        own = _PERIODS.get(period)
        now = []
        for each in self.known:
            other = _PERIODS.get(each.pace)
            fits = each.pace == period or (own is not None and other is not None and own % other == 0)
            if period and self._plain(each) and each.pace != "event" and fits:
                now.append(each)
        scene = _Scene(now, list(self.known), periodic=True, after=True)
        scene.same_kind = lambda known: known.pace != "event"
        return scene

    def _some(self, choices: list[Known]) -> list[Known]:
        return self.random.sample(choices, min(len(choices), self.random.randint(1, 2)))

    def _type(self, kind: str) -> str:
        return f": {kind}" if self.random.random() < 0.7 or kind == "UInt64" else ""

    # -------------------------------------------------------------------------------------- expressions

    def value(self, kind: str, scene: _Scene, depth: int = 3) -> str:
        """An expression of a type."""
        random = self.random
        if depth <= 0 or random.random() < 0.3:
            return self._leaf(kind, scene, depth)
        if random.random() < 0.1:
            condition = self.value("Bool", scene, depth - 1)
            return (
                f"(if {condition} then {self.value(kind, scene, depth - 1)} else {self.value(kind, scene, depth - 1)})"
            )
        if kind == "Bool":
            return self._condition(scene, depth)
        if kind == "String":
            inner = random.choice(_TYPES)
            if random.random() < 0.4:
                return f'"<{{{{}}}}>".format({self.value(inner, scene, depth - 1)})'
            return self._leaf(kind, scene, depth)
        left, right = self.value(kind, scene, depth - 1), self.value(kind, scene, depth - 1)
        choice = random.randrange(9)
        if random.random() < 0.04:  # of an unsigned integer it fails unless that is 0
            return f"-({left})"
        if choice < 4:
            operator = random.choice(["+", "+", "*"] if kind == "UInt64" else ["+", "-", "-", "*"])
            return f"({left} {operator} {right})"
        if choice == 4:
            return f"{random.choice(['min', 'max'])}({left}, {right})"
        if choice == 5 and random.random() < 0.1:  # which may divide by zero
            return f"({left} / {right})"
        if choice == 5 and kind != "Float64":
            return f"({left} {random.choice(['/', '%'])} {random.choice(['3', '7'])})"
        if choice == 6 and kind == "Int64":
            return f"({left} {random.choice(['&', '|', '^'])} {right})"
        if choice == 7 and kind == "Float64":
            rounded = f"{left} / 4.0" if random.random() < 0.8 else self.value("Int64", scene, depth - 1)
            return f"round({rounded}, 2)"
        if choice == 8 and kind != "UInt64":
            other = "Int64" if kind == "Float64" else "Float64"
            return f"cast<{other}, {kind}>({self.value(other, scene, depth - 1)})"
        return self._leaf(kind, scene, depth)

    def _condition(self, scene: _Scene, depth: int) -> str:
        random = self.random
        if random.random() < 0.3:
            operator = random.choice(["&&", "||", "->"])
            return f"({self.value('Bool', scene, depth - 1)} {operator} {self.value('Bool', scene, depth - 1)})"
        if random.random() < 0.15:
            return f"!{self._leaf('Bool', scene, depth)}"
        if random.random() < 0.08:
            return f'{self._leaf("String", scene, 0)}.matches(regex: "[xy<1]+")'
        kind = random.choice((*_NUMBERS, "String"))
        operator = random.choice(["<", "<=", ">", ">=", "=", "!="])
        right = self._threshold(kind) if kind != "String" else self.value(kind, scene, depth - 1)
        return f"({self.value(kind, scene, depth - 1)} {operator} {right})"

    def _threshold(self, kind: str) -> str:
        return f"{self.random.randint(-3, 9)}.3719" if kind == "Float64" else self._literal(kind)

    def _literal(self, kind: str) -> str:
        random = self.random
        if kind == "Bool":
            return random.choice(["true", "false"])
        if kind == "String":
            return f'"{random.choice(KEYS)}"'
        if kind == "Float64":
            return f"{random.randint(-8, 20) / 4}"
        return str(random.randint(0, 5) if kind == "UInt64" else random.randint(-3, 5))

    def _leaf(self, kind: str, scene: _Scene, depth: int) -> str:
        random = self.random
        options: list[Callable[[], str | None]] = [lambda: self._literal(kind)]
        options += [lambda: self._now(kind, scene)] * 4
        options += [lambda: self._older(kind, scene)] * 2
        options += [lambda: self._held(kind, scene)] * 2
        options += [lambda: self._aggregate(kind, scene)] * (4 if scene.periodic else 1)
        if scene.after:
            options += [lambda: self._instances(kind, scene)]
        for _ in range(4):
            found = random.choice(options)()
            if found is not None:
                return found
        return self._literal(kind) if depth < 9 else "true"

    def _pick(self, choices: list[Known], kind: str) -> Known | None:
        fits = [each for each in choices if each.kind == kind]
        return self.random.choice(fits) if fits else None

    def _now(self, kind: str, scene: _Scene) -> str | None:
        if scene.parameter is not None and scene.parameter[1] == kind and self.random.random() < 0.5:
            return scene.parameter[0]
        pair = self._pick(scene.now, PAIR)
        if pair is not None and kind == "Float64" and self.random.random() < 0.3:
            return f"pair.{self.random.randrange(2)}"
        found = self._pick(scene.now, kind)
        return None if found is None else found.name

    def _older(self, kind: str, scene: _Scene) -> str | None:
        found = self._pick(scene.now, kind)
        if found is None:
            return None
        back = self.random.choice([1, 1, 1, 2, 3, 5])
        written = [f"{found.name}[-{back}].defaults(to: {self._literal(kind)})"]
        written.append(f"{found.name}.offset(by: -{back}, or: {self._literal(kind)})")
        written.append(f"{found.name}.last(or: {self._literal(kind)})")
        if kind in _NUMBERS and kind != "UInt64":
            written.append(f"delta({found.name}, or: {self._literal(kind)})")
        return self.random.choice(written)

    def _instance(self, known: Known, scene: _Scene) -> str:
        """A stream with the argument that chooses an instance."""
        if not known.key:
            return known.name
        if scene.parameter is not None and scene.parameter[1] == known.key and self.random.random() < 0.7:
            return f"{known.name}({scene.parameter[0]})"
        return f"{known.name}({self._literal(known.key)})"

    def _held(self, kind: str, scene: _Scene) -> str | None:
        if kind == "Bool" and self.random.random() < 0.3:
            fits = [each for each in scene.others if scene.same_kind(each)]
            return f"{self._instance(self.random.choice(fits), scene)}.is_fresh()" if fits else None
        if kind == "Float64" and self._pick(scene.others, PAIR) and self.random.random() < 0.2:
            return f"pair.hold().{self.random.randrange(2)}.defaults(to: {self._literal(kind)})"
        found = self._pick(scene.others, kind)
        if found is None:
            return None
        name, otherwise = self._instance(found, scene), self._literal(kind)
        if scene.same_kind(found) and self.random.random() < 0.3:
            return f"{name}.get(or: {otherwise})"
        if self.random.random() < 0.12:
            return f"{name}.offset(by: -{self.random.choice(['1s', '700ms', '2.5s'])}).defaults(to: {otherwise})"
        return f"{name}.hold({f'or: {otherwise}'})"

    def _aggregate(self, kind: str, scene: _Scene) -> str | None:
        """A window: over a duration in periodic clauses, over values elsewhere."""
        random = self.random
        exactly = random.random() < 0.25
        if scene.periodic and random.random() < 0.85:
            over = "over_exactly" if exactly else "over"
            extent, choices = random.choice(["1s", "2s", "1500ms", "5s", "700ms"]), scene.others
        else:
            over = "over_exactly_discrete" if exactly else "over_discrete"
            extent, choices = str(random.choice([1, 2, 3, 5])), scene.now
        function, target = self._function(kind, choices)
        if target is None:
            return None
        call = f"{self._instance(target, scene)}.aggregate({over}: {extent}, using: {function})"
        plain = function in ("count", "sum", "integral", "exists", "forall") and not exactly
        return call if plain else f"{call}.defaults(to: {self._literal(kind)})"

    def _function(self, kind: str, choices: list[Known]) -> tuple[str, Known | None]:
        random = self.random
        if kind == "Bool":
            return random.choice(["exists", "forall"]), self._pick(choices, "Bool")
        if kind == "UInt64" and random.random() < 0.6:
            return "count", random.choice(choices) if choices else None
        if kind == "Float64" and random.random() < 0.2 and self._pick(choices, PAIR):
            return "cov", self._pick(choices, PAIR)
        if kind == "Float64" and random.random() < 0.25:
            return "integral", self._pick(choices, random.choice(["Int64", "Float64"]))
        if kind == "String":
            return "last", self._pick(choices, kind)
        functions = ["sum", "avg", "min", "max", "last", "median", f"pctl{random.choice([0, 5, 25, 50, 75, 90, 100])}"]
        if kind == "Float64":
            functions += ["var", "sd"]
        return random.choice(functions), self._pick(choices, kind)

    def _instances(self, kind: str, scene: _Scene) -> str | None:
        choices = [each for each in scene.others if each.key]
        function, target = self._function(kind, choices)
        if target is None or function in ("last", "integral"):
            return None
        call = f"{target.name}.aggregate(over_instances: all, using: {function})"
        plain = function in ("count", "sum", "exists", "forall")
        return call if plain else f"{call}.defaults(to: {self._literal(kind)})"


EDGES = [sign * (2**power + more) for power in (31, 32, 53, 62, 63) for more in (-1, 0, 1) for sign in (1, -1)]


def trace(random: Random, inputs: list[Known], wild: bool = False) -> list[tuple[int, dict[str, Any]]]:
    """Random events: times in ns that stand still, step by tenths or jump, and values for some of the inputs.

    With `wild` some values are as large as their types hold, times begin far from zero, and some traces are long, with
    many values.
    """
    time = random.choice([0, 0, 17 * SECOND, 3 * SECOND + 1])
    if wild:
        time = random.choice([-(2**61) + 1, -(2**53) - 1, 2**53 + 1, 2**60])
    events = []
    most = 200 if wild and random.random() < 0.2 else 30
    for _ in range(random.randint(1, most)):
        columns = {each.name: _value(random, each.kind) for each in inputs if random.random() < 0.6}
        if most > 30:
            columns |= {each.name: random.randint(0, 99) for each in inputs if each.kind in ("Int64", "UInt64")}
        for each in inputs if wild else ():
            if each.name in columns and random.random() < 0.15:
                columns[each.name] = _edge(random, each.kind, columns[each.name])
        events.append((time, columns))
        time += random.choice([0, 0, 1, SECOND // 10, SECOND // 10, SECOND // 2, SECOND, 333_333_333, 4 * SECOND])
    return events


def _edge(random: Random, kind: str, value: Any) -> Any:
    """A value at the edge of its type, where it has one."""
    low, high = {"Int64": (-(2**63), 2**63), "UInt64": (0, 2**64)}.get(kind, (0, 0))
    if kind == "Float64":
        return random.choice([0.0, 0.1, -2.5, 2.0**60])
    return random.choice([each for each in (*EDGES, 2**64 - 1) if low <= each < high]) if high else value


def _value(random: Random, kind: str) -> Any:
    if kind == "Bool":
        return random.random() < 0.5
    if kind == "String":
        return random.choice(KEYS)
    if kind == "Float64":
        return random.randint(-12, 30) / 4
    if kind == PAIR:
        return random.randint(-8, 8) / 2, random.randint(-8, 8) / 2
    return random.randint(0, 6) if kind == "UInt64" else random.randint(-3, 6)


def case(seed: int, wild: bool = False) -> tuple[str, list[tuple[int, dict[str, Any]]]]:
    """Text and trace number `seed`; see `trace`."""
    random = Random(seed)
    drawing = Drawing(random)
    text = drawing.text()
    return text, trace(random, drawing.inputs, wild)
