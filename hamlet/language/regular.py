"""Regular expressions over texts, by an engine without backtracking: each text costs time linear in its length.

The engine is RE2, which Arrow carries. What it lacks, back-references and looking around, is refused when an expression
is read.
"""

from __future__ import annotations

from hamlet.arrays import pa, pc

_MOST_KNOWN = 1 << 12  # texts whose answers are kept


class RegularExpression:
    """An expression that some part of a text may fit.

    Parameters
    ----------
    pattern : str
        In the syntax of RE2.

    Raises
    ------
    ValueError
        If it cannot be read.
    """

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._known: dict[str, bool] = {}
        try:
            self.found_in(pa.array([""]))
        except (pa.ArrowInvalid, UnicodeEncodeError) as error:
            raise ValueError(_plain(str(error))) from None

    def found_in(self, texts: pa.Array) -> pa.Array:
        """Which texts have a part that fits."""
        return pc.match_substring_regex(texts, self._pattern)

    def found(self, text: str) -> bool:
        """Whether a text has a part that fits."""
        known = self._known.get(text)
        if known is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            known = self._known[text] = bool(self.found_in(pa.array([text]))[0].as_py())
        return known


def _plain(message: str) -> str:
    """What the engine says, without its own preface, and what it means for who comes from another engine."""
    said = message.removeprefix("Invalid regular expression: ").replace("(?m)", "")
    if said.startswith("invalid escape sequence: \\") and said[-1].isdigit():
        return f"there are no back-references ({said[-2:]})"
    if said.startswith("invalid perl operator: (?"):
        return f"'{said.rpartition(' ')[2]}' is not supported: there is no looking around"
    return said


_LETTERS = r"\p{L}\p{M}\p{Nd}\p{Pc}"
_OUTSIDE = {"w": f"[{_LETTERS}]", "W": f"[^{_LETTERS}]", "d": r"\p{Nd}", "D": r"\P{Nd}", "s": r"[\s\x0B\x{85}\p{Z}]"}
_INSIDE = {"w": _LETTERS, "d": r"\p{Nd}", "D": r"\P{Nd}", "s": r"\s\x0B\x{85}\p{Z}"}


def of_any_alphabet(pattern: str) -> str:
    r"""The pattern with ``\w``, ``\d`` and ``\s`` for the letters, digits and blanks of any alphabet."""
    parts: list[str] = []
    place, inside = 0, False
    while place < len(pattern):
        letter = pattern[place]
        if letter == "\\" and place + 1 < len(pattern):
            following = pattern[place + 1]
            parts.append((_INSIDE if inside else _OUTSIDE).get(following, letter + following))
            place += 2
            continue
        if letter == "[" and not inside:
            inside = True
        elif letter == "]" and inside and parts[-1] not in ("[", "[^"):
            inside = False
        parts.append("[^" if letter == "[" and inside and pattern[place + 1 : place + 2] == "^" else letter)
        place += len(parts[-1])
    return "".join(parts)
