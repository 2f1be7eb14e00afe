"""Windows open, close and are delivered; a pane is the time between two such borders (HAMLET §3.1)."""

from libc.stdint cimport INT64_MIN, int64_t, uint64_t
from libc.string cimport memcpy, memset

from hamlet.kernel.cells cimport (
    add_cell,
    add_components,
    bit_length,
    first_kept,
    floor_divide,
    has_trends,
    limbs_bits,
    lowest_window,
    place_in_cell,
    trends_in,
    words_in_cell,
    words_of,
)
from hamlet.kernel.operators.event_store.index cimport forget_cohort
from hamlet.kernel.plan cimport FROM_CELL, NO_FAILURE, OUT_OF_MEMORY, Component, Output, Query, Source
from hamlet.kernel.sharing.deferred cimport settle
from hamlet.kernel.state.core cimport EVENT_STORE, SCALAR, Core
from hamlet.kernel.state.operator cimport operators
from hamlet.kernel.state.query_state cimport (
    State,
    Store,
    cell_of,
    clear_state,
    first_alive,
    forget_weights,
    free_state,
    killed_before,
    cohort_at,
    more_cohorts,
    new_state,
    widen,
)
from hamlet.kernel.state.rows cimport new_row
from hamlet.kernel.state.scratch cimport reserve_scratch
from hamlet.kernel.state.timer_heap cimport schedule


cdef int open_state(Core* k, int query, int64_t key, int64_t time, State** state) noexcept nogil:
    """A new state for a query and key; none where the time belongs to no open window."""
    cdef const Query* q = &k.query[query]
    state[0] = NULL
    if lowest(k, q, time) > floor_divide(time, q.slide):
        return NO_FAILURE
    state[0] = new_state(q)
    if state[0] == NULL:
        return OUT_OF_MEMORY
    k.state[key * k.queries + query] = state[0]
    k.states += 1
    return NO_FAILURE


cdef int turn_pane(Core* k, int query, State* s, int64_t key, int64_t time) noexcept nogil:
    """Close the windows that end at or before `time` and open those that hold it."""
    cdef const Query* q = &k.query[query]
    cdef int64_t low = lowest(k, q, time), high = floor_divide(time, q.slide)
    cdef int i
    if settle(k, query) or close_windows(k, query, s, key, low):
        return OUT_OF_MEMORY
    if s.last < s.first:
        clear_state(q, s)
        s.first, s.last, s.lowest = 0, -1, low
    if high >= low and (s.last < s.first or s.until[cohort_at(s, s.last)] < high):
        if open_cohort(q, s, high):
            return OUT_OF_MEMORY
    for i in range(q.stores if s.first <= s.last else 0):
        while s.store[i].head < s.store[i].count and (
            s.store[i].time[s.store[i].head] < s.until[cohort_at(s, s.first)] * q.slide
        ):
            s.store[i].head += 1
    s.border = min((high + 1) * q.slide, low * q.slide + q.within)
    if s.last >= s.first and not s.scheduled:
        return schedule(k, s, key * k.queries + query, s.lowest * q.slide + q.within)
    return NO_FAILURE


cdef int open_cohort(const Query* q, State* s, int64_t window) noexcept nogil:
    """Open all windows up to one; they are the last cohort. Returns a Failure."""
    cdef Py_ssize_t node, words = words_of(q, s.width)
    cdef int cohort, i
    if more_cohorts(q, s, s.last - s.first + 2):
        return OUT_OF_MEMORY
    s.last += 1
    cohort = cohort_at(s, s.last)
    s.until[cohort] = window
    memset(cell_of(q, s, cohort, 0), 0, q.cells * words * sizeof(uint64_t))
    for i in range(q.stores):
        if not q.store[i].starts:
            for node in range(s.store[i].head, s.store[i].count):
                memset(s.store[i].value + (node * s.cohorts + cohort) * words, 0, words * sizeof(uint64_t))
    forget_cohort(q, s, cohort)
    forget_weights(q, s, cohort)
    return NO_FAILURE


cdef int64_t lowest(Core* k, const Query* q, int64_t time) noexcept nogil:
    """The lowest window that holds `time` and is not closed: a late replay must not open what was delivered."""
    return lowest_window(max(time, k.advanced), q.within, q.slide)


cdef int close_windows(Core* k, int query, State* s, int64_t key, int64_t low) noexcept nogil:
    """Deliver and close all open windows below `low`."""
    while s.first <= s.last and s.lowest < low:
        if s.packed:
            if operators[s.packed].deliver(k, query, s, key, s.lowest):
                return OUT_OF_MEMORY
        elif deliver(k, query, s, key, s.lowest):
            return OUT_OF_MEMORY
        k.windows += 1
        k.work[s.packed if s.packed else EVENT_STORE if k.query[query].stores else SCALAR].windows += 1
        s.first += s.lowest == s.until[cohort_at(s, s.first)]
        s.lowest += 1
    return NO_FAILURE


