"""How the states of a continuous job are cut: in cells, which move between slices when their number changes.

Events are routed to *cells* (`Work.slices` of them), and a cell has a monitor of its own. A slice is a task of Spark
with some of the cells, so another number of slices on the same checkpoint, or other shares, puts whole cells elsewhere
and no row changes. Spark's own state stays where its hash puts it; so a job that is scaled begins Spark's part of the
checkpoint anew, in a folder of its own: it is given the cells as the last micro-batch left them, and the files that
were read. Until the file `PLAN` names that folder, the job is as it was before, whenever it is killed.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from hamlet.errors import RestoreError
from hamlet.parallel.routing.placement import Balance
from hamlet.spark.cell_states import whole
from hamlet.spark.checkpoint import FilesRead, check_parts, is_begun
from hamlet.spark.input import local_path
from hamlet.spark.processor import STATE
from hamlet.spark.sliced import Recut

PLAN = "cells.json"
CELLS_PER_SLICE = 4  # when a job begins: up to so many times its slices have work to do later
UNEVEN = 1.25  # the load of the largest slice over the mean from which on cells are moved
_SPARKS = ("commits", "offsets", "sources", "state", "metadata", ".metadata.crc", "_temporary")


@dataclass(frozen=True)
class Plan:
    """Where the cells of a job are.

    Attributes
    ----------
    places : tuple of int
        The slice of each cell.
    generation : int
        How often the job was scaled.
    first : int
        The number of the first micro-batch since then.
    read : tuple of str
        Files that were read before.
    shares : object
        By what the work was cut anew, as JSON; None where it is as it began.
    """

    places: tuple[int, ...]
    generation: int = 0
    first: int = 0
    read: tuple[str, ...] = field(default=())
    shares: Any = None

    @property
    def cells(self) -> int:
        """How many there are."""
        return len(self.places)

    @property
    def slices(self) -> int:
        """How many have work to do."""
        return max(self.places) + 1

    def folder(self, checkpoint: str) -> str:
        """Spark's part of the checkpoint."""
        return checkpoint if not self.generation else str(Path(checkpoint, f"scaled-{self.generation}"))

    def initial(self, checkpoint: str) -> str | None:
        """Where the cells are with which that part begins."""
        return None if not self.generation else str(Path(checkpoint, f"cells-{self.generation}"))


def spread(cells: int, slices: int) -> tuple[int, ...]:
    """The slices of cells, one after the other."""
    return tuple(cell % slices for cell in range(cells))


def kept_plan(checkpoint: str) -> Plan | None:
    """The plan of a job that has begun.

    Raises
    ------
    RestoreError
        If it is damaged, or the checkpoint has none.
    """
    folder = local_path(checkpoint)
    if folder is None:
        return None
    place = folder / PLAN
    try:
        found = json.loads(place.read_text())
        places, read = tuple(found["places"]), tuple(found["read"])
        return Plan(places, found["generation"], found["first"], read, found.get("shares"))
    except FileNotFoundError:
        if is_begun(folder) and (folder / "offsets").is_dir():
            raise RestoreError(
                f"the checkpoint {checkpoint} is of an earlier version; begin with a new one and a new output"
            ) from None
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise RestoreError(f"the checkpoint is damaged: {place} cannot be read ({error})") from None


def files_read(checkpoint: str) -> list[str]:
    """The files that a job has read, also before its cells were moved."""
    plan = kept_plan(checkpoint)
    if plan is None:
        return []
    return sorted({*plan.read, *FilesRead(plan.folder(checkpoint), checkpoint).committed()[1]})


def write_plan(checkpoint: str, plan: Plan) -> None:
    """Keep a plan; from here on it holds."""
    folder = local_path(checkpoint)
    if folder is None:
        return
    fresh = folder / f"{PLAN}.new"
    fresh.write_text(json.dumps(asdict(plan)))
    fresh.replace(folder / PLAN)


