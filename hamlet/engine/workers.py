"""Threads for kernels: each does what one kernel of every class has to do, in order, while the caller reads on."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait


class Workers:
    """Does jobs by number: those of one number one after the other, those of several side by side.

    Parameters
    ----------
    threads : int
        With one, the caller does each job at once.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._pools = [ThreadPoolExecutor(1) for _ in range(threads)] if threads > 1 else []
        self._running: list[Future[None]] = []
        self._broken = False

    def do(self, number: int, job: Callable[[], object]) -> None:
        """Do a job, or see that it is done before `settle` ends; not if one before has failed."""
        if self._pools:
            self._running.append(self._pools[number].submit(self._unless_broken, job))
        else:
            job()

    def _unless_broken(self, job: Callable[[], object]) -> None:
        if self._broken:
            return
        try:
            job()
        except BaseException:
            self._broken = True  # kernels may have stopped anywhere
            raise

    def wait(self) -> None:
        """Wait until no job is under way."""
        wait(self._running)

    def settle(self) -> None:
        """Wait for all jobs; raises what the first of them that failed has raised."""
        if not self._running:
            return
        running, self._running = self._running, []
        wait(running)
        for done in running:
            done.result()
