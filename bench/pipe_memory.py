"""Resident memory over a pipe that does not end, per notation.

``python -m bench.pipe_memory --rate 20000 --minutes 60`` sends events as JSON lines to one process per notation, all
side by side, and prints the resident memory of each after every five minutes. Of a thousand active keys, which are
texts, ten are replaced by new ones every second, so that whatever is kept for a key that never comes again would show.
Rows are written to files as they come; the number of rows is printed at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ACTIVE, NEW = 1000, 10  # keys at any moment, and those of them that are new every second
GROUP = 0.02  # seconds of events that are written at once
NOTATIONS = {
    "query": (
        ["run", "w.sase"],
        {"w.sase": "RETURN k, COUNT(*), SUM(B.v), COUNT(DISTINCT B.v) PATTERN SEQ(A, B+) GROUP-BY k WITHIN 10 s"},
    ),
    "policy": (
        ["monitor", "p.mfotl", "--signature", "p.sig"],
        {
            "p.sig": "A(k: string, v: int)\nB(k: string, v: int)\n",
            "p.mfotl": "A(k, v) AND v > 990 AND NOT (EXISTS w. ONCE[0,10] (B(k, w) AND w > 900))",
        },
    ),
    "specification": (
        ["monitor", "s.lola"],
        {
            "s.lola": "input k: String  input v: Int64\n"
            "output own(p: String) spawn with k eval when p = k with own(p).offset(by: -1).defaults(to: 0) + v "
            "close @1s when idle(p).hold(or: false)\n"
            "output idle(p: String) spawn with k eval @Local(1s) with own(p).aggregate(over: 10s, using: count) = 0 "
            'close when idle(p)\ntrigger v > 998 "high"\n'
        },
    ),
    "row pattern": (
        [
            "sql",
            "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY time MEASURES COUNT(*) AS n "
            "PATTERN (a b{3}) WITHIN 10 DEFINE a AS v > 900, b AS v < 300)",
        ],
        {},
    ),
}


def group(number: int, rate: int, lot: random.Random) -> bytes:
    """The events of one group, in seconds with a fraction."""
    size, second = int(rate * GROUP), number * GROUP
    first = int(second) * NEW  # the oldest active key
    return "".join(
        f'{{"time": {int(second)}, "type": "{lot.choice("AB")}", "k": "key-{first + lot.randrange(ACTIVE)}", '
        f'"v": {lot.randrange(1000)}}}\n'
        for _ in range(size)
    ).encode()


def resident(pid: int) -> float:
    """Resident memory of a process in MB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def main() -> None:
    """Send, sample and print."""
    options = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    options.add_argument("--rate", type=int, default=20_000)
    options.add_argument("--minutes", type=float, default=60)
    options.add_argument("--every", type=float, default=5, help="minutes between two samples")
    options.add_argument("--notation", action="append", choices=sorted(NOTATIONS))
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        runs: dict[str, subprocess.Popen[bytes]] = {}
        for notation in chosen.notation or NOTATIONS:
            arguments, files = NOTATIONS[notation]
            for file, text in files.items():
                (folder / file).write_text(text)
            runs[notation] = subprocess.Popen(
                [sys.executable, "-m", "hamlet", *arguments, "--input", "-", "--output", "-", "--quiet"],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdin=subprocess.PIPE,
                stdout=(folder / f"{notation}.rows").open("wb"),
            )
        samples = _sent(runs, chosen.rate, chosen.minutes, chosen.every)
        rows = {each: (folder / f"{each}.rows").read_bytes().count(b"\n") for each in runs}
        print(json.dumps({"rate": chosen.rate, "minutes": chosen.minutes, "resident_mb": samples, "rows": rows}))


def _sent(runs: dict[str, subprocess.Popen[bytes]], rate: int, minutes: float, every: float) -> dict[str, list[float]]:
    """Send to all; gives samples of their resident memory."""
    lot, started, behind = random.Random(1), time.monotonic(), 0.0
    samples: dict[str, list[float]] = {each: [] for each in runs}
    due, groups = every * 60, int(minutes * 60 / GROUP)
    for number in range(groups):
        data = group(number, rate, lot)
        wait = started + number * GROUP - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        behind = max(behind, -wait)
        for run in runs.values():
            assert run.stdin is not None
            run.stdin.write(data)
            run.stdin.flush()
        if number * GROUP >= due - GROUP or number == groups - 1:
            due += every * 60
            for notation, run in runs.items():
                samples[notation].append(round(resident(run.pid), 1))
            told = ", ".join(f"{notation} {found[-1]} MB" for notation, found in samples.items())
            print(f"{number * GROUP / 60:.1f} min, at most {behind:.2f} s behind: {told}", flush=True)
    for run in runs.values():
        assert run.stdin is not None
        run.stdin.close()
    for notation, run in runs.items():
        assert run.wait(600) == 0, notation
    return samples


if __name__ == "__main__":
    main()
