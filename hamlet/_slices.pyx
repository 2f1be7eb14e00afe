"""A batch, cut into slices of one key and steps of one time."""

from libc.stdint cimport int64_t

from hamlet._blocks cimport step_band
from hamlet._decision cimport count_event
from hamlet._graphlet cimport end_bursts, join_burst
from hamlet._kernel cimport Core
from hamlet._lanes cimport LaneProgram
from hamlet._step cimport entry_of, step_query
from hamlet._tables cimport NO_FAILURE


cdef int step_events(Core* k, int64_t key, int64_t time, const int64_t* rows, int events) noexcept nogil:
    cdef int i, query, failure, kind = k.class_of[rows[0]]
    k.step += 1
    if k.past != NULL and (events > 1 or k.class_graphlet[kind] < 0):
        for i in range(events):
            count_event(k, key, k.class_of[rows[i]])
    if k.active and time >= k.border:
        failure = end_bursts(k, k.active)  # before an event of other queries closes windows of its block
        if failure:
            return failure
    if events == 1:
        if k.active & k.class_ends[kind]:
            failure = end_bursts(k, k.active & k.class_ends[kind])
            if failure:
                return failure
        if k.class_graphlet[kind] >= 0:
            failure = join_burst(k, &k.graphlet[k.class_graphlet[kind]], kind, key, time, rows[0])
            if failure:
                return failure
        if k.class_loose[kind]:
            for i in range(k.entry_first[kind], k.entry_first[kind + 1]):
                if k.entry[i].joins or k.band_of[k.entry[i].query] >= 0:
                    continue
                failure = step_query(k, k.entry[i].query, &k.entry[i], key, time, rows, 1)
                if failure:
                    return failure
        return step_bands(k, key, time, rows[0])
    if k.active:  # events of one time are no burst
        failure = end_bursts(k, k.active)
        if failure:
            return failure
    for query in range(k.queries):
        if k.band_of[query] < 0:
            failure = step_tied(k, query, key, time, rows, events)
            if failure:
                return failure
    return step_tied_bands(k, key, time, rows, events)


cdef int step_bands(Core* k, int64_t key, int64_t time, int64_t row) noexcept nogil:
    """One event, for the queries in bands that do not take it as part of a burst."""
    cdef int number, i, failure, kind = k.class_of[row]
    cdef const LaneProgram* program
    cdef bint done
    for number in range(k.bands):
        program = &k.band[number].program[kind]
        if program.groups == 0 and program.kills == 0:
            continue
        failure = step_band(k, number, key, time, &row, 1, &done)
        if failure:
            return failure
        if done:
            continue
        for i in range(k.entry_first[kind], k.entry_first[kind + 1]):
            if k.band_of[k.entry[i].query] == number and not k.entry[i].joins:
                failure = step_query(k, k.entry[i].query, &k.entry[i], key, time, &row, 1)
                if failure:
                    return failure
    return NO_FAILURE


cdef int step_tied(Core* k, int query, int64_t key, int64_t time, const int64_t* rows, int events) noexcept nogil:
    """Events of one time, for one query."""
    cdef int i
    for i in range(events):
        if entry_of(k, k.class_of[rows[i]], query) != NULL:
            return step_query(k, query, NULL, key, time, rows, events)
    return NO_FAILURE


cdef int step_tied_bands(Core* k, int64_t key, int64_t time, const int64_t* rows, int events) noexcept nogil:
    """Events of one time, for the queries in bands."""
    cdef int number, i, failure
    cdef const LaneProgram* program
    cdef bint done
    for number in range(k.bands):
        for i in range(events):
            program = &k.band[number].every[k.class_of[rows[i]]]
            if program.groups or program.kills:
                break
        else:
            continue
        failure = step_band(k, number, key, time, rows, events, &done)
        if failure:
            return failure
        if done:
            continue
        for i in range(k.band[number].queries):
            failure = step_tied(k, k.band[number].query[i], key, time, rows, events)
            if failure:
                return failure
    return NO_FAILURE


cdef int process_slices(
    Core* k, const int64_t* rows, Py_ssize_t n, const int64_t* keys, const int64_t* times, const int64_t* orders
) noexcept nogil:
    """Cut rows that are sorted by key and time into steps."""
    cdef Py_ssize_t i = 0, j
    cdef int64_t row, key, time, order
    cdef int failure
    while i < n:
        row = rows[i]
        key = keys[row]
        time = times[row]
        order = orders[row]
        j = i + 1
        while j < n and times[rows[j]] == time and keys[rows[j]] == key and orders[rows[j]] == order:
            j += 1
        failure = step_events(k, key, time, rows + i, <int> (j - i))
        if failure:
            return failure
        i = j
        if k.active and (i == n or keys[rows[i]] != key):
            failure = end_bursts(k, k.active)
            if failure:
                return failure
    return NO_FAILURE
