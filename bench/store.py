"""The files of results: one for each class of machine, with the latest measurement of every case."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench import machine

RESULTS = Path(__file__).resolve().parent / "results"


def read(file: Path) -> list[dict[str, Any]]:
    """The cases of a file, each with when, at which commit and on what machine it was measured."""
    found: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))["cases"]
    return found


def by_machine(folder: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """The cases of every class of machine, by its title and by their names."""
    return {
        machine.title(cases[0]["machine"]): {case["case"]: case for case in cases}
        for file in sorted(folder.glob("*.json"))
        if (cases := read(file))
    }


def newest_case(folder: Path, name: str) -> dict[str, Any] | None:
    """The newest full result of a case on any machine, else the newest quick one; None where there is none."""
    found = [cases[name] for cases in by_machine(folder).values() if name in cases and _measured(cases[name])]
    return max(found, key=lambda case: (not case["quick"], case["started"]), default=None)


def keep(folder: Path, header: Mapping[str, Any], cases: Sequence[Mapping[str, Any]]) -> Path:
    """Write cases to the file of their machine, in place of what it has of them.

    A quick result never takes the place of a full one, and one that was skipped takes no place at all. What is
    replaced stays in the history of the repository.

    Parameters
    ----------
    folder : Path
        Made where it does not exist.
    header : mapping
        Kept with each case: ``started`` (ISO 8601, UTC), ``note``, ``commit``, ``changed``, ``machine``.
    cases : sequence of mapping
        As `bench.harness.run_case` returns them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{machine.slug(header['machine'])}.json"
    known = {case["case"]: case for case in read(file)} if file.exists() else {}
    for case in cases:
        before = known.get(case["case"])
        if _measured(case) and (before is None or before["quick"] or not case["quick"]):
            known[case["case"]] = {**header, **case}
    write(file, list(known.values()))
    return file


def write(file: Path, cases: Sequence[Mapping[str, Any]]) -> None:
    """Write a file of results, one line per point, so that a later run shows as a small difference."""
    blocks = []
    for case in cases:
        head = json.dumps({key: value for key, value in case.items() if key != "points"})[:-1]
        points = ",\n".join("  " + json.dumps(point) for point in case["points"])
        blocks.append(f'{head}, "points": [\n{points}\n]}}')
    file.write_text('{"cases": [\n' + ",\n".join(blocks) + "\n]}\n", encoding="utf-8")


def _measured(case: Mapping[str, Any]) -> bool:
    return not all("skipped" in point for point in case["points"])