def planned(spark: SparkSession, checkpoint: str, kept: Plan | None, cells: int, slices: int | None) -> Plan:
    """The plan of a job: the kept one, or, where it is to have another number of slices, one with the cells moved.

    Parameters
    ----------
    spark : SparkSession
    checkpoint : str
    kept : Plan or None
    cells : int
        Of the work.
    slices : int or None
        As asked for.

    Raises
    ------
    RestoreError
        If the work has another number of cells than the checkpoint.
    """
    if kept is None:
        plan = Plan(spread(cells, min(cells, slices or cells)))
        write_plan(checkpoint, plan)
        return plan
    if kept.cells != cells:
        raise RestoreError(
            f"the checkpoint {checkpoint} was made with {kept.cells} cells of state, and the job has {cells} now\n"
            "hint: begin with a new checkpoint and a new output"
        )
    places = kept.places if slices is None or slices == kept.slices else spread(cells, min(cells, slices))
    return kept if places == kept.places else moved(spark, checkpoint, kept, places)


def moved(
    spark: SparkSession,
    checkpoint: str,
    kept: Plan,
    places: Sequence[int],
    cut: Callable[[Sequence[bytes | None]], Recut | None] | None = None,
) -> Plan:
    """Cells as the last micro-batch left them, in other slices; or, where `cut` gives them, others in their place."""
    old = kept.folder(checkpoint)
    check_parts(Path(old))
    last, read = FilesRead(old, checkpoint).committed()
    plan = replace(
        kept,
        places=tuple(places),
        generation=kept.generation + 1,
        first=kept.first + last + 1,
        read=tuple(sorted({*kept.read, *read})),
    )
    folder = Path(plan.initial(checkpoint) or "")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(plan.folder(checkpoint), ignore_errors=True)
    folder.mkdir(parents=True)
    before = kept.initial(checkpoint)
    for each in [] if before is None else sorted(Path(before).iterdir()):
        shutil.copyfile(each, folder / each.name)  # of cells that have met no event since the last time
    if last >= 0:
        rows = _states(spark, old, last).toLocalIterator()
        for cell, parts in groupby(rows, itemgetter("cell")):
            Path(folder, str(cell)).write_bytes(whole([bytes(each["saved"]) for each in parts]))
    fresh = None if cut is None else cut([loaded(str(folder), cell) for cell in range(kept.cells)])
    if fresh is not None:
        for cell, state in enumerate(fresh.states):
            Path(folder, str(cell)).write_bytes(state)
        even = spread(kept.cells, kept.slices)
        plan = replace(plan, places=balanced(fresh.loads, even), shares=fresh.shares)
    write_plan(checkpoint, plan)
    for name in _SPARKS if not kept.generation else ():
        place = Path(old, name)
        if place.is_dir():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)
    if kept.generation:
        shutil.rmtree(old, ignore_errors=True)
        shutil.rmtree(kept.initial(checkpoint) or "", ignore_errors=True)
    return plan


def largest_share(loads: Mapping[int, int], places: Sequence[int]) -> float:
    """The load of the slice that has most, over the mean."""
    found = [0] * (max(places) + 1)
    for cell, load in loads.items():
        found[places[cell]] += load
    return Balance(tuple(found), sum(found)).max_over_mean


def balanced(loads: Mapping[int, int], places: Sequence[int]) -> tuple[int, ...]:
    """The slices of cells by their loads: the heaviest first, each to the slice that has least.

    Cells stay where they are if that is not better by a tenth.
    """
    slices, found = max(places) + 1, list(places)
    sums, counts = [0] * slices, [0] * slices
    for cell in sorted(range(len(places)), key=lambda each: (-loads.get(each, 0), each)):
        slice = min(range(slices), key=lambda each: (sums[each], counts[each]))
        found[cell] = slice
        sums[slice] += loads.get(cell, 0)
        counts[slice] += 1
    before, after = largest_share(loads, places), largest_share(loads, found)
    return tuple(found) if max(found) + 1 == slices and after < 0.9 * before else tuple(places)


def _states(spark: SparkSession, checkpoint: str, batch: int) -> DataFrame:
    """The cells in Spark's store after a micro-batch, the parts of each one after the other."""
    reader = spark.read.format("statestore").option("stateVarName", STATE).option("batchId", batch)
    found = reader.load(checkpoint).selectExpr("user_map_key.*", "user_map_value.saved AS saved")
    return found.orderBy("cell", "part")


def loaded(initial: str | None, cell: int) -> bytes | None:
    """The state with which a cell begins, where the job was scaled."""
    if initial is None:
        return None
    try:
        return Path(initial, str(cell)).read_bytes()
    except FileNotFoundError:
        return None
