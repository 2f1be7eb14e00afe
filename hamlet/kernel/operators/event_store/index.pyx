"""Ordered sums: what an adjacent comparison with the neighbour adds up, in O(log n) instead of a scan.

The nodes of a store are kept in *runs* of consecutive arrival and falling size, as a binary counter keeps its digits:
a new run swallows older ones that are not much larger, so there are O(log n) of them and a node is moved O(log n)
times. Within a run the nodes are sorted by their keys, and each has the sum of all up to it whose other keys are equal;
a read is one binary search and one addition per run. The last few nodes are not sorted at all.

Contract
--------
**Keys** are 64-bit integers in the order of the values they stand for (doubles are mapped, > is turned into <). A node
or an event with a NULL key matches nothing. **Guards**: runs are of consecutive arrival, so what a guard kills is the
oldest runs and a part of one more, which is made anew. **Derived**: an index can be forgotten at any time; the next
read makes it from the store.

Source: Bentley and Saxe 1980 (decomposable searching problems).
"""

from libc.stdint cimport INT64_MIN, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memset

from hamlet.kernel.cells cimport add_cell, words_of
from hamlet.kernel.expression cimport Column, evaluate_value
from hamlet.kernel.plan cimport NO_FAILURE, OUT_OF_MEMORY, OVERFLOW, IndexTable, KeyProgram, Query
from hamlet.kernel.state.query_state cimport (
    RECENT,
    Index,
    Run,
    State,
    Store,
    claim,
    killed_before,
    cohort_at,
    release,
)
from hamlet.memory.budget cimport ALLOCATION

cdef extern from *:
    """
    #include <stdint.h>
    /* How many of count >= 1 ascending keys are at most `most`. A comparison goes either way, so nothing is predicted:
     * each step is an addition, and both places that may come next are fetched meanwhile. */
    static inline Py_ssize_t keys_upto(const int64_t* key, Py_ssize_t count, int64_t most) {
        const int64_t* low = key;
        while (count > 1) {
            Py_ssize_t half = count / 2;
            count -= half;
            __builtin_prefetch(low + count / 2 - 1);
            __builtin_prefetch(low + half + count / 2 - 1);
            low += low[half - 1] <= most ? half : 0;
        }
        return low - key + (*low <= most);
    }
    """
    Py_ssize_t keys_upto(const int64_t* key, Py_ssize_t count, int64_t most) noexcept nogil

cdef enum:
    MOST_COLUMNS = 64


cdef inline int64_t sortable(int64_t bits) noexcept nogil:
    """The bits of a double as an integer of the same order; -0.0 and 0.0 are one."""
    cdef double value = (<double*> &bits)[0] + 0.0
    bits = (<int64_t*> &value)[0]
    return bits ^ (<int64_t> (<uint64_t> (bits >> 63) >> 1))


cdef int find_keys(
    const Query* q, const IndexTable* table, int first, const Column* columns, Py_ssize_t row, const int64_t* ranks,
    int64_t* keys, int* place,
) noexcept nogil:
    """The keys of one event by key programs first, first + 1, ...: 1 where all are there, 0, or -1 on overflow."""
    cdef const KeyProgram* program
    cdef Column chosen[MOST_COLUMNS]
    cdef uint8_t there
    cdef int i, j, failed
    for i in range(table.keys):
        program = &q.key[first + i]
        for j in range(program.count):
            chosen[j] = columns[q.member[program.columns + j]]
        failed = evaluate_value(&program.code, chosen, row, ranks, program.floating, &keys[i], &there)
        if failed >= 0:
            place[0] = failed
            return -1
        if not there:
            return 0
        if program.floating:
            keys[i] = sortable(keys[i])
        if table.reversed and i == table.keys - 1:
            keys[i] = ~keys[i]
    return 1


cdef inline int compare(const int64_t* a, const int64_t* b, int keys) noexcept nogil:
    cdef int i
    for i in range(keys):
        if a[i] != b[i]:
            return -1 if a[i] < b[i] else 1
    return 0


