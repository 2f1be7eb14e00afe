"""Fuzzes the way from workload text to a checked workload: ``python fuzz/fuzz_parser.py -max_total_time=60``.

Whatever the text is, it is read and checked, or refused with messages whose places lie in the text; a workload that is
accepted survives printing and compiles.
"""

from __future__ import annotations

from pathlib import Path

import driver

with driver.atheris.instrument_imports(include=["hamlet", "optimizer"]):
    from hamlet.errors import WorkloadError
    from hamlet.input.columns import StringPool
    from hamlet.language.analysis import analyse_text
    from hamlet.language.parser import parse
    from hamlet.language.printing import to_text
    from hamlet.language.schema import Clock, Schema
    from hamlet.language.typecheck import check as typecheck
    from hamlet.planner.compile import compile_workload

import pyarrow as pa

WORDS = """
    RETURN PATTERN WHERE GROUP-BY WITHIN SLIDE EVENT SEQ NOT AND OR AS IS NULL IN BETWEEN NEXT PREV TRUE FALSE
    COUNT(*) COUNT SUM AVG MIN MAX LOG2 A B C x y v k 0 1 2 1000 2.5 1e9 -1 's' s min ms d INT DOUBLE STRING
    , ; : ( ) [ ] { } . + * / % - < <= > >= = <> ? | & ∨ ∧ -- " ' '' é \\ @
"""
PHRASES = [
    "RETURN COUNT(*) PATTERN SEQ(A, B+) WITHIN 10 s",
    "A.v < NEXT(B).v",
    "WHERE [k]",
    "EVENT A(v INT, k STRING);",
    "\x00",
    "\ufeff",
    "\n",
]
TOKENS = [*WORDS.split(), *PHRASES]
OPEN = Schema({}, Clock("time", "s", pa.int64()), closed=False)


def text_of(data: bytes) -> str:
    """Text as it stands, or a row of tokens: the first byte decides."""
    if not data or data[0] % 2:
        return data[1:].decode("utf-8", "replace")
    return " ".join(TOKENS[byte % len(TOKENS)] for byte in data[1:])


def check(data: bytes) -> None:
    """One input."""
    text = text_of(data)
    try:
        analysis = analyse_text(text, "fuzz.sase")
    except WorkloadError as error:
        for each in error.diagnostics:
            assert 0 <= each.span.start <= each.span.end <= len(text), "a message points beside the text"
            assert each.message
            assert each.format()
        return
    assert parse(to_text(analysis.text)) == analysis.text, "printing and reading changed the workload"
    if not any(each.severity == "error" for each in typecheck(analysis, OPEN)):
        compile_workload(analysis, OPEN, StringPool())


def seeds() -> list[bytes]:
    """The project's workloads, the golden errors, and rows of tokens."""
    found = [path.read_bytes() for path in sorted((driver.ROOT / "workloads").glob("*.sase"))]
    found += [
        path.read_bytes().split(b"\n----\n")[0]
        for path in sorted((driver.ROOT / "tests/language/errors").glob("*.txt"))
    ]
    return [b"\x01" + text for text in found] + [bytes(range(0, 200, 2)), bytes([0, *range(len(TOKENS))])]


if __name__ == "__main__":
    driver.run(Path(__file__).stem, check, seeds())
