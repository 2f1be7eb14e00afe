"""`hamlet why`: evidence for a row of a large file, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import hamlet
from bench.answers import WrongAnswer, digest
from bench.subject import Answer, Case, Contender, Rows

TEXT = "RETURN user, COUNT(*) PATTERN SEQ(view+, buy) WHERE [user] GROUP-BY user WITHIN {}"
USERS, AT_A_TIME, WINDOW = 5_000, 10, 1_000
ROW_GROUP = 1_000_000


class WhyRow:
    """One row of a Parquet file in the order of time: of a window, and of a group's window over everything.

    Parameters
    ----------
    events : int
    """

    def __init__(self, events: int) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="hamlet-bench-")
        self.folder, self.events = Path(self._folder.name), events
        random = np.random.default_rng(1)
        names = pa.DictionaryArray.from_arrays(
            random.integers(0, USERS, events).astype(np.int32), [f"user-{number}" for number in range(USERS)]
        )
        kinds = np.array(["view", "cart", "buy"])[random.choice(3, events, p=(0.6, 0.3, 0.1))]
        times = np.arange(events) // AT_A_TIME
        table = pa.table({"time": times, "type": kinds, "user": names, "price": random.integers(0, 100, events)})
        pq.write_table(table, self.folder / "events.parquet", row_group_size=ROW_GROUP)
        found = hamlet.run(hamlet.Workload.parse(TEXT.format(f"{WINDOW} s")), table).rows()
        self.row: dict[str, Any] = found[len(found) // 2]  # a window in the middle
        for name, within in (("window", f"{WINDOW} s"), ("group", "ALL")):
            (self.folder / f"{name}.sase").write_text(TEXT.format(within))

    def why(self, name: str, *more: str) -> dict[str, Any]:
        """The evidence that the command prints."""
        known = ("window_start", "user") if name == "window" else ("user",)
        row = json.dumps({each: self.row[each] for each in known})
        command = [sys.executable, "-m", "hamlet", "why", str(self.folder / f"{name}.sase"), "--row", row]
        command += ["--input", str(self.folder / "events.parquet"), "--format", "json", *more]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise WrongAnswer(f"hamlet why ended with {done.returncode}: {done.stderr}")
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def rows(self, found: dict[str, Any]) -> Rows:
        """The row that evidence is for."""
        return [found["row"]]

    def answer(self) -> Answer:
        """The row of the window is that of the run, and both pieces of evidence are accepted by the checker."""
        if self.why("window", "--check")["row"]["count"] != self.row["count"]:
            raise WrongAnswer("the evidence is for another row than that of the run")
        self.why("group", "--check")
        return Answer(["the checker accepts both"], {"events": self.events}, digest([self.row]))

    def contenders(self) -> Mapping[str, Contender]:
        """The row of a window first."""
        return {
            "a window's row": Contender(partial(self.why, "window"), self.rows, in_children=True),
            "a group's row": Contender(
                partial(self.why, "group"), None, in_children=True, question="the group's window over everything"
            ),
        }


CASES: dict[str, Case] = {
    "why-row": Case(
        "Evidence for a row of a Parquet file: of a window, and of a group's window over everything",
        {"": partial(WhyRow, 10_000_000)},
        {"": partial(WhyRow, 100_000)},
        seconds=(60, 15),
    ),
}