cdef int leave_state(Core* k, int query, int64_t key, int64_t time) noexcept nogil:
    """Close the windows of a state that end at or before a time; what stays open is put on the calendar."""
    cdef const Query* q = &k.query[query]
    cdef int64_t slot = key * k.queries + query
    cdef State* s = k.state[slot]
    if close_windows(k, query, s, key, first_kept(time, q.within, q.slide)):
        return OUT_OF_MEMORY
    if s.last < s.first:
        free_state(q, s)
        k.state[slot] = NULL
        k.states -= 1
        return NO_FAILURE
    s.border = INT64_MIN  # the next event looks at the windows anew
    return NO_FAILURE if s.scheduled else schedule(k, s, slot, s.lowest * q.slide + q.within)


cdef int deliver(Core* k, int query, State* s, int64_t key, int64_t window) noexcept nogil:
    """Append the row of the lowest open window where it has a trend, or those of queries whose sums are kept here."""
    cdef const Query* q = &k.query[query]
    cdef Py_ssize_t nodes = q.most_sources
    cdef const Output* output
    cdef const int* chosen
    cdef const uint64_t* cell
    cdef int i
    for i in range(q.stores):
        if not q.store[i].starts:
            nodes += s.store[i].count - s.store[i].head
    if q.exact and s.bits + bit_length(nodes) > 64 * s.width - 3:
        if widen(q, s, s.bits + bit_length(nodes)):
            return OUT_OF_MEMORY
    if reserve_scratch(k, q, s):
        return OUT_OF_MEMORY
    if q.outputs == 0 and q.exact and q.finals + 1 == q.finals_end and q.source[q.finals].kind == FROM_CELL:
        cell = cell_of(q, s, cohort_at(s, s.first), q.source[q.finals].place)
        return append_sum(k, q, s.width, cell, query, NULL, key, window)
    if q.outputs == 0:
        sum_finals(q, s, q.finals, q.finals_end, NULL, q.components, k.scratch)
        return append_sum(k, q, s.width, k.scratch, query, NULL, key, window)
    for i in range(q.outputs):
        output = &q.output[i]
        chosen = &q.member[output.components]
        sum_finals(q, s, output.finals, output.finals_end, chosen, k.query[output.query].components, k.scratch)
        if append_sum(k, q, s.width, k.scratch, output.query, chosen, key, window):
            return OUT_OF_MEMORY
    return NO_FAILURE


cdef void sum_finals(
    const Query* q, const State* s, int finals, int finals_end, const int* chosen, int components, uint64_t* sum
) noexcept nogil:
    """Add up some finals of a state's first cohort: all components (a null pointer), or those that are chosen."""
    cdef const Source* source
    cdef const Store* store
    cdef Py_ssize_t node
    cdef int cohort = cohort_at(s, s.first), number, words = words_of(q, s.width)
    memset(sum, 0, words * sizeof(uint64_t))
    for number in range(finals, finals_end):
        source = &q.source[number]
        if source.kind == FROM_CELL:
            add_chosen(q, s.width, sum, cell_of(q, s, cohort, source.place), chosen, components)
        else:
            store = &s.store[source.place]
            for node in range(first_alive(store, killed_before(q, s, source.guards)), store.count):
                add_chosen(q, s.width, sum, store.value + (node * s.cohorts + cohort) * words, chosen, components)


cdef inline void add_chosen(
    const Query* q, int width, uint64_t* sum, const uint64_t* cell, const int* chosen, int components
) noexcept nogil:
    cdef int i
    if chosen == NULL:
        add_cell(q, width, sum, cell)
        return
    for i in range(components):
        add_components(q, width, sum, cell, chosen[i], chosen[i] + 1)


cdef int append_sum(
    Core* k, const Query* q, int width, const uint64_t* sum, int query, const int* chosen, int64_t key, int64_t window
) noexcept nogil:
    """Append a sum as a row of a query, no wider than its count needs, where there is a trend.

    The row has all components (a null pointer), or those that are chosen, in the layout of its query.
    """
    cdef const Query* own = &k.query[query]
    cdef const Component* c = &q.component[0 if chosen == NULL else chosen[0]]
    cdef const Component* to
    cdef const uint64_t* count = trends_in(q, c, width, sum)
    cdef uint64_t* row
    cdef int narrower = width, i
    cdef int64_t bits
    if not has_trends(q, width, count):
        return NO_FAILURE
    if q.exact:
        bits = limbs_bits(count, width)
        k.most_bits = max(k.most_bits, bits)
        narrower = <int> (bits // 64) + 1
    k.beginnings += chosen != NULL
    row = new_row(k, &k.rows[query], key, window, narrower, words_of(own, narrower))
    if row == NULL:
        return OUT_OF_MEMORY
    for i in range(own.components):
        c = &q.component[i if chosen == NULL else chosen[i]]
        to = &own.component[i]
        memcpy(
            row + place_in_cell(to, narrower), sum + place_in_cell(c, width),
            (words_in_cell(c, narrower)) * sizeof(uint64_t),
        )
    return NO_FAILURE
