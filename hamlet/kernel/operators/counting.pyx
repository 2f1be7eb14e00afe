"""COUNT(*) of `A+`, exactly: of n events one after the other there are 2^n - 1 trends, so only n is kept per cohort.

This is the smallest operator there is, and the one to copy (CONTRIBUTING.md). It has a query where no band has it:
where its count is beyond 64 bits, or ``simd`` is left out. What it keeps does not grow with the stream.

A state that it has *packed* has one word per cohort, n. Events of one time cannot follow each other, and then the
count is no power of two: the state is promoted to ``scalar``, and packed again when such windows have closed.

Source: HAMLET (SIGMOD'21) Eq. 2.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy, memset

from hamlet.kernel.cells cimport limbs_bits, words_of
from hamlet.kernel.checkpoint cimport put_windows, put_word
from hamlet.kernel.core cimport SCALAR, Core, Graphlet
from hamlet.kernel.operator cimport Bytes, Operator, Run, Segment, in_block, number_of, operators
from hamlet.kernel.operators.scalar.bursts cimport list_member
from hamlet.kernel.operators.scalar.state cimport State, cell_of, cohort_at, widen
from hamlet.kernel.operators.scalar.step cimport concerning
from hamlet.kernel.plan cimport COUNT, FROM_CELL, FROM_START, NO_FAILURE, OUT_OF_MEMORY, Query
from hamlet.kernel.rows cimport new_row
from hamlet.kernel.scratch cimport reserve_words
from hamlet.kernel.windows cimport leave_state, open_state, turn_pane

NAME = "counting"
WHAT = "one query by itself that counts the trends of `A+` exactly: the number of events says how many there are"

cdef int NUMBER = number_of(NAME)
cdef uint64_t ONES = ~(<uint64_t> 0)


def serves(tables):
    """Whether a query is COUNT(*) of one type under a Kleene plus, exact, with nothing negated or compared.

    Parameters
    ----------
    tables : hamlet.planner.tables.QueryTables

    Returns
    -------
    bool
    """
    if tables.is_merged or tables.outputs or tables.stores or tables.simple or tables.predicates or not tables.exact:
        return False
    if [kind for kind, *_ in tables.components] != [COUNT] or (tables.fixed, tables.wide) != (0, 1):
        return False
    if len(tables.cell_guards) != 1 or len(tables.arrivals) != 1:
        return False
    (_, first, end, *_) = tables.arrivals[0]
    extended = sorted((kind, place, guards) for kind, place, guards, *_ in tables.sources[first:end])
    finals = [(kind, place, guards) for kind, place, guards, *_ in tables.sources[slice(*tables.finals)]]
    return extended == sorted([(FROM_START, 0, -1), (FROM_CELL, 0, -1)]) and finals == [(FROM_CELL, 0, -1)]


# ------------------------------------------------------------------------------------------------ the interface

cdef int consume(Core* k, int query, Segment* segment) noexcept nogil:
    """A burst for some queries, or events of one time for one."""
    cdef Segment own
    cdef int i, failure
    if segment.graphlet == NULL:
        return count(k, query, segment)
    own = segment[0]
    own.members = 1
    for i in range(segment.members):
        own.member = segment.member + i
        failure = count(k, segment.graphlet.member[own.member[0]].query, &own)
        if failure:
            return failure
    return NO_FAILURE


cdef int count(Core* k, int query, Segment* segment) noexcept nogil:
    """A burst, or events of one time, for one query."""
    cdef const Query* q = &k.query[query]
    cdef const Run* run = segment.run
    cdef State* s = k.state[segment.key * k.queries + query]
    cdef int64_t events = run.events
    cdef int cohort, failure
    cdef int64_t _
    if segment.graphlet == NULL:
        if segment.entry == NULL:
            events = concerning(k, query, run.rows, run.events)
            if events == 0:
                return NO_FAILURE
        failure = reach(k, query, segment.key, segment.time, &s)
        if failure or s == NULL:
            return failure
        if events > 1:
            failure = promote(k, query, segment.key)
            return failure if failure else operators[SCALAR].consume(k, query, segment)
    if not pack(q, s):
        return operators[SCALAR].consume(k, query, segment)
    k.work[NUMBER].events += events
    k.work[NUMBER].bursts += segment.graphlet != NULL
    k.applied += segment.graphlet != NULL
    cohort = cohort_at(s, s.first)
    s.bits = <int64_t> s.cell[cohort] + events  # of the first one, which has seen most
    for _ in range(s.first, s.last + 1):
        s.cell[cohort] += events
        cohort = cohort + 1 if cohort + 1 < s.cohorts else 0
    return NO_FAILURE


cdef int find(Core* k, int _, Graphlet* g, int first, int end) noexcept nogil:
    """A trend may begin with every event: a query is concerned where a window is open."""
    cdef State* s
    cdef int place, failure
    for place in range(first, end):
        if k.role_events[g.member[place].role] == 0 or in_block(k, g, &g.member[place]):
            continue
        failure = reach(k, g.member[place].query, g.key, g.time, &s)
        if failure:
            return failure
        if s != NULL:
            list_member(k, g, place)
    return NO_FAILURE


cdef int deliver(Core* k, int query, State* s, int64_t key, int64_t window) noexcept nogil:
    """The row of the lowest open window."""
    cdef const Query* q = &k.query[query]
    cdef int64_t n = <int64_t> s.cell[cohort_at(s, s.first)]
    cdef int width = <int> (n // 64) + 1
    cdef uint64_t* row
    if n == 0:
        return NO_FAILURE
    row = new_row(k, &k.rows[query], key, window, width, words_of(q, width))
    if row == NULL:
        return OUT_OF_MEMORY
    write_count(row, n)
    k.most_bits = max(k.most_bits, n)
    return NO_FAILURE


cdef int promote(Core* k, int query, int64_t key) noexcept nogil:
    """Let a state hold sums again, for ``scalar``. Returns a Failure."""
    cdef const Query* q = &k.query[query]
    cdef State* s = k.state[key * k.queries + query]
    cdef int64_t most = 0, number
    if not s.packed:
        return NO_FAILURE
    if reserve_words(k, s.cohorts):
        return OUT_OF_MEMORY
    for number in range(s.first, s.last + 1):
        most = max(most, <int64_t> s.cell[cohort_at(s, number)])
    memcpy(k.scratch, s.cell, s.cohorts * sizeof(uint64_t))
    memset(s.cell, 0, s.cohorts * sizeof(uint64_t))
    if widen(q, s, most):
        return OUT_OF_MEMORY
    s.packed = SCALAR
    s.bits = most
    for number in range(s.first, s.last + 1):
        write_count(cell_of(q, s, cohort_at(s, number), 0), <int64_t> k.scratch[cohort_at(s, number)])
    return NO_FAILURE


cdef void checkpoint(Core* k, int query, int64_t key, Bytes* to) noexcept nogil:
    """A packed state as ``scalar`` would have written it, so that a kernel without this operator can go on."""
    cdef const State* s = k.state[key * k.queries + query]
    cdef int64_t number, n, word, width = s.bits // 64 + 1
    put_windows(s, to)
    put_word(to, s.bits)
    put_word(to, width)
    for number in range(s.first, s.last + 1):
        put_word(to, 1)  # one cohort with these words
        n = <int64_t> s.cell[cohort_at(s, number)]
        for word in range(width):
            put_word(to, <int64_t> limb_of(n, word))


cdef Py_ssize_t held(const Core* k, int query, Py_ssize_t key) noexcept nogil:
    cdef const State* s = k.state[key * k.queries + query]
    return 0 if s == NULL else s.bytes


operators[NUMBER] = Operator(
    consume=consume, find=find, close=leave_state, deliver=deliver, promote=promote, checkpoint=checkpoint, bytes=held
)


# ------------------------------------------------------------------------------------------------ its parts

cdef int reach(Core* k, int query, int64_t key, int64_t time, State** found) noexcept nogil:
    """The state of a key with the windows of a time open; a null pointer where no window is. Returns a Failure."""
    cdef State* s = k.state[key * k.queries + query]
    cdef int failure
    found[0] = NULL
    if s == NULL:
        failure = open_state(k, query, key, time, &s)
        if failure or s == NULL:
            return failure
    if time >= s.border:
        failure = turn_pane(k, query, s, key, time)
        if failure:
            return failure
    if s.first <= s.last:
        found[0] = s
    return NO_FAILURE


cdef bint pack(const Query* q, State* s) noexcept nogil:
    """Let a state hold numbers of events; False where its counts are no 2^n - 1."""
    cdef int cohort, words = words_of(q, s.width)
    cdef int64_t number
    if s.packed:
        return True
    for number in range(s.first, s.last + 1):
        if events_of(cell_of(q, s, cohort_at(s, number), 0), s.width) < 0:
            return False
    for cohort in range(s.cohorts):  # a word is read before it is written; those that are not open hold anything
        s.cell[cohort] = <uint64_t> events_of(s.cell + <Py_ssize_t> cohort * words, s.width)
    s.width = 1
    s.packed = NUMBER
    return True


cdef int64_t events_of(const uint64_t* count, int width) noexcept nogil:
    """The n of a count that is 2^n - 1, else -1."""
    cdef int64_t n = limbs_bits(count, width), i
    for i in range(width):
        if count[i] != limb_of(n, i):
            return -1
    return n


cdef inline uint64_t limb_of(int64_t n, int64_t place) noexcept nogil:
    """A limb of 2^n - 1."""
    n -= 64 * place
    return ONES if n >= 64 else (<uint64_t> 1 << n) - 1 if n > 0 else 0


cdef void write_count(uint64_t* to, int64_t n) noexcept nogil:
    """Write 2^n - 1 where zeros are, or what is not to be kept."""
    memset(to, 0xFF, n // 64 * sizeof(uint64_t))
    to[n // 64] = limb_of(n, n // 64)