cdef inline bint below(const IndexTable* table, const int64_t* node, const int64_t* keys) noexcept nogil:
    """Whether a node stands before the place of the keys in a run."""
    cdef int order = compare(node, keys, table.keys)
    return order < 0 or (order == 0 and (table.inclusive or not table.ordered))


cdef inline Py_ssize_t place_in(const IndexTable* table, const Run* run, const int64_t* keys) noexcept nogil:
    """How many nodes of a run stand before the place of the keys."""
    cdef Py_ssize_t low = 0, count = run.count, half
    cdef int64_t most = keys[0]
    if table.keys == 1 and count:
        if table.ordered and not table.inclusive:
            if most == INT64_MIN:
                return 0
            most -= 1
        return keys_upto(run.key, count, most)
    while count > 0:
        half = count // 2
        if below(table, run.key + (low + half) * table.keys, keys):
            low += half + 1
            count -= half + 1
        else:
            count = half
    return low


cdef inline bint same_group(const IndexTable* table, const int64_t* a, const int64_t* b) noexcept nogil:
    return compare(a, b, table.keys - table.ordered) == 0


cdef void free_run(const Query* q, State* s, Run* run) noexcept nogil:
    release(q, s, run.bytes)
    free(run.number)
    free(run.key)
    free(run.sum)


cdef int new_run(const Query* q, State* s, const IndexTable* table, Py_ssize_t count, Run* run) noexcept nogil:
    run.count = 0
    run.bytes = count * (1 + table.keys + s.cohorts * words_of(q, s.width)) * sizeof(uint64_t) + 3 * ALLOCATION
    if not claim(q, s, run.bytes):
        return OUT_OF_MEMORY
    run.number = <int64_t*> malloc((count + 1) * sizeof(int64_t))
    run.key = <int64_t*> malloc((count * table.keys + 1) * sizeof(int64_t))
    run.sum = <uint64_t*> malloc((count * s.cohorts * words_of(q, s.width) + 1) * sizeof(uint64_t))
    if run.number == NULL or run.key == NULL or run.sum == NULL:
        free_run(q, s, run)
        return OUT_OF_MEMORY
    return NO_FAILURE


cdef inline const uint64_t* value_of(const Query* q, const State* s, const Store* store, int64_t number) noexcept nogil:
    """The cohorts of a node, or a null pointer where it has left the store."""
    cdef int64_t place = number - store.base
    if place < store.head:
        return NULL
    return store.value + place * s.cohorts * words_of(q, s.width)


cdef void append_entry(
    const Query* q, const State* s, const IndexTable* table, Run* run, int64_t number, const int64_t* keys
) noexcept nogil:
    """Append a node, in order, with the sum up to it. Nodes that have left the store are left out."""
    cdef const Store* store = &s.store[table.store]
    cdef const uint64_t* value = value_of(q, s, store, number)
    cdef Py_ssize_t at = run.count, words = words_of(q, s.width), block = s.cohorts * words
    cdef uint64_t* sum
    cdef int cohort
    cdef int64_t step
    if value == NULL:
        return
    sum = run.sum + at * block
    run.number[at] = number
    memcpy(run.key + at * table.keys, keys, table.keys * sizeof(int64_t))
    memcpy(sum, value, block * sizeof(uint64_t))
    if at and same_group(table, run.key + (at - 1) * table.keys, keys):
        for cohort in range(s.cohorts):
            add_cell(q, s.width, sum + cohort * words, sum - block + cohort * words)
    step = store.step[number - store.base]
    run.first_step = step if at == 0 else min(run.first_step, step)
    run.last_step = step if at == 0 else max(run.last_step, step)
    run.count += 1


