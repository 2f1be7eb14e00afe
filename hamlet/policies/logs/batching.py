"""Chunks of time-points put together into batches of a good size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from hamlet.arrays import np, pa
from hamlet.input.buffers import in_arrow
from hamlet.policies.logs.reader import LogChunk
from hamlet.policies.plan.evaluation import Evaluation

_MOST_EVENTS = 1 << 15  # of a batch, where little is kept; else in proportion to what is


def gathered(chunks: Iterable[LogChunk], evaluation: Evaluation) -> Iterator[LogChunk]:
    """Time-points in larger batches, the larger the more is kept, so that what is kept costs little per event."""
    waiting: list[LogChunk] = []
    size = 0
    for chunk in chunks:
        waiting.append(chunk)
        size += len(chunk.times) + sum(len(points) for points, _ in chunk.relations.values())
        if size >= max(_MOST_EVENTS, 2 * evaluation.kept_rows):
            yield _joined(waiting)
            waiting, size = [], 0
    if waiting:
        yield _joined(waiting)


def _joined(chunks: Sequence[LogChunk]) -> LogChunk:
    if len(chunks) == 1:
        return chunks[0]
    relations: dict[Any, Any] = {}
    offset = 0
    for chunk in chunks:
        for key, (points, fields) in chunk.relations.items():
            relations.setdefault(key, []).append((points + offset, fields))
        offset += len(chunk.times)
    joined = {
        key: (
            np.concatenate([points for points, _ in parts]),
            tuple(_chunked(columns) for columns in zip(*(fields for _, fields in parts), strict=True)),
        )
        for key, parts in relations.items()
    }
    times = np.concatenate([chunk.times for chunk in chunks])
    return LogChunk(chunks[0].first, times, joined, chunks[-1].offset)


def _chunked(columns: Sequence[Any]) -> Any:
    """Columns as one; of integers some may have come as digits, since one of them has more than 64 bits."""
    if all(isinstance(each, np.ndarray) for each in columns):
        return np.concatenate(columns)
    columns = [in_arrow(each) for each in columns]
    wide = next((each.type for each in columns if each.type != columns[0].type), None)
    if wide is not None:
        wide = wide if pa.types.is_integer(columns[0].type) else columns[0].type
        columns = [each.cast(wide) for each in columns]
    return pa.chunked_array(columns)
