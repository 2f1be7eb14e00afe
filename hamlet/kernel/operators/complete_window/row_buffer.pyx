"""RowBuffer windows: what came of whole windows, until there are some hundred of them and their rows are written.

A window of few events has a row or none for each of many queries. Written one after the other, each would look up its
query, its columns and the place behind all rows before. So the results of windows are held as the vectors of live lanes
have left them, and then rows are written query by query, and column by column.

A query has a row in a window where the number of its trends is not 0. Without vectors to look for them, the windows of
each query are listed beforehand, from the lanes that every window has. With them, all windows are looked through: where
no lane of a window is the query's, it is told to look at the zeros with which the results of every window begin, and no
branch has to be taken for a window.
"""

from libc.stdint cimport int32_t, int64_t, uint16_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from hamlet.kernel.cells cimport Scaled, bit_length, scaled_normal
from hamlet.kernel.lanes.lanes cimport CAST_LEAST_DOUBLE, LIVE_PLANES, Word, aligned, lanes_value
from hamlet.kernel.lanes.lanes cimport LANES_WIDEST as WIDEST
from hamlet.kernel.plan cimport NO_FAILURE, OUT_OF_MEMORY
from hamlet.kernel.row_columns cimport RowColumn, RowColumns, begin_run, make_room
from hamlet.kernel.state.core cimport (
    MOST_HELD,
    ActivePlace,
    ActiveQueries,
    ActiveVector,
    Core,
    PlaneColumn,
    RowBuffer,
    take_own_spare,
)

cdef extern from "row_buffer.h" nogil:
    const int HELD_STEP
    const int HELD_TABLE
    int held_by_vectors()
    long held_find(
        const int64_t* word, const int32_t* key, const int32_t* place, const int32_t* set, long n, const int32_t* table,
        int sets, int32_t* found_key, int32_t* source, int32_t* source_set, int64_t* seen
    )
    void held_take(
        const int64_t* word, const int32_t* source, const int32_t* set, long n, const int32_t* table, int sets,
        int64_t* value
    )

cdef enum:
    WORDS = 1 << 16      # of results, by and large: they stay in the second cache


cdef bint make_held(Core* k) noexcept nogil:
    """Make room for windows; False where there is none."""
    # of one window there are at most so many: lanes, those that fill up a vector, and vectors that begin at a border
    cdef Py_ssize_t capacity = max(WORDS, (LIVE_PLANES + WIDEST) * (k.queries + 2 * WIDEST))
    cdef Py_ssize_t listed = (k.queries * (MOST_HELD * sizeof(uint16_t) + sizeof(int32_t))) // sizeof(Word) + 1
    cdef Py_ssize_t bytes = sizeof(RowBuffer) + (capacity + listed) * sizeof(Word)
    if not take_own_spare(k, bytes):
        return False
    k.whole.own += bytes
    k.whole.held = <RowBuffer*> calloc(1, sizeof(RowBuffer))
    if k.whole.held == NULL:
        return False
    k.whole.held.capacity = capacity
    k.whole.held.word = <Word*> aligned((capacity + listed + 1) * sizeof(Word))
    if k.whole.held.word == NULL:
        return False
    k.whole.held.found = <int32_t*> (k.whole.held.word + capacity)  # in the same piece of memory
    k.whole.held.listed = <uint16_t*> (k.whole.held.found + k.queries)
    return True


cdef void free_held(Core* k) noexcept nogil:
    if k.whole.held != NULL:
        free(k.whole.held.word)
    free(k.whole.held)


cdef Word* hold(Core* k, ActiveQueries* chosen, int64_t key, int64_t window) noexcept nogil:
    """Where the results of a window go, which comes behind those before; a null pointer where memory is short."""
    cdef RowBuffer* h = k.whole.held
    cdef Word* result
    if (h.windows == MOST_HELD or h.words + chosen.words > h.capacity) and write_held(k):
        return NULL
    if chosen.held == 0:
        h.chosen[h.sets] = chosen
        h.sets += 1
        chosen.held = h.sets
    if h.runs == 0 or h.number[h.runs - 1] != window:
        h.number[h.runs] = window
        h.first[h.runs] = h.windows
        h.runs += 1
    h.key[h.windows] = <int32_t> key
    h.place[h.windows] = <int32_t> h.words
    h.set[h.windows] = chosen.held - 1
    h.windows += 1
    result = h.word + h.words
    h.words += chosen.words
    memset(result, 0, WIDEST * sizeof(Word))
    return result


cdef int write_held(Core* k) noexcept nogil:
    """Write the rows of all windows that are held. Returns a Failure."""
    cdef RowBuffer* h = k.whole.held
    cdef int query, set_, failure = NO_FAILURE
    cdef bint listed = not held_by_vectors()
    if h.windows == 0:
        return NO_FAILURE
    h.first[h.runs] = h.windows
    if listed:
        list_windows(k, h)
    for query in range(k.queries):
        if k.row_columns[query].columns and failure == NO_FAILURE:
            failure = write_rows(k, h, query, listed)
    for set_ in range(h.sets):
        h.chosen[set_].held = 0
    h.windows = h.sets = h.runs = 0
    h.words = 0
    return failure


