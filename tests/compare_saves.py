"""Saves with mistakes behind a digest that is right, of every notation: refused, or a monitor that goes on.

    python -m tests.compare_saves --mutants 3000

Anything but an error of Hamlet's, and anything that takes more than five seconds, is a finding: it ends the run with
the case and the seed.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import time
from types import FrameType

from hamlet.errors import HamletError
from tests.checkpoint.save_mutations import mutated
from tests.kernel.failing_allocations import cases

SECONDS = 5


class TooLongError(BaseException):
    """A call takes too long; no code may catch it as one of its own."""


class Seeded:
    """Decisions of a seeded generator."""

    def __init__(self, seed: str) -> None:
        self._draw = random.Random(seed)

    def below(self, end: int) -> int:
        """Any of ``0..end - 1``."""
        return self._draw.randrange(end)


def _stop(number: int, frame: FrameType | None) -> None:
    raise TooLongError


def check(name: str, first: int, mutants: int) -> tuple[int, int]:
    """How many mutants of a case's saves are refused, and how many go on."""
    case = cases()[name]
    monitor = case.make()
    saves = []
    for place, part in enumerate(case.pushed):
        monitor.push(part)
        if place in (2, len(case.pushed) // 2):
            saves.append(monitor.save())
    rest = case.pushed[len(case.pushed) // 2 + 1 :]
    refused = went = 0
    for seed in range(first, first + mutants):
        data = mutated(saves[seed % len(saves)], Seeded(f"{name} {seed}"))
        signal.alarm(SECONDS)
        try:
            restored = case.restore(data)
            for part in rest[:4]:
                restored.push(part)
            case.restore(restored.save()).close()
            went += 1
        except HamletError:
            refused += 1
        except TooLongError:
            sys.exit(f"{name}, seed {seed}: takes more than {SECONDS} s")
        except BaseException as error:
            error.add_note(f"{name}, seed {seed}")
            raise
        finally:
            signal.alarm(0)
    return refused, went


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutants", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    signal.signal(signal.SIGALRM, _stop)
    for name in cases():
        if given.only in name:
            begun = time.perf_counter()
            refused, went = check(name, given.seed, given.mutants)
            sys.stdout.write(f"{name}: {refused} refused, {went} go on, {time.perf_counter() - begun:.0f} s\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
