"""What the fuzzers of policies and of logs check, for any bytes."""

from __future__ import annotations

import random
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hamlet.errors import DataError, HamletError
from hamlet.policies import Policy, PolicyError, Signature
from hamlet.policies.logs.reader import LogFile
from hamlet.policies.syntax.parser import parse_formula
from hamlet.policies.syntax.printing import print_formula
from tests.compare_policies import evaluated
from tests.random_policies import SIGNATURE, random_log, random_policy

WORDS = """
    TRUE FALSE LET IN NOT AND OR IMPLIES EQUIV EXISTS FORALL PREV NEXT ONCE EVENTUALLY ALWAYS HISTORICALLY SINCE UNTIL
    CNT SUM AVG MIN MAX MED SUBSTRING MATCHES MOD f2i i2f i2s s2i f2s s2f YEAR FORMAT_DATE p q r e s x y z _ _a p(x)
    q(y) r(x,y) e() s(z) [0,5] [0,*) (1,3] [2,2] [0,1d] x = 1 x < y x <- ; , . ( ) [ ] * + - / < <= > >= = 0 1 2 10m
    2.5 "a" 'b' r"a" # (* *) ∧ ∨ ¬ → ∃ ∀ ● ○ ◊ □ S U é \\ @ tp(x) LETPAST
"""
TOKENS = WORDS.split()
_LOG = random_log(random.Random(5))


def text_of(data: bytes) -> str:
    """Text as it stands, or a row of tokens: the first byte decides."""
    if not data or data[0] % 2:
        return data[1:].decode("utf-8", "replace")
    return " ".join(TOKENS[byte % len(TOKENS)] for byte in data[1:])


def check(data: bytes) -> None:
    """One input."""
    text = text_of(data)
    try:
        Signature.parse(text)
    except PolicyError as error:
        _check_places(error, text)
    try:
        formula, _ = parse_formula(text)
    except PolicyError as error:
        _check_places(error, text)
        return
    again, _ = parse_formula(print_formula(formula))
    assert again == formula, "printing changed the formula"
    try:
        policy = Policy.parse(text, SIGNATURE)
        rows = evaluated(policy, _LOG, [])
        assert evaluated(policy, _LOG, [2, 3]) == rows
    except PolicyError as error:
        _check_places(error, text)
    except HamletError:
        pass


def _check_places(error: PolicyError, text: str) -> None:
    for each in error.diagnostics:
        assert 0 <= each.span.start <= each.span.end <= len(text), "a message points beside the text"
        assert each.message
        assert each.format()


def seeds() -> Iterator[bytes]:
    """Where to start."""
    for seed in range(50):
        yield b"\x01" + random_policy(random.Random(seed)).encode()
        yield b"\x00" + random.Random(seed).randbytes(30)


LOG_SIGNATURE = {("p", 1): ["int"], ("q", 2): ["string", "float"], ("e", 0): [], ("b", 1): ["bool"], ("q", 1): ["int"]}
LOG_WORDS = """
    @1 @2 @ @-3 @9223372036854775807 @99999999999999999999 p q e b x ( ) , ; # () (1) (a,1.5) " "a_b" "\\\\"" true false
    1e5 nan -0 99999999999999999999999 é \0 (*_*) p(1)(2) q("a",-1) : {} [] - +
"""
LOG_TOKENS = [b" ", b"\n", b"\r\n", b"\t", *(each.replace("_", " ").encode() for each in LOG_WORDS.split())]


def log_of(data: bytes) -> bytes:
    """Bytes as they stand, or a row of tokens: the first byte decides."""
    if not data or data[0] % 2:
        return data[1:]
    return b"".join(LOG_TOKENS[byte % len(LOG_TOKENS)] for byte in data[1:])


def check_log(data: bytes) -> None:
    """One log: read, or refused with a place that is in it; alike however it is cut, and with unknown names, too."""
    text = log_of(data)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.log")
        path.write_bytes(text)
        for ignore in (False, True):
            found = [_read(path, ignore, size) for size in (1 << 20, 3, 17)]
            broken = any("not UTF-8" in str(each) for each in found)  # found later than other mistakes of a piece
            assert broken or found[1:] == found[:1] * 2, "how a log is cut makes a difference"
            place = re.search(r"x\.log:([0-9]+):", found[0]) if isinstance(found[0], str) else None
            if place is not None:
                line = int(place[1])
                assert 1 <= line <= text.count(b"\n") + 1, "a message points beside the log"


def _read(path: Path, ignore: bool, size: int) -> Any:
    """All tuples of a log by predicate, or the first line of its error; floats as text, for NaN equals itself."""
    rows: dict[Any, list[Any]] = {}
    times: list[int] = []
    file = LogFile(path, LOG_SIGNATURE, ignore_unknown=ignore, chunk_bytes=size)
    try:
        for chunk in file.chunks():
            times += chunk.times.tolist()
            for key, (points, columns) in chunk.relations.items():
                values = [[str(each) for each in column.to_pylist()] for column in columns]
                rows.setdefault(key, []).extend(zip((points + chunk.first).tolist(), *values, strict=True))
    except DataError as error:
        return str(error).split("\n", 1)[0].split(" and found ")[0]  # a word may be cut there
    return times, rows, file.unknown


def log_seeds() -> Iterator[bytes]:
    """Where to start."""
    yield b'\x01@1 p(1)(2) q("a b",1.5)\n  (x, -2)\n@1 @2 e\n e() q(7); # c @9\n@3;\n@10 b(true)\n@11 e # tail'
    for seed in range(50):
        yield b"\x00" + random.Random(seed).randbytes(30)
