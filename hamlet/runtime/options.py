"""Options of a call by name: made into one object that has their defaults and checks them, and shown by ``help``.

A call with many options takes them by name, as a TypedDict says (``**options: Unpack[RunOptions]``); inside they are
one object of a dataclass. `made_of` makes the object, and `takes` has ``help`` show the names and defaults.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any, TypeVar

from hamlet.errors import OptionError, near_miss, one_of
from hamlet.runtime.definitions import DEFINITIONS

# Options that all other notations refuse, with the reason.
OF_QUERIES = dict.fromkeys(
    ("sharing", "benefit", "numbers", "count_type", "null_keys", "timezone"), "it is for trend queries"
)
OF_POLICIES = dict.fromkeys(("verdicts", "mode", "time_points"), "it is for policies")

Made = TypeVar("Made")
Call = TypeVar("Call", bound=Callable[..., Any])


def made_of(kind: type[Made], options: Mapping[str, Any], others: Iterable[str] = ()) -> Made:
    """An object of options, of options by name.

    Parameters
    ----------
    kind : type
        A dataclass whose fields are the options; its ``UNHEARD`` has the reasons why others are not.
    options : mapping of str to Any
    others : iterable of str
        Further names that whoever is called takes, for the message.

    Raises
    ------
    OptionError
        Where there is none of a name; the text says which is nearly called so.
    """
    known = names_in(kind)
    for name in options:
        if name not in known:
            reason = getattr(kind, "UNHEARD", {}).get(name)
            if reason is not None:
                raise OptionError(f"there is no option {name!r} here: {reason}")
            names = [*known, *others]
            meant = near_miss(name, names)
            hint = f"did you mean {meant!r}?" if meant is not None else f"the options are {', '.join(names)}"
            raise OptionError(f"there is no option {name!r}; {hint}")
    return kind(**options)


def by_name(options: Any) -> dict[str, Any]:
    """The options that an object of a dataclass holds, for a call that takes them by name."""
    return {name: getattr(options, name) for name in names_in(type(options))}


def names_in(kind: type) -> list[str]:
    """The names of the options of a dataclass."""
    return [each.name for each in fields(kind)]


def takes(*kinds: type, without: Iterable[str] = ()) -> Callable[[Call], Call]:
    """Have `help` show what a call takes as ``**options``: the fields of dataclasses, with types and defaults."""
    left_out = frozenset(without)

    def decorated(call: Call) -> Call:
        signature = inspect.signature(call)
        shown = {each.name: each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD}
        for option in (each for kind in kinds for each in fields(kind) if each.name not in left_out):
            default = inspect.Parameter.empty if option.default is MISSING else option.default
            parameter = inspect.Parameter(
                option.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=option.type
            )
            shown.setdefault(option.name, parameter)
        call.__signature__ = signature.replace(parameters=[*shown.values()])  # type: ignore[attr-defined]
        return call

    return decorated


def check_choice(name: str, value: Any, choices: Sequence[str] = ()) -> None:
    """Raise OptionError where an option is none of its choices, which its definition has where it has one."""
    choices = choices or DEFINITIONS[name].choices
    if value not in choices:
        raise OptionError(f"{name} is {value!r}; it must be {one_of([repr(each) for each in choices])}")


def check_columns(*, time_column: str, type_column: str, order_column: str | None, time_unit: str) -> None:
    """Raise OptionError where what columns of events mean cannot be."""
    check_choice("time_unit", time_unit)
    named = {"time_column": time_column, "type_column": type_column, "order_column": order_column}
    for name, value in named.items():
        if not (isinstance(value, str) and value) and not (name == "order_column" and value is None):
            raise OptionError(f"{name} is {value!r}; it must be the name of a column")
    if order_column is not None and order_column == time_column:
        raise OptionError(f"the order column is the time column ({time_column!r}); name another one, or none")