cdef int merge_runs(
    const Query* q, State* s, const IndexTable* table, const Run* a, const Run* b, int64_t alive, Run* merged
) noexcept nogil:
    """One run of two, without nodes that arrived before step `alive`."""
    cdef const Store* store = &s.store[table.store]
    cdef Py_ssize_t i = 0, j = 0
    cdef const Run* run
    cdef Py_ssize_t at
    cdef int64_t place
    if new_run(q, s, table, a.count + b.count, merged):
        return OUT_OF_MEMORY
    while i < a.count or j < b.count:
        if j == b.count or (
            i < a.count and compare(a.key + i * table.keys, b.key + j * table.keys, table.keys) <= 0
        ):
            run = a
            at = i
            i += 1
        else:
            run = b
            at = j
            j += 1
        place = run.number[at] - store.base
        if place >= store.head and store.step[place] >= alive:
            append_entry(q, s, table, merged, run.number[at], run.key + at * table.keys)
    return NO_FAILURE


cdef int add_run(const Query* q, State* s, const IndexTable* table, Index* index, Run run) noexcept nogil:
    """Append a run and merge it with older ones of about its size."""
    cdef Run merged
    cdef Run* moved
    cdef int64_t alive = killed_before(q, s, table.guards)
    while index.runs and index.run[index.runs - 1].count <= 4 * run.count:
        if merge_runs(q, s, table, &index.run[index.runs - 1], &run, alive, &merged):
            free_run(q, s, &run)
            return OUT_OF_MEMORY
        free_run(q, s, &run)
        index.runs -= 1
        free_run(q, s, &index.run[index.runs])
        run = merged
    if run.count == 0:
        free_run(q, s, &run)
        return NO_FAILURE
    if index.runs == index.capacity:
        moved = NULL
        if claim(q, s, (index.capacity + 8) * sizeof(Run)):
            index.room += (index.capacity + 8) * sizeof(Run)
            moved = <Run*> realloc(index.run, (2 * index.capacity + 8) * sizeof(Run))
        if moved == NULL:
            free_run(q, s, &run)
            return OUT_OF_MEMORY
        index.run = moved
        index.capacity = 2 * index.capacity + 8
    index.run[index.runs] = run
    index.runs += 1
    return NO_FAILURE


cdef int sort_recent(const Query* q, State* s, const IndexTable* table, Index* index) noexcept nogil:
    """Turn the recent nodes into a run."""
    cdef int order[RECENT]
    cdef int i, j, moved
    cdef Run run
    if new_run(q, s, table, index.recent, &run):
        return OUT_OF_MEMORY
    for i in range(index.recent):
        order[i] = i
        j = i
        while j and compare(
            index.recent_key + order[j - 1] * table.keys, index.recent_key + order[j] * table.keys, table.keys
        ) > 0:
            moved = order[j]
            order[j] = order[j - 1]
            order[j - 1] = moved
            j -= 1
    for i in range(index.recent):
        append_entry(q, s, table, &run, index.recent_number[order[i]], index.recent_key + order[i] * table.keys)
    index.recent = 0
    return add_run(q, s, table, index, run)


cdef int catch_up(
    const Query* q, State* s, const IndexTable* table, Index* index, const int64_t* ranks, int* place
) noexcept nogil:
    """Take in the nodes that have become visible since the last read."""
    cdef Store* store = &s.store[table.store]
    cdef Column columns[MOST_COLUMNS]
    cdef int columns_kept = q.store[table.store].columns_end - q.store[table.store].columns, i, found
    cdef Py_ssize_t at
    cdef Py_ssize_t room = RECENT * (1 + table.keys) * sizeof(int64_t) + 3 * ALLOCATION
    if index.recent_key == NULL:
        if not claim(q, s, room):
            return OUT_OF_MEMORY
        index.room += room
        index.recent_number = <int64_t*> malloc(RECENT * sizeof(int64_t))
        index.recent_key = <int64_t*> malloc(RECENT * table.keys * sizeof(int64_t))
        if index.recent_number == NULL or index.recent_key == NULL:
            return OUT_OF_MEMORY
    for i in range(columns_kept):
        columns[i].data = store.data + i * store.capacity
        columns[i].valid = store.valid + i * store.capacity
    for at in range(max(store.head, index.next - store.base), store.count):
        if index.recent == RECENT and sort_recent(q, s, table, index):
            return OUT_OF_MEMORY
        found = find_keys(
            q, table, table.earlier, columns, at, ranks, index.recent_key + index.recent * table.keys, place
        )
        if found < 0:
            return OVERFLOW
        if found:
            index.recent_number[index.recent] = store.base + at
            index.recent += 1
    index.next = store.base + store.count
    return NO_FAILURE


