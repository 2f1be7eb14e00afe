"""The rows of a clause's table in the host, partition by partition in order, each with its number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hamlet.patterns.match.host import Host, quoted

ROW = '"__hamlet_row"'
PARTITION = '"__hamlet_partition"'
_INPUT = '"__hamlet_input"'


@dataclass
class Ordered:
    """A table in order.

    Attributes
    ----------
    host : Host
    table : str
        Its name in the host; beside the columns it has `ROW`, and `PARTITION` where there are several.
    columns : list of str
        Those of the source.
    keys : list of str
        The columns of the partition's expressions, as the host writes them.
    time : str or None
        The column of the first expression of ORDER BY.
    borders : int64 array of shape (partitions + 1,)
    """

    host: Host
    table: str
    columns: list[str]
    keys: list[str]
    time: str | None
    borders: npt.NDArray[np.int64]

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return int(self.borders[-1])

    @property
    def has_partitions(self) -> bool:
        """Whether there is a PARTITION BY."""
        return bool(self.keys)

    def shifted(self, value: str, step: int) -> str:
        """The host's expression for a value so many rows further on, NULL beyond the ends of the partition."""
        function = "lead" if step > 0 else "lag"
        if step == 0:
            return f"({value})"
        there = f"{function}(({value}), {abs(step)}) OVER ()"
        if not self.has_partitions:
            return there
        return f"(CASE WHEN {function}({PARTITION}, {abs(step)}) OVER () = {PARTITION} THEN {there} END)"

    def ends(self, duration: str) -> npt.NDArray[np.int64]:
        """By row, the first row of the partition whose time is more than a duration later; shape (rows,)."""
        partition = f"PARTITION BY {PARTITION} " if self.has_partitions else ""
        text = (
            f"SELECT CASE WHEN {self.time} IS NULL THEN {ROW} "
            f"ELSE 1 + max({ROW}) OVER ({partition}ORDER BY {self.time} "
            f"RANGE BETWEEN CURRENT ROW AND ({duration}) FOLLOWING) END AS e "
            f"FROM {self.table} ORDER BY {ROW}"
        )
        return np.ascontiguousarray(self.host.arrow(text).column("e").to_numpy(), np.int64)


def order_rows(
    host: Host,
    source: str,
    name: str,
    partition: Sequence[str],
    order: Sequence[tuple[str, bool, bool]],
) -> Ordered:
    """Sort a table by its partitions and its order; ties keep the order of the input.

    Parameters
    ----------
    host : Host
    source : str
        A query.
    name : str
        Of the new table.
    partition : sequence of str
        The host's expressions.
    order : sequence of (str, bool, bool)
        Expressions, whether each descends, and whether NULL comes first.
    """
    columns = [row[0] for row in host.execute(f"DESCRIBE {source}").fetchall()]
    keys = [f'"__hamlet_key_{place}"' for place in range(len(partition))]
    times = [f'"__hamlet_order_{place}"' for place in range(len(order))]
    added = [f"({text}) AS {key}" for text, key in zip(partition, keys, strict=True)]
    added += [f"({text}) AS {time}" for (text, _, _), time in zip(order, times, strict=True)]
    sorting = [f"{key} NULLS LAST" for key in keys]
    sorting += [
        f"{time} {'DESC' if descending else 'ASC'} NULLS {'FIRST' if nulls_first else 'LAST'}"
        for (_, descending, nulls_first), time in zip(order, times, strict=True)
    ]
    inner = f"SELECT *, row_number() OVER () AS {_INPUT} FROM ({source})"
    text = f"SELECT {', '.join(['*', *added])} FROM ({inner}) ORDER BY {', '.join([*sorting, _INPUT])}"
    kept = ", ".join([*map(quoted, columns), *keys, *times[:1]])
    if keys:
        new = " OR ".join(f"{key} IS DISTINCT FROM lag({key}) OVER ()" for key in keys)
        text = f'SELECT *, ({new}) AS "__hamlet_new" FROM ({text})'
        number = f'sum("__hamlet_new"::INTEGER) OVER (ROWS UNBOUNDED PRECEDING)::BIGINT AS {PARTITION}, '
    else:
        number = ""
    host.execute(
        f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT {number}row_number() OVER () - 1 AS {ROW}, {kept} FROM ({text})"
    )
    rows = host.execute(f"SELECT count(*) FROM {name}").fetchall()[0][0]
    borders = np.array([0, rows], np.int64)
    if keys and rows:
        firsts = host.arrow(f"SELECT min({ROW}) AS f FROM {name} GROUP BY {PARTITION}").column("f").to_numpy()
        borders = np.append(np.sort(firsts), rows).astype(np.int64)
    elif not rows:
        borders = np.zeros(1, np.int64)
    return Ordered(host, name, columns, keys, times[0] if times else None, borders)


def masks_of(ordered: Ordered, conditions: Mapping[str, str]) -> dict[str, npt.NDArray[np.uint8]]:
    """Which rows fulfil each condition, by name; NULL is false."""
    if not conditions:
        return {}
    names = list(conditions)
    listed = ", ".join(
        f"coalesce(CAST(({conditions[name]}) AS BOOLEAN), false)::UTINYINT AS c{place}"
        for place, name in enumerate(names)
    )
    found = ordered.host.arrow(f"SELECT {listed} FROM {ordered.table}")
    return {name: np.ascontiguousarray(found.column(place).to_numpy(), np.uint8) for place, name in enumerate(names)}
