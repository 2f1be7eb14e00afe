"""Fuzzes the way from SQL with row patterns to what is explained: ``python fuzz/fuzz_sql.py -max_total_time=60``.

Whatever the text is, it is read, or refused with messages whose places lie in the text; what is read can be explained.
"""

from __future__ import annotations

from pathlib import Path

import driver

with driver.atheris.instrument_imports(include=["hamlet.patterns", "hamlet.frontend"]):
    from hamlet.errors import HamletError, WorkloadError
    from hamlet.patterns.match.explain import explain

HEAD = "SELECT * FROM t MATCH_RECOGNIZE ("
WORDS = """
    SELECT * FROM t MATCH_RECOGNIZE ( ) PARTITION BY k ORDER ts MEASURES AS x ONE ALL ROWS PER MATCH SHOW OMIT EMPTY
    MATCHES WITH UNMATCHED AFTER SKIP TO NEXT ROW PAST LAST FIRST PATTERN WITHIN INTERVAL '1' HOUR SUBSET u = DEFINE a B
    c PERMUTE ^ $ {- -} {2} {1,} {,3} + * ? | , . ; v FIRST( LAST( PREV( NEXT( COUNT(*) SUM( RUNNING FINAL CLASSIFIER()
    -> lambda x: [ FILTER (WHERE IGNORE NULLS DISTINCT UNNEST( t.
    MATCH_NUMBER() > < = <> AND OR NOT NULL IS true 0 1 2.5 'text' "q" -- /* */ é \\ $$ :: CASE WHEN THEN END IN
"""
TOKENS = [*WORDS.split(), HEAD, "PATTERN (a b+) DEFINE b AS v > PREV(v)", "\x00", "\n"]
CLAUSES = [
    "ORDER BY ts MEASURES COUNT(*) AS n PATTERN (a b+) DEFINE b AS v > PREV(v))",
    "PARTITION BY k ORDER BY ts ALL ROWS PER MATCH PATTERN (PERMUTE(a, b) c?) WITHIN 5 "
    "SUBSET u = (a, b) DEFINE a AS v = 1)",
    "ORDER BY ts MEASURES LAST(u.v, 1) AS x AFTER MATCH SKIP TO LAST b "
    "PATTERN (a {- b*? -} | ^ c{2,3}$) DEFINE c AS true)",
]


def text_of(data: bytes) -> str:
    """Text as it stands, or a row of tokens: the first byte decides."""
    if not data or data[0] % 2:
        return data[1:].decode("utf-8", "replace")
    return HEAD + " ".join(TOKENS[byte % len(TOKENS)] for byte in data[1:])


def check(data: bytes) -> None:
    """One input."""
    text = text_of(data)
    try:
        assert explain(text)
    except WorkloadError as error:
        for each in error.diagnostics:
            assert 0 <= each.span.start <= each.span.end <= len(text), "a message points beside the text"
            assert each.message
            assert each.format()
    except HamletError:
        pass


def seeds() -> list[bytes]:
    """Statements, and rows of tokens."""
    found = [b"\x01" + (HEAD + each).encode() for each in CLAUSES]
    return [*found, bytes(range(0, 200, 2)), bytes([0, *range(len(TOKENS))])]


if __name__ == "__main__":
    driver.run(Path(__file__).stem, check, seeds())
