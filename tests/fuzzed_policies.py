"""What the fuzzer of policies checks, for any bytes."""

from __future__ import annotations

import random
from collections.abc import Iterator

from hamlet.errors import HamletError
from hamlet.policies import Policy, PolicyError, Signature
from hamlet.policies.parser import parse_formula
from hamlet.policies.printing import print_formula
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