cdef void list_windows(const Core* k, RowBuffer* h) noexcept nogil:
    """List the windows in which each query has trends; of each window only the lanes that it has are looked at."""
    cdef int32_t* found = h.found
    cdef uint16_t* listed = h.listed
    cdef const ActiveQueries* chosen
    cdef const ActiveVector* chunk
    cdef const Word* word
    cdef int window, number, lane, query
    memset(found, 0, k.queries * sizeof(int32_t))
    for window in range(h.windows):
        chosen = h.chosen[h.set[window]]
        for number in range(chosen.chunks):
            chunk = &chosen.chunk[number]
            word = h.word + h.place[window] + chunk.place
            for lane in range(chunk.lanes):
                query = chunk.query[lane]
                listed[<Py_ssize_t> query * MOST_HELD + found[query]] = <uint16_t> window
                found[query] += word[lane].i != 0  # without a branch: they come in any order


cdef int write_rows(Core* k, RowBuffer* h, int query, bint listed) noexcept nogil:
    """The rows of one query; `listed`: whether `list_windows` has been here. Returns a Failure."""
    cdef RowColumns* s = &k.row_columns[query]
    cdef int32_t count[MOST_HELD]  # by set: where the number of trends stands
    cdef int32_t some = 0
    cdef int64_t counts = 0        # all of them, bit by bit
    cdef Py_ssize_t first = s.count
    cdef int i, run, window, found, rows = 0
    memset(count, 0, HELD_TABLE * sizeof(int32_t))
    for i in range(h.sets):
        count[i] = h.chosen[i].place[query].count
        some |= count[i]
    if some == 0:
        return NO_FAILURE
    if make_room(s, h.windows + HELD_STEP):
        return OUT_OF_MEMORY
    if listed:
        take_listed(h, query, count, s.key + first, &counts)
    for run in range(h.runs):
        window = h.first[run]
        if listed:
            found = rows
            while rows < h.found[query] and h.listed[<Py_ssize_t> query * MOST_HELD + rows] < h.first[run + 1]:
                rows += 1
            found = rows - found
        else:
            found = held_find(
                &h.word[0].i, h.key + window, h.place + window, h.set + window, h.first[run + 1] - window, count,
                h.sets, s.key + s.count, h.source + (s.count - first), h.source_set + (s.count - first), &counts,
            )
        if found:
            if begin_run(s, h.number[run]):
                return OUT_OF_MEMORY
            s.count += found
    if k.band[0].exact:
        k.most_bits = max(k.most_bits, bit_length(counts))
    for i in range(s.columns):
        write_column(h, query, &k.plane_columns[query][i], &s.column[i], first, s.count - first)
    return NO_FAILURE


cdef void take_listed(
    RowBuffer* h, int query, const int32_t* count, int32_t* key, int64_t* seen
) noexcept nogil:
    """What `held_find` has of windows, of those that are listed."""
    cdef const uint16_t* listed = h.listed + <Py_ssize_t> query * MOST_HELD
    cdef int row, i
    for row in range(h.found[query]):
        i = listed[row]
        key[row] = h.key[i]
        h.source_set[row] = h.set[i]
        h.source[row] = h.place[i] + count[h.set[i]]
        seen[0] |= h.word[h.source[row]].i


cdef void write_column(
    RowBuffer* h, int query, const PlaneColumn* from_, RowColumn* column, Py_ssize_t first, Py_ssize_t rows
) noexcept nogil:
    """One column of the rows that `held_find` has found."""
    cdef int32_t plane[MOST_HELD]  # by set: how far from the number of trends
    cdef const ActivePlace* place
    cdef const ActiveVector* chunk
    cdef int64_t* number = &h.taken[0] if column.value == NULL or from_.doubles else column.value + first
    cdef Py_ssize_t row
    cdef int i
    memset(plane, 0, HELD_TABLE * sizeof(int32_t))
    for i in range(h.sets):
        place = &h.chosen[i].place[query]
        chunk = &h.chosen[i].chunk[place.chunk]
        plane[i] = (chunk.before[from_.form] + from_.ordinal) * chunk.machine.width if place.count else 0
    held_take(&h.word[0].i, h.source, h.source_set, rows, plane, h.sets, number)
    if column.there != NULL:
        for row in range(rows):
            column.there[first + row] = number[row] != 0
    if column.value != NULL and from_.doubles:
        for row in range(rows):
            write_double(from_, column, first + row, number[row])
    elif from_.flip and column.value != NULL:
        for row in range(rows):
            number[row] ^= from_.flip


cdef inline void write_double(
    const PlaneColumn* from_, RowColumn* column, Py_ssize_t row, int64_t value
) noexcept nogil:
    """A sum of doubles, or the rank of one, as a number of a row."""
    cdef Scaled number
    if column.exponent == NULL:
        column.value[row] = lanes_value(value, True, from_.how == CAST_LEAST_DOUBLE)
        return
    number = scaled_normal((<double*> &value)[0], 0)
    (<double*> column.value)[row] = number.m
    column.exponent[row] = number.e
