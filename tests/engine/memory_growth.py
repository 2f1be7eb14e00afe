"""How much a process grows until a monitor says that it passes its limit, which is one for each process."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

import hamlet
import hamlet.policies
import hamlet.streams
from hamlet.errors import MemoryLimitError
from hamlet.matching import Matcher

ALLOWED = 30_000_000  # beside twice the limit


def texts(size: int = 60) -> Iterator[list[dict[str, Any]]]:
    """Events whose texts are all different."""
    for begin in range(0, 600_000, 2000):
        yield [{"time": at, "type": "w", "s": f"{at:0{size}}", "u": at} for at in range(begin, begin + 2000)]


def policy(text: str, **options: Any) -> Callable[..., Any]:
    made = hamlet.policies.Policy.parse(text, signature="w(u: int, s: string) q()")
    return lambda **more: hamlet.policies.Monitor(made, **options, **more)


def specification(text: str, **options: Any) -> Callable[..., Any]:
    made = hamlet.streams.Specification.parse(text)
    return lambda **more: hamlet.streams.Monitor(made, **options, **more)


def query(text: str, **options: Any) -> Callable[..., Any]:
    made = hamlet.Workload.parse(text)
    return lambda **more: hamlet.Engine(made, **options, **more)


def pattern(text: str, **options: Any) -> Callable[..., Any]:
    sql = f"SELECT * FROM t MATCH_RECOGNIZE ({text})"
    schema = pa.schema([("time", pa.int64()), ("type", pa.string()), ("s", pa.string()), ("u", pa.int64())])
    return lambda **more: Matcher(sql, schema, **options, **more)


LATE = {"lateness": 10**9}
NESTED = "EVENTUALLY[0,100000000] ((EXISTS u, s. w(u, s)) AND NEXT q())"
CASES: dict[str, Callable[..., Any]] = {
    "query": query("q: RETURN COUNT(*) PATTERN w WHERE [s] WITHIN 100 d;"),
    "query late": query("q: RETURN COUNT(*) PATTERN w WHERE [s] WITHIN 10 s;", **LATE),
    "policy": policy("q() AND ONCE w(u, s)"),
    "policy late": policy("w(u, s)", **LATE),
    "policy of matches": policy("q() AND (MATCHP (w(u, s)? . (EXISTS a, b. w(a, b))*))"),
    "verdicts": policy("EVENTUALLY[0,100000000] q()", verdicts="all"),
    "verdicts equivalent": policy("EVENTUALLY[0,100000000] q()", verdicts="equivalent"),
    "verdicts global": policy("EVENTUALLY[0,100000000] q()", verdicts="equivalent", mode="global"),
    "verdicts of keys": policy("EVENTUALLY[0,100000000] (w(u, s) AND PREV[0,0] w(u, s))", verdicts="all"),
    "verdicts nested": policy(NESTED, verdicts="all"),
    "specification": specification("input s: String\noutput of(k) spawn with s eval when k == s with s\n"),
    "specification texts": specification(
        'input s: String\noutput x := s.offset(by: -500000).defaults(to: "")\ntrigger x == "z"\n'
    ),
    "specification late": specification('input s: String\ninput u: Int64\ntrigger u == -1 "x"\n', **LATE),
    "pattern": pattern("ORDER BY time MEASURES COUNT(*) AS n PATTERN (a+ z) DEFINE z AS u = -1"),
    "pattern of keys": pattern("PARTITION BY s ORDER BY time MEASURES COUNT(*) AS n PATTERN (a z) DEFINE z AS u = -1"),
    "pattern late": pattern("ORDER BY time MEASURES COUNT(*) AS n PATTERN (z) DEFINE z AS u = -1", **LATE),
}


def resident() -> int:
    """Bytes of the process that are in memory."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096


def growth(name: str, limit: int) -> int:
    """Bytes that the process has grown when the limit is passed; what is imported meanwhile aside."""
    warm = CASES[name]()
    warm.push(next(texts())[:100])
    warm.close()
    before = most = resident()
    try:
        monitor = CASES[name](max_memory=limit)
        for events in texts():
            monitor.push(events[: 100 if "nested" in name else None])
            most = max(most, resident())
    except MemoryLimitError:
        return max(most, resident()) - before
    raise AssertionError(f"{name}: no error, and {monitor.held} are held")


def alone(name: str, limit: int) -> int:
    """The exit code of a process that measures a case."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 1
    try:
        grown = growth(name, limit)
        code = grown > 2 * limit + ALLOWED
        sys.stderr.write(f"{name}: {grown:,} bytes beside a limit of {limit:,}\n")
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


if __name__ == "__main__":
    sys.exit(max(alone(sys.argv[1], int(limit)) for limit in sys.argv[2:]))
