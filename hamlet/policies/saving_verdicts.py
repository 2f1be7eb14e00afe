"""What monitors of verdicts keep, for `hamlet.policies.saving`: states of automata, streams of keys, what waits.

States are told by their structure, since their numbers depend on the order in which they were met; steps are made anew.
All integers of streams stand in a few long arrays, for there may be a stream for each of many keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hamlet.checkpoint.columns import BlobReader, BlobWriter, Json, fields, items, whole
from hamlet.policies.operators.node import NEVER
from hamlet.policies.relations.relation import Ints
from hamlet.policies.verdicts._anchored import AnchoredStream
from hamlet.policies.verdicts.atoms import EvaluatedAtom

if TYPE_CHECKING:
    from hamlet.policies.verdicts.automata import VerdictRunner, Verdicts

_UNDECIDED = 2


def described_verdicts(runner: VerdictRunner, blobs: BlobWriter) -> Json:
    """What the verdicts of all policies keep."""
    return [_described(each, blobs) for each in runner.verdicts]


def load_verdicts(runner: VerdictRunner, description: Json, seen: int | None, blobs: BlobReader) -> None:
    """Let verdicts that are new be those that were told of; the largest time that was seen is that of the monitor.

    Raises
    ------
    ValueError
        If they cannot be.
    """
    for verdicts, about in zip(runner.verdicts, items(description, len(runner.verdicts)), strict=True):
        _load(verdicts, about, seen, blobs)
    runner.points = runner.verdicts[0].waiting.points


def _described(verdicts: Verdicts, blobs: BlobWriter) -> Json:
    keys = list(verdicts.streams)
    streams = [*verdicts.defaults.values(), *(stream for stream, _ in verdicts.streams.values())]
    history = [[_joined(rows, place) for place in range(3)] for rows in verdicts.history.values()]
    anchored = [each for each in streams if isinstance(each, AnchoredStream)]
    return {
        "points": verdicts.waiting.points,
        "keys": blobs.keys(keys, len(verdicts.key)),
        "streams": _anchored(anchored, blobs) if anchored else _automata(verdicts, streams, blobs),
        "history": [[_put(blobs, column) for column in each] for each in history],
        "waiting": _waiting(verdicts, blobs),
        "evaluated": [_evaluated(atom, blobs) for atom in verdicts.atoms if isinstance(atom, EvaluatedAtom)],
    }


def _anchored(streams: Sequence[AnchoredStream], blobs: BlobWriter) -> Json:
    """What the streams of a formula keep whose futures do not nest."""
    told = [stream.saved() for stream in streams]
    pasts = [past for _, parts, _ in told for past in parts]
    return {
        "numbers": _put(blobs, [numbers for numbers, _, _ in told]),
        "pasts": _put_parts(blobs, pasts),
        "entries": _put_parts(blobs, [entries for _, _, entries in told]),
    }


def _automata(verdicts: Verdicts, streams: Sequence[Any], blobs: BlobWriter) -> Json:
    """What the streams of an automaton keep, and their states."""
    told = [stream.saved() for stream in streams]
    states = sorted({numbers[0] for numbers, *_ in told})
    places = {state: place for place, state in enumerate(states)}
    return {
        "states": verdicts.progression.described(states),
        "numbers": _put(blobs, [[places[each[0]], *each[1:]] for each, *_ in told]),
        "slots": _put_parts(blobs, [slots for _, slots, _, _ in told]),
        "stretches": _put_parts(blobs, [stretches for _, _, stretches, _ in told]),
        "open": [_put_parts(blobs, [parts[place] for *_, parts in told]) for place in range(3)],
    }


def _evaluated(atom: EvaluatedAtom, blobs: BlobWriter) -> Json:
    from hamlet.policies.saving import described_evaluation

    return described_evaluation(atom.evaluation, blobs)


def _waiting(verdicts: Verdicts, blobs: BlobWriter) -> Json:
    waiting = verdicts.waiting
    times = _put(blobs, _concatenated(waiting.times))
    hits = [
        [[_put(blobs, points), [blobs.array(column) for column in columns]] for points, columns in parts]
        for parts in waiting.hits
    ]
    return {"times": times, "hits": hits}


def _joined(rows: Sequence[Any], place: int) -> Ints:
    return _concatenated([each[place].astype(np.int64) for each in rows])


def _concatenated(parts: Sequence[Any]) -> Ints:
    return np.concatenate([np.zeros(0, np.int64), *(np.asarray(part, np.int64) for part in parts)])


def _put(blobs: BlobWriter, values: Any) -> Json:
    return blobs.array(pa.array(np.ascontiguousarray(np.asarray(values, np.int64).ravel())))


def _put_parts(blobs: BlobWriter, parts: Sequence[npt.NDArray[Any]]) -> Json:
    """The rows of some arrays, and how many each has."""
    return [_put(blobs, [len(part) for part in parts]), _put(blobs, _concatenated([part.ravel() for part in parts]))]


# ------------------------------------------------------------------------------------------------- reading


def _load(verdicts: Verdicts, description: Json, seen: int | None, blobs: BlobReader) -> None:
    points, keys, about, history, waiting, evaluated = fields(
        description, "points", "keys", "streams", "history", "waiting", "evaluated"
    )
    found, types = blobs.keys(keys, len(verdicts.key))
    _check_types(verdicts, types)
    new = [verdicts.machine.stream() for _ in found]
    streams = [*verdicts.defaults.values(), *new]
    anchored = [each for each in streams if isinstance(each, AnchoredStream)]
    done, time = (
        _load_anchored(verdicts, anchored, about, blobs)
        if anchored
        else _load_automata(verdicts, streams, about, blobs)
    )
    verdicts.points = done
    for key, stream in zip(found, new, strict=True):
        verdicts.adopt(key, stream)
    _load_history(verdicts, history, blobs)
    _load_waiting(verdicts, waiting, whole(points), done, blobs)
    if done and (seen is None or time > seen):
        raise ValueError("a stream is ahead of the events")
    if done and verdicts.waiting.times and int(verdicts.waiting.times[0][0]) < time:
        raise ValueError("a stream is ahead of the time-points that wait")
    _load_evaluated(verdicts, evaluated, blobs)


def _load_anchored(
    verdicts: Verdicts, streams: Sequence[AnchoredStream], description: Json, blobs: BlobReader
) -> tuple[int, int]:
    """Load the streams of a formula whose futures do not nest; their time-points and time."""
    about_numbers, about_pasts, about_entries = fields(description, "numbers", "pasts", "entries")
    table = _ints(about_numbers, blobs)
    if len(table) % len(streams):
        raise ValueError("there are more streams, or fewer")
    told = table.reshape(len(streams), -1)
    kept = [node.kind in ("since", "prev") for node in verdicts.skeleton.nodes].count(True)
    pasts = _parts(about_pasts, blobs, 1, kept * len(streams))
    entries = _parts(about_entries, blobs, 3, len(streams))
    for place, stream in enumerate(streams):
        row = [int(each) for each in told[place]]
        own = [each.ravel() for each in pasts[kept * place : kept * (place + 1)]]
        _check_numbers(row, int(told[0, 3]))
        stream.load(row, own, np.ascontiguousarray(entries[place]))
    return _at_one_place(told[:, 1:4])


def _load_automata(verdicts: Verdicts, streams: Sequence[Any], description: Json, blobs: BlobReader) -> tuple[int, int]:
    """Load the streams of an automaton; their time-points and time."""
    states, numbers, slots, stretches, open_points = fields(
        description, "states", "numbers", "slots", "stretches", "open"
    )
    known = verdicts.progression.known(items(states, 3))
    table = _ints(numbers, blobs)
    if len(table) != 6 * len(streams):
        raise ValueError("there are more streams, or fewer")
    told = table.reshape(-1, 6)
    of_slots = _parts(slots, blobs, 2, len(streams))
    of_stretches = _parts(stretches, blobs, 3, len(streams))
    of_open = [_parts(each, blobs, 1, len(streams)) for each in items(open_points, 3)]
    for place, stream in enumerate(streams):
        row = [int(each) for each in told[place]]
        row[0] = known[whole(row[0], 0, len(known) - 1)]
        rows = [each[place].ravel() for each in of_open]
        _check_numbers(row[1:], int(told[0, 4]))
        _check_stream(verdicts, row, of_slots[place], of_stretches[place], rows)
        stream.load(row, of_slots[place], of_stretches[place], rows[0], rows[1], rows[2].astype(np.int8))
    return _at_one_place(told[:, 2:5])


def _at_one_place(told: npt.NDArray[np.int64]) -> tuple[int, int]:
    """Time-points and time of streams, given time, offset and time-points of each."""
    if (told != told[0]).any():
        raise ValueError("two streams are at different times")
    return int(told[0, 2]), int(told[0, 0])


def _check_numbers(row: Sequence[int], done: int) -> None:
    """Whether a stream is where the others are."""
    begun, time, offset, points = row[:4]
    if begun != (points > 0) or points != done or not 0 <= offset <= points or not -NEVER < time < NEVER:
        raise ValueError("a stream is at another time-point")


def _check_types(verdicts: Verdicts, types: Sequence[Sequence[pa.DataType]]) -> None:
    for name, found in zip(verdicts.key, types, strict=True):
        wanted = verdicts.types[name]
        for each in found:
            wide = pa.types.is_decimal(each) if pa.types.is_int64(wanted) else pa.types.is_large_string(each)
            if each != wanted and not (wide and (pa.types.is_int64(wanted) or pa.types.is_string(wanted))):
                raise ValueError("a key has another type")


def _check_stream(
    verdicts: Verdicts,
    row: Sequence[int],
    slots: npt.NDArray[np.int64],
    stretches: npt.NDArray[np.int64],
    rows: Sequence[Ints],
) -> None:
    """Whether a stream is one of the automaton, and its open time-points are those of its slots."""
    state, _, time, _, points, base = row
    if len(slots) and (slots[:, 0].max() > time or slots[:, 0].min() <= -NEVER):
        raise ValueError("a slot of a stream is to come")
    if len(slots) != verdicts.progression.slots(state):
        raise ValueError("a stream has another number of slots")
    times, _, values = rows
    if len({len(each) for each in rows}) > 1:
        raise ValueError("columns of open time-points have different lengths")
    if verdicts.mode != "all":
        if len(stretches) or len(times) or base:
            raise ValueError("a stream keeps time-points that have been given")
        return
    if base < 0 or base + len(times) != points or ((values < 0) | (values > _UNDECIDED)).any():
        raise ValueError("the open time-points of a stream do not fit")
    held = np.zeros(len(times), np.int64)
    last = -1
    for slot, first, count in stretches.tolist():
        if not last <= slot < len(slots) or first < base or count < 1 or first + count > points:
            raise ValueError("a stretch of time-points does not fit")
        held[first - base : first - base + count] += 1
        last = slot
    if ((values == _UNDECIDED) != (held == 1)).any() or (held > 1).any():
        raise ValueError("the open time-points of a stream are not those of its slots")
    if len(times) and (times.min() <= -NEVER or times.max() > time or (np.diff(times) < 0).any()):
        raise ValueError("a time-stamp is out of bounds")


def _load_history(verdicts: Verdicts, description: Json, blobs: BlobReader) -> None:
    for bits, about in zip(verdicts.history, items(description, len(verdicts.history)), strict=True):
        times, offsets, values = (_ints(each, blobs) for each in items(about, 3))
        if len({len(times), len(offsets), len(values)}) > 1 or ((values < 0) | (values > 1)).any():
            raise ValueError("the rows from before the keys do not fit")
        if len(times):
            verdicts.history[bits].append((times, offsets, values.astype(np.int8), None, None))


def _load_waiting(verdicts: Verdicts, description: Json, points: int, first: int, blobs: BlobReader) -> None:
    about_times, about_hits = fields(description, "times", "hits")
    waiting = verdicts.waiting
    times = _ints(about_times, blobs)
    if first + len(times) != points or (np.diff(times) < 0).any() or (np.abs(times) >= NEVER).any():
        raise ValueError("the time-points that wait do not fit")
    waiting.points, waiting.first = points, first
    waiting.times = [times] if len(times) else []
    for parts, known in zip(items(about_hits, len(waiting.hits)), waiting.hits, strict=True):
        for part in items(parts):
            about, columns = items(part, 2)
            places = _ints(about, blobs)
            arrays = [blobs.array(each) for each in items(columns, len(verdicts.key))]
            if any(len(each) != len(places) or each.null_count for each in arrays) or not len(places):
                raise ValueError("a place where an atom is true has no key")
            if (np.diff(places) < 0).any() or int(places[0]) < first or int(places[-1]) >= points:
                raise ValueError("a place where an atom is true does not wait")
            _check_types(verdicts, [[each.type] for each in arrays])
            known.append((places, arrays))


def _load_evaluated(verdicts: Verdicts, description: Json, blobs: BlobReader) -> None:
    from hamlet.policies.saving import load_evaluation

    atoms = [atom for atom in verdicts.atoms if isinstance(atom, EvaluatedAtom)]
    for atom, about in zip(atoms, items(description, len(atoms)), strict=True):
        load_evaluation(atom.evaluation, about, blobs)
        if atom.evaluation.points != verdicts.waiting.points or atom.decided < verdicts.waiting.first:
            raise ValueError("an atom is at another time-point")


def _ints(about: Json, blobs: BlobReader) -> Ints:
    from hamlet.policies.saving import ints_of

    return ints_of(about, blobs)


def _parts(description: Json, blobs: BlobReader, width: int, count: int) -> list[npt.NDArray[np.int64]]:
    """Some arrays of shape (rows, width)."""
    about, values = items(description, 2)
    lengths, flat = _ints(about, blobs), _ints(values, blobs)
    if len(lengths) != count or (lengths < 0).any() or int(lengths.sum()) * width != len(flat):
        raise ValueError("the parts of an array do not fit")
    return np.split(flat.reshape(-1, width), np.cumsum(lengths)[:-1])
