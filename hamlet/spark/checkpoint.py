"""The checkpoint of a continuous job: whose it is, and whether all of it is there; no pyspark needed.

A job holds a lock of the operating system while it runs, so a killed one leaves nothing behind that is in the way.
"""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hamlet.errors import OutputError, RestoreError

LOCK = "owner"
_SPARK = "spark"  # the folder of Spark's own below the checkpoint of a policy


@contextmanager
def owned(checkpoint: str) -> Iterator[None]:
    """Hold a checkpoint while a job runs.

    Raises
    ------
    OutputError
        If another job holds it, with its process.
    """
    folder = Path(checkpoint)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK).open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            owner = file.read().strip() or "another process"
            raise OutputError(
                f"the checkpoint {checkpoint} is in use by {owner}\n"
                "hint: stop that job first, or give this one a checkpoint and an output of its own"
            ) from None
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
        file.flush()
        yield


def check_parts(checkpoint: str, states: Path) -> None:
    """Check that Spark's place in the input and the saved states are both there, or both are not.

    Raises
    ------
    RestoreError
        If one of them has been removed.
    """
    has_states = states.is_dir() and any(states.glob("*.state"))
    spark = Path(checkpoint, _SPARK)
    done = (spark / "commits").is_dir() and any(each.name.isdigit() for each in (spark / "commits").iterdir())
    begun = (spark / "offsets").is_dir() and any(each.name.isdigit() for each in (spark / "offsets").iterdir())
    hint = "hint: put it back, or begin again with a new checkpoint and a new output"
    if done and not has_states:
        raise RestoreError(f"the checkpoint {checkpoint} has lost the monitor's state, {states}\n{hint}")
    if has_states and not begun:
        raise RestoreError(f"the checkpoint {checkpoint} has lost Spark's place in the input, {spark}\n{hint}")
