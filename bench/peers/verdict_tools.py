"""MonPoly, HYDRA and Aerial, where their executables are named: processes over a log.

HYDRA (Raszyk, Basin, Krstić, Traytel; ATVA 2019) and Aerial (Basin, Krstić, Traytel; RV 2017) are built by hand from
their public sources (``mraszyk/hydra`` with flex, bison and a C++ compiler; Aerial with OCaml, ocamlbuild and menhir)
and named by ``HAMLET_HYDRA`` and ``HAMLET_AERIAL``; MonPoly (Basin, Klaedtke, Zalinescu; RV-CuBES 2017) is built with
dune and named by ``HAMLET_MONPOLY``.
"""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from bench.answers import WrongAnswer
from bench.subject import Contender


def hydra() -> Path | None:
    """The executable of HYDRA."""
    return _named("HAMLET_HYDRA")


def aerial() -> Path | None:
    """The executable of Aerial."""
    return _named("HAMLET_AERIAL")


def monpoly() -> Path | None:
    """The executable of MonPoly."""
    return _named("HAMLET_MONPOLY")


def _named(variable: str) -> Path | None:
    found = os.environ.get(variable)
    if found is None:
        return None
    if not os.access(found, os.X_OK):
        raise FileNotFoundError(f"{variable} names {found}, which is no executable")
    return Path(found)


def run(command: list[str], output: Path) -> None:
    """One process, its standard output in a file."""
    with output.open("wb") as file:
        process = subprocess.run(command, stdout=file, stderr=subprocess.PIPE, text=True, check=False)
    if process.returncode:
        raise WrongAnswer(f"{command[0]} failed ({process.returncode}): {process.stderr[-500:]}")


def contenders(commands: Mapping[str, list[str]], place: Path) -> dict[str, Contender]:
    """One for each command: a process that writes lines to ``NAME.out`` in a folder."""
    return {
        name: Contender(
            partial(_measured, command, place / f"{name}.out"),
            None,
            in_children=True,
            metrics=dict,
            question="lines are written",
        )
        for name, command in commands.items()
    }


def _measured(command: list[str], output: Path) -> dict[str, float]:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run(command, output)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"cpu_s": cpu, "peak_bytes": after.ru_maxrss * 1024}  # of the largest child so far
