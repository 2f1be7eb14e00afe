"""A data-collection campaign: what users of phones send is inserted into one database and copied on to others.

Columns: time (int64 seconds), type (string: insert, delete, select, update), user (string), db (string: db1, db2, db3),
p (string, the kind of data), data (string, a record). The schema is that of the campaign that MonPoly's papers monitor
(Basin, Harvan, Klaedtke, Zălinescu: RV 2011; again in Schneider et al., STTT 2021, §6.2), whose data were never
published; the stream is simulated. Phones insert into db1; a script copies each record to db2 within 30 hours, unless
it is deleted or its data are unknown; analysts read db3, a copy of db2; what is deleted in db2 is deleted in db3 within
a minute. Some of it goes wrong: copies that do not come, deletions that are late.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hamlet.errors import OptionError

HOUR, DAY = 3600, 86400
START = 1_277_942_400  # July 2010, seconds since 1970
_KINDS = ("gps", "wlan", "call", "media", "accel")
_TYPES = ("insert", "delete", "select", "update")
_DATABASES = ("db1", "db2", "db3")

Ints = npt.NDArray[np.int64]


def generate(events: int = 100_000, seed: int = 0, users: int = 180, days: float = 30, wrong: float = 0.01) -> pa.Table:
    """A simulated campaign.

    Parameters
    ----------
    events : int
        About so many; every record makes three or more.
    seed : int
        Equal seeds and options give equal streams.
    users : int
        Phones.
    days : float
        Length of the campaign.
    wrong : float
        Share of copies and deletions that go wrong, 0 to 1.

    Returns
    -------
    pyarrow.Table
        Columns as in the module's documentation, in the order of time.

    Raises
    ------
    OptionError
        At a number that makes no campaign.
    """
    if events < 4 or users < 1 or days <= 0 or not 0 <= wrong <= 1:
        raise OptionError("a campaign needs at least 4 events, a user, some time and a share from 0 to 1")
    random = np.random.default_rng(seed)
    records = max(1, round(events / 3.8))
    born = np.sort(random.integers(0, int(days * DAY), records)) + START
    known = random.random(records) >= 0.05  # data that the phone could not tell are "unknown"
    copied = known & (random.random(records) >= 0.02)
    late = random.random(records) < wrong
    at_db2 = born + np.where(late, 31 * HOUR, 0) + random.integers(60, 29 * HOUR, records)
    at_db3 = at_db2 + random.integers(1, 60, records)
    dropped = known & ~copied & (random.random(records) >= wrong)  # deleted in db1 in place of a copy
    removed = copied & (random.random(records) < 0.3)  # deleted in db2 later, and in db3 after that
    gone = at_db3 + random.integers(HOUR, 5 * DAY, records)
    followed = removed & (random.random(records) >= wrong)
    read = copied & (random.random(records) < 0.4)
    changed = copied & (random.random(records) < 0.05)
    owner = random.integers(0, users, records)
    parts = [
        _part(0, 0, born, owner, np.ones(records, np.bool_)),
        _part(0, 1, at_db2, np.full(records, users), copied),  # by the script that copies
        _part(0, 2, at_db3, np.full(records, users), copied),
        _part(1, 0, born + random.integers(60, 20 * HOUR, records), owner, dropped),
        _part(1, 1, gone, owner, removed),
        _part(1, 2, gone + random.integers(0, 60, records), np.full(records, users), followed),
        _part(2, 2, at_db3 + random.integers(60, 2 * DAY, records), np.full(records, users + 1), read),
        _part(3, 2, at_db3 + random.integers(60, 2 * DAY, records), np.full(records, users + 1), changed),
    ]
    type_codes, db_codes, times, owners, which = (np.concatenate(each) for each in zip(*parts, strict=True))
    order = np.lexsort((which, db_codes, type_codes, times))
    which = which[order]
    names = [f"u{number:03d}" for number in range(users)] + ["script", "analyst"]
    data = pc.binary_join_element_wise("r", pa.array(which).cast(pa.string()), "")
    data = pc.if_else(pa.array(known[which]), data, "unknown")
    kinds = random.integers(0, len(_KINDS), records)[which]
    return pa.table(
        {
            "time": pa.array(times[order]),
            "type": _named(type_codes[order], _TYPES),
            "user": _named(owners[order], names),
            "db": _named(db_codes[order], _DATABASES),
            "p": _named(kinds, _KINDS),
            "data": data,
        }
    )


def _part(kind: int, db: int, times: Ints, owners: Ints, chosen: npt.NDArray[np.bool_]) -> tuple[Ints, ...]:
    """Events of one type in one database: codes, times, users and records, each of shape (events,)."""
    which = np.nonzero(chosen)[0]
    return np.full(len(which), kind), np.full(len(which), db), times[which], owners[which], which


def _named(codes: Ints, names: tuple[str, ...] | list[str]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(list(names))).cast(pa.string())