cdef int drop_dead(const Query* q, State* s, const IndexTable* table, Index* index) noexcept nogil:
    """Let go of runs, and of the older part of one, that a guard has killed or that have left the store."""
    cdef const Store* store = &s.store[table.store]
    cdef int64_t alive = killed_before(q, s, table.guards)
    cdef int dead = 0
    cdef Run empty, fresh
    if store.head < store.count:
        alive = max(alive, store.step[store.head])
    while dead < index.runs and index.run[dead].last_step < alive:
        free_run(q, s, &index.run[dead])
        dead += 1
    if dead:
        index.runs -= dead
        memcpy_runs(index.run, index.run + dead, index.runs)
    if index.runs and index.run[0].first_step < killed_before(q, s, table.guards):
        empty.count = 0
        if merge_runs(q, s, table, &index.run[0], &empty, alive, &fresh):
            return OUT_OF_MEMORY
        free_run(q, s, &index.run[0])
        index.run[0] = fresh
    return NO_FAILURE


cdef void memcpy_runs(Run* target, const Run* source, int count) noexcept nogil:
    cdef int i
    for i in range(count):
        target[i] = source[i]


cdef void add_cohorts(const Query* q, const State* s, uint64_t* sum, const uint64_t* value) noexcept nogil:
    """Add the open cohorts of one block to another's."""
    cdef int cohort = cohort_at(s, s.first), words = words_of(q, s.width)
    cdef int64_t _
    for _ in range(s.first, s.last + 1):
        add_cell(q, s.width, sum + cohort * words, value + cohort * words)
        cohort = cohort + 1 if cohort + 1 < s.cohorts else 0


cdef int read_index(
    const Query* q, State* s, int number, const Column* columns, Py_ssize_t row, const int64_t* ranks,
    uint64_t* sum, int* place,
) noexcept nogil:
    """Add all nodes whose keys fit those of the event at `row`. Returns a Failure; on OVERFLOW `place` is set."""
    cdef const IndexTable* table = &q.index[number]
    cdef Index* index = &s.index[number]
    cdef const Store* store = &s.store[table.store]
    cdef Py_ssize_t block = <Py_ssize_t> s.cohorts * words_of(q, s.width), low
    cdef int64_t keys[MOST_COLUMNS]
    cdef int64_t alive
    cdef int i, found
    cdef const Run* run
    cdef const uint64_t* value
    found = catch_up(q, s, table, index, ranks, place)
    if found:
        return found
    found = find_keys(q, table, table.later, columns, row, ranks, keys, place)
    if found <= 0:
        return OVERFLOW if found < 0 else NO_FAILURE
    if drop_dead(q, s, table, index):
        return OUT_OF_MEMORY
    alive = killed_before(q, s, table.guards)
    for i in range(index.recent):
        value = value_of(q, s, store, index.recent_number[i])
        if (
            value != NULL
            and store.step[index.recent_number[i] - store.base] >= alive
            and same_group(table, index.recent_key + i * table.keys, keys)
            and below(table, index.recent_key + i * table.keys, keys)
        ):
            add_cohorts(q, s, sum, value)
    for i in range(index.runs):
        run = &index.run[i]
        low = place_in(table, run, keys)
        if low and same_group(table, run.key + (low - 1) * table.keys, keys):
            add_cohorts(q, s, sum, run.sum + (low - 1) * block)
    return NO_FAILURE


cdef void forget_cohort(const Query* q, State* s, int cohort) noexcept nogil:
    """Clear the cohort of a window that opens: what arrived before is not in it."""
    cdef int i, j, words = words_of(q, s.width)
    cdef Py_ssize_t at, block = <Py_ssize_t> s.cohorts * words
    for i in range(q.indexes):
        for j in range(s.index[i].runs):
            for at in range(s.index[i].run[j].count):
                memset(s.index[i].run[j].sum + at * block + cohort * words, 0, words * sizeof(uint64_t))
