"""Fuzzes the way from a specification's text to its program: ``python fuzz/fuzz_lola.py -max_total_time=60``.

Whatever the text is, it is read and checked, or refused with messages whose places lie in the text; of what is
accepted the memory is known, and all forms of the explanation can be made.
"""

from __future__ import annotations

from pathlib import Path

import driver

with driver.atheris.instrument_imports(include=["hamlet.streams"]):
    from hamlet.errors import WorkloadError
    from hamlet.streams.explain import explain
    from hamlet.streams.specification import Specification

WORDS = """
    input output trigger constant import type include mirrors spawn eval close when with if then else true false
    a b c p Int64 UInt8 Float64 String Bool Int64? _ math regex Global Local @ 1Hz 2.5Hz 10s 1min 0 1 -1 2.5 "s" r#"s"#
    := : , ( ) [ ] { } . + - * / % ** && || ! -> and or not = != < <= > >= & | ^ ~ << >> ∧ ∨ ¬ ≤ ∫ Σ # ?
    offset by hold last get is_fresh defaults to aggregate over over_exactly over_discrete over_instances using all
    self error fresh count sum avg median pctl50 exists sqrt min cast widen format matches delta abs round // /* */ é \\
"""
PHRASES = [
    "input a: Int64",
    "input b: Float64, c: Bool",
    "output x := a",
    "output y @1Hz := a.hold(or: 0)",
    ".offset(by: -1)",
    ".defaults(to: 0)",
    ".aggregate(over: 5s, using: sum)",
    "output z(p) spawn with a eval when a = p with z(p).last(or: 0) + 1",
    'trigger a > 5 "text"',
    "\x00",
    "\n",
]
TOKENS = [*WORDS.split(), *PHRASES]


def text_of(data: bytes) -> str:
    """Text as it stands, or a row of tokens: the first byte decides."""
    if not data or data[0] % 2:
        return data[1:].decode("utf-8", "replace")
    return " ".join(TOKENS[byte % len(TOKENS)] for byte in data[1:])


def check(data: bytes) -> None:
    """One input."""
    text = text_of(data)
    try:
        specification = Specification.parse(text)
    except WorkloadError as error:
        assert_places(error, text)
        return
    for shown_as in ("text", "json", "dot"):
        assert explain(specification, shown_as)


def assert_places(error: WorkloadError, text: str) -> None:
    """Every message points into the text."""
    for each in error.diagnostics:
        assert 0 <= each.span.start <= each.span.end <= len(text), "a message points beside the text"
        assert each.message
        assert each.format()


def seeds() -> list[bytes]:
    """The project's specifications, the golden errors, and rows of tokens."""
    found = [path.read_bytes() for path in sorted((driver.ROOT / "workloads").glob("*.lola"))]
    golden = sorted((driver.ROOT / "tests/streams/errors").glob("*.txt"))
    found += [path.read_bytes().split(b"\n----\n")[0] for path in golden]
    return [b"\x01" + text for text in found] + [bytes(range(0, 200, 2)), bytes([0, *range(len(TOKENS))])]


if __name__ == "__main__":
    driver.run(Path(__file__).stem, check, seeds())
