"""Verdicts that have come and are not yet taken, where time-points that come out the same may say so."""

from libc.stdint cimport int8_t, int64_t
from libc.stdlib cimport free
from libc.string cimport memcpy

from hamlet.memory.arrays cimport grown

cdef enum:
    SAME = 2          # like an earlier time-point
    KEPT_ROWS = 64    # a stream without rows keeps room for so many

cdef struct VerdictRow:
    int64_t time
    int64_t offset         # the place of the time-point among those of its time
    int64_t same_time      # of SAME the earlier time-point, else 0
    int64_t same_offset
    int8_t verdict         # 0, 1 or SAME

cdef struct VerdictRows:
    VerdictRow* row
    int64_t count
    int64_t room


cdef inline int reserve_rows(VerdictRows* rows, int64_t wanted) except -1:
    """Room for so many rows in all."""
    cdef int64_t room = max(wanted, rows.room + rows.room // 2, <int64_t> KEPT_ROWS)
    if wanted > rows.room:
        rows.row = <VerdictRow*> grown(rows.row, room * sizeof(VerdictRow))
        rows.room = room
    return 0


cdef inline int give_row(VerdictRows* rows, int64_t time, int64_t offset, int8_t verdict, int64_t same_time,
                         int64_t same_offset) except -1:
    """One more row."""
    if rows.count == rows.room:
        reserve_rows(rows, rows.count + 1)
    rows.row[rows.count] = VerdictRow(time, offset, same_time, same_offset, verdict)
    rows.count += 1
    return 0


cdef inline int copy_rows(VerdictRows* to, const VerdictRows* rows) except -1:
    """Have the same rows."""
    if rows.count:
        reserve_rows(to, rows.count)
        memcpy(to.row, rows.row, rows.count * sizeof(VerdictRow))
    to.count = rows.count
    return 0


cdef inline tuple take_rows(VerdictRows* rows):
    """Give all rows as columns: times, offsets, verdicts, times and offsets of the time-points that they are like."""
    import numpy as np
    found = tuple([np.empty(rows.count, kind) for kind in (np.int64, np.int64, np.int8, np.int64, np.int64)])
    cdef int64_t[::1] times, offsets, same_times, same_offsets
    cdef int8_t[::1] verdicts
    cdef int64_t i
    times, offsets, verdicts, same_times, same_offsets = found
    for i in range(rows.count):
        times[i], offsets[i], verdicts[i] = rows.row[i].time, rows.row[i].offset, rows.row[i].verdict
        same_times[i], same_offsets[i] = rows.row[i].same_time, rows.row[i].same_offset
    rows.count = 0
    if rows.room > KEPT_ROWS:
        free(rows.row)
        rows.row, rows.room = NULL, 0
    return found
