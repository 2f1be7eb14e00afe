"""Runs of bursts: many bursts of one query at once, where one of its states is under a Kleene plus.

Let y be that state, which an event reads along with x (and perhaps the start) and adds to. Kept is not S[y] but
T = S[y] + S[x] + start, all that a burst extends: m events turn T into 2^m T and, with V the summed attribute of T's
trends and s the sum of the burst's values, V into 2^m V + 2^(m-1) s T. So bursts of y only add up m and s, whatever
others come between that neither read y nor add to x; the limbs are shifted once for all of them. An event of another
type adds the same to S[x] and to T, and where it reads S[y] = T - S[x] - start, the difference, the product and both
sums are made limb by limb, without a vector between.

The limbs of a run are in scratch; the state becomes as wide as its end needs, and no wider.

Source: HAMLET (SIGMOD'21) §3.2, Defs. 3.6-3.11.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc
from libc.string cimport memcpy, memset

from hamlet.kernel.cells cimport bit_length, limbs_bits, limbs_increment, limbs_nonzero, place_in_cell
from hamlet.kernel.plan cimport (
    FROM_CELL,
    FROM_STORE,
    NO_FAILURE,
    OUT_OF_MEMORY,
    PRESENT,
    SUM_INT,
    Arrival,
    Component,
    Query,
    Source,
)
from hamlet.kernel.state.core cimport (
    GIVES_EVENTS,
    GIVES_FLAG,
    GIVES_PRESENT,
    GIVES_TOTAL,
    MOST_NUMBERS,
    MOST_PENDING,
    Chain,
    Contribution,
    Core,
    Form,
    Pending,
    Step,
)
from hamlet.kernel.state.query_state cimport State, cell_of, cohort_at, start_alive, widen
from hamlet.kernel.state.scratch cimport reserve_words

cdef extern from "bignum_bursts.h" nogil:
    void limbs_add_small(uint64_t* a, int n, int64_t x)
    void limbs_sum(uint64_t* sum, const uint64_t* a, const uint64_t* b, int n)

cdef extern from "bignum_runs.h" nogil:
    void limbs_double_plus(uint64_t* u, int n, const uint64_t* t, int m, int64_t x)
    void limbs_shifted(uint64_t* to, int n, const uint64_t* a, int m, uint64_t sign, int64_t shift)
    void limbs_lift(uint64_t* z, uint64_t* also, const uint64_t* t, const uint64_t* a, int n, int64_t x, int c)
    void limbs_fill(uint64_t* a, int start, int stop, bint ones)
    void limbs_add_at(uint64_t* a, int n, int64_t x, int64_t shift)
    void limbs_add_product_at(uint64_t* a, int n, int64_t x, int64_t y, int64_t shift)
    void limbs_less(uint64_t* to, const uint64_t* t, const uint64_t* a, int n, int c)

cdef enum:
    MOST_CELLS = 16
    FREE_START = 63   # the bit of a start under no guard
    SUM_WORDS = 3     # limbs of a sum beyond those of its count, and one

cdef struct Term:        # trends that began while bursts of y wait
    const Step* step
    int64_t shift        # m before it
    int64_t value[MOST_NUMBERS]  # s before it

cdef struct Run:
    const Query* q
    const Chain* chain
    bint start           # whether y reads the start in this cohort
    uint64_t live        # as in `Pending`, of this cohort
    uint64_t flag[MOST_NUMBERS]  # bits of the cells in which each flag is set
    Py_ssize_t room      # limbs of a vector
    uint64_t* vector     # [cells][numbers][room], that of y in `whole`
    uint64_t* none       # [room] zeros
    uint64_t* whole[MOST_NUMBERS]  # T, and the sums of its trends; without what waits
    uint64_t* spare[MOST_NUMBERS]
    int used[MOST_CELLS]  # limbs of a cell's count; of y: of T
    int64_t shift        # m of the bursts of y that wait
    int64_t value[MOST_NUMBERS]  # s of these
    int terms
    Term term[MOST_PENDING]
    int64_t most         # T, with what waits, is below 2^most


# ------------------------------------------------------------------------------------------------ which queries

cdef void find_chain(const Query* q, Chain* chain) except *:
    """Whether the bursts of a query can wait, and around which state they are run."""
    cdef int i
    chain.cell = chain.before = -1
    chain.fits = False
    if not q.exact or q.scaled or q.beginnings or q.cells > MOST_CELLS or not list_numbers(q, chain):
        return
    chain.form = <Form*> calloc(q.arrivals + 1, sizeof(Form))
    if chain.form == NULL:
        raise MemoryError
    for i in range(q.arrivals):
        if is_burst(q, &q.arrival[i]) and not add_form(q, &q.arrival[i], chain, &chain.form[i]):
            return
    for i in range(q.arrivals):
        if is_burst(q, &q.arrival[i]) and chain.form[i].target == chain.cell and not chain.form[i].loop:
            return
    chain.fits = chain.cell >= 0


cdef bint list_numbers(const Query* q, Chain* chain) noexcept:
    """The components that are limbs and those that are flags; False where there are others, or too many."""
    cdef const Component* c
    cdef int i
    for i in range(q.components):
        c = &q.component[i]
        if chain.numbers == MOST_NUMBERS or chain.flags == MOST_NUMBERS:
            return False
        if c.wide:
            chain.component[chain.numbers] = i
            chain.more[chain.numbers] = c.words
            chain.numbers += 1
        elif c.kind == PRESENT:
            chain.flag[chain.flags] = i
            chain.flags += 1
        else:
            return False
    return True


cdef bint is_burst(const Query* q, const Arrival* a) noexcept:
    """Whether events of an arrival may be a burst: none looks back at single events, and none is kept."""
    cdef int i
    for i in range(a.sources, a.sources_end):
        if q.source[i].kind == FROM_STORE:
            return False
    return a.stores == a.stores_end and a.cells < a.cells_end


cdef bint add_form(const Query* q, const Arrival* a, Chain* chain, Form* form) noexcept:
    """Take an arrival into a chain; False where it does not fit."""
    cdef const Source* source
    cdef const Component* c
    cdef int i, bit
    if a.cells_end != a.cells + 1:
        return False
    form.target, form.source = q.member[a.cells], -1
    form.writes = <uint64_t> 1 << form.target
    for i in range(a.sources, a.sources_end):
        source = &q.source[i]
        if source.kind != FROM_CELL:
            bit = FREE_START if source.guards < 0 else q.cells + source.guards
            if form.start or (source.guards >= 0 and bit >= FREE_START):
                return False
            form.start = <uint64_t> 1 << bit
            form.reads |= form.start
            chain.starts |= form.start
            continue
        form.reads |= <uint64_t> 1 << source.place
        if source.place == form.target:
            form.loop = True
        elif form.source >= 0:
            return False
        else:
            form.source = source.place
    for i in range(1, chain.numbers):
        c = &q.component[chain.component[i]]
        if c.variable == a.variable:
            add_contribution(
                form, GIVES_EVENTS if c.column < 0 else GIVES_TOTAL if c.kind == SUM_INT else GIVES_PRESENT, i, c.column
            )
    for i in range(chain.flags):
        c = &q.component[chain.flag[i]]
        if c.variable == a.variable:
            add_contribution(form, GIVES_FLAG, i, c.column)
    if form.loop:
        if chain.cell >= 0:
            return False
        chain.cell, chain.before, chain.start = form.target, form.source, form.start
    return True


cdef void add_contribution(Form* form, int what, int number, int column) noexcept:
    cdef Contribution* added = &form.contribution[form.contributions]
    added.what, added.number, added.column = what, number, column
    form.contributions += 1


cdef uint64_t starts_in(const Query* q, const Chain* chain, const State* s, int64_t number) noexcept nogil:
    """The bits of the starts that are alive in a cohort."""
    cdef uint64_t live = <uint64_t> 1 << FREE_START, left = (chain.starts & ~live) >> q.cells
    cdef int guards = 0
    while left:
        if left & 1 and start_alive(q, s, guards, number):
            live |= <uint64_t> 1 << (q.cells + guards)
        left >>= 1
        guards += 1
    return live


# ------------------------------------------------------------------------------------------------ vectors

cdef inline uint64_t* vector_of(const Run* r, int cell, int number) noexcept nogil:
    if cell == r.chain.cell:
        return r.whole[number]
    return r.vector + (cell * r.chain.numbers + number) * r.room


cdef inline int64_t bits_of(const Run* r, int cell) noexcept nogil:
    return limbs_bits(vector_of(r, cell, 0), r.used[cell])


cdef inline bint is_negative(const uint64_t* a, int n) noexcept nogil:
    return <int64_t> a[n - 1] < 0


cdef inline void extend(Run* r, int cell, int limbs) noexcept nogil:
    """Use at least so many limbs of a cell's count."""
    cdef int i, words
    cdef uint64_t* a
    if limbs <= r.used[cell]:
        return
    limbs_fill(vector_of(r, cell, 0), r.used[cell], limbs, False)
    for i in range(1, r.chain.numbers):
        words = r.chain.more[i]
        a = vector_of(r, cell, i)
        limbs_fill(a, r.used[cell] + words, limbs + words, is_negative(a, r.used[cell] + words))
    r.used[cell] = limbs


cdef inline void trim(Run* r, int cell) noexcept nogil:
    """Use no limbs of a cell's count that are zero."""
    cdef const uint64_t* a = vector_of(r, cell, 0)
    while r.used[cell] and a[r.used[cell] - 1] == 0:
        r.used[cell] -= 1


cdef void shift_whole(Run* r) noexcept nogil:
    """Let what waits take effect on T."""
    cdef int n = r.used[r.chain.cell], limbs = <int> (r.most // 64) + 1, i, words
    cdef uint64_t* a
    if r.shift == 0 and r.terms == 0:
        return
    for i in range(1, r.chain.numbers):
        words = r.chain.more[i]
        a = r.whole[i]
        if n == 0:
            limbs_fill(r.spare[i], 0, limbs + words, False)
        else:
            if r.value[i]:
                limbs_double_plus(a, n + words, r.whole[0], n, r.value[i])
            limbs_shifted(
                r.spare[i], limbs + words, a, n + words, -<uint64_t> is_negative(a, n + words),
                r.shift - (r.value[i] != 0),
            )
        add_terms(r, i, limbs + words)
        r.whole[i], r.spare[i] = r.spare[i], a
    a = r.whole[0]
    if n == 0:
        limbs_fill(r.spare[0], 0, limbs, False)
    else:
        limbs_shifted(r.spare[0], limbs, a, n, 0, r.shift)
    for i in range(r.terms):
        limbs_add_at(r.spare[0], limbs, r.term[i].step.events, r.shift - r.term[i].shift)
    r.whole[0], r.spare[0] = r.spare[0], a
    r.used[r.chain.cell] = limbs
    trim(r, r.chain.cell)
    r.shift = 0
    r.terms = 0
    r.most = bits_of(r, r.chain.cell)
    for i in range(1, r.chain.numbers):
        r.value[i] = 0


cdef inline void add_terms(Run* r, int number, int words) noexcept nogil:
    """Add what trends that began while bursts of y wait make of a sum."""
    cdef const Term* term
    cdef int i
    for i in range(r.terms):
        term = &r.term[i]
        if term.step.value[number]:
            limbs_add_at(r.spare[number], words, term.step.value[number], r.shift - term.shift)
        if term.value[number] != r.value[number]:
            limbs_add_product_at(
                r.spare[number], words, term.step.events, r.value[number] - term.value[number],
                r.shift - term.shift - 1,
            )


# ------------------------------------------------------------------------------------------------ a run

cdef int apply_steps(Core* k, int query) noexcept nogil:
    """Let a state take in what waits for it. Returns a Failure."""
    cdef const Query* q = &k.query[query]
    cdef const Pending* p = &k.pending[query]
    cdef State* s = p.state
    cdef Run r
    cdef int64_t bits = max(s.bits, 1) + 2, number
    cdef int i, cohort = cohort_at(s, s.first)
    r.q = q
    r.chain = &k.chain[query]
    for i in range(p.steps):
        bits += p.step[i].events if p.step[i].form.loop else bit_length(p.step[i].events) + 2
    r.room = bits // 64 + 2 + SUM_WORDS
    if reserve_words(k, ((q.cells + 1) * r.chain.numbers + 1) * r.room):
        return OUT_OF_MEMORY
    r.vector = k.scratch
    r.none = k.scratch + (q.cells + 1) * r.chain.numbers * r.room
    memset(r.none, 0, r.room * sizeof(uint64_t))
    for number in range(s.first, s.last + 1):
        take_up(&r, s, number, cohort)
        for i in range(p.steps):
            if r.live & p.step[i].form.reads:
                if p.step[i].form.loop:
                    raise_whole(&r, &p.step[i])
                else:
                    add_step(&r, &p.step[i])
                set_flags(&r, &p.step[i])
        if put_down(&r, s, cohort):
            return OUT_OF_MEMORY
        cohort = cohort + 1 if cohort + 1 < s.cohorts else 0
    return NO_FAILURE


cdef inline void set_flags(Run* r, const Step* step) noexcept nogil:
    """The cell that a step adds to holds trends, and with a value if they or the step's events have one."""
    cdef int i
    r.live |= step.form.writes
    for i in range(r.chain.flags):
        if r.flag[i] & step.form.reads or step.flags >> i & 1:
            r.flag[i] |= step.form.writes


cdef inline void raise_whole(Run* r, const Step* step) noexcept nogil:
    """Bursts of y."""
    cdef int i
    r.shift += step.events
    r.most += step.events
    for i in range(1, r.chain.numbers):
        r.value[i] += step.value[i]


cdef void add_step(Run* r, const Step* step) noexcept nogil:
    """Bursts of another type."""
    cdef int source = step.form.source, target = step.form.target, cell = r.chain.cell, limbs, words, i
    cdef int starts = (r.live & step.form.start) != 0
    cdef int64_t bits
    cdef bint both = target == r.chain.before
    cdef int part = r.chain.before if source == cell else -1
    cdef uint64_t* t
    cdef uint64_t* less
    cdef uint64_t* also
    if source < 0 or not r.live >> source & 1:
        begin_trends(r, step, both)
        return
    if both or source == cell:
        shift_whole(r)
    bits = max(bits_of(r, source) + 1 + bit_length(step.events), bits_of(r, target))
    if both:
        bits = max(bits, r.most)
    limbs = <int> ((bits + 1) // 64 + 1)
    extend(r, source, limbs)
    extend(r, target, limbs)
    if both:
        extend(r, cell, limbs)
    if source == cell:
        starts -= r.start
        if part >= 0:
            extend(r, part, limbs)
    for i in range(1, r.chain.numbers):
        words = limbs + r.chain.more[i]
        also = r.whole[i] if both else NULL
        less = vector_of(r, part, i) if part >= 0 else r.none
        limbs_lift(vector_of(r, target, i), also, vector_of(r, source, i), less, words, step.events, 0)
        if step.value[i]:
            t = vector_of(r, source, 0)
            less = vector_of(r, part, 0) if part >= 0 else r.none
            limbs_fill(t, limbs, words, False)
            limbs_fill(less, limbs, words, False)
            limbs_lift(vector_of(r, target, i), also, t, less, words, step.value[i], starts)
    less = vector_of(r, part, 0) if part >= 0 else r.none
    limbs_lift(
        vector_of(r, target, 0), r.whole[0] if both else NULL, vector_of(r, source, 0), less, limbs,
        step.events, starts,
    )
    trim(r, source)
    trim(r, target)
    if both:
        trim(r, cell)
        r.most = bits_of(r, cell)
    if part >= 0:
        trim(r, part)


cdef inline void begin_trends(Run* r, const Step* step, bint both) noexcept nogil:
    """Let events that begin trends be added to a cell, and to T where it is read for y."""
    cdef int i, target = step.form.target, limbs = r.used[target]
    cdef uint64_t* a = vector_of(r, target, 0)
    cdef Term* term
    if limbs != 1 or a[0] >> 62:
        limbs = <int> ((max(bits_of(r, target), bit_length(step.events)) + 1) // 64) + 1
        extend(r, target, limbs)
    limbs_add_small(a, limbs, step.events)
    for i in range(1, r.chain.numbers):
        if step.value[i]:
            limbs_add_small(vector_of(r, target, i), limbs + r.chain.more[i], step.value[i])
    trim(r, target)
    if not both:
        return
    term = &r.term[r.terms]
    r.terms += 1
    term.step = step
    term.shift = r.shift
    for i in range(1, r.chain.numbers):
        term.value[i] = r.value[i]
    r.most = max(r.most, bit_length(step.events)) + 1


# ------------------------------------------------------------------------------------------------ state and run

cdef inline uint64_t* held(const Run* r, const State* s, int cohort, int cell, int component) noexcept nogil:
    cdef const Component* c = &r.q.component[component]
    return cell_of(r.q, s, cohort, cell) + place_in_cell(c, s.width)


cdef void take_up(Run* r, const State* s, int64_t number, int cohort) noexcept nogil:
    """Begin a run with what stands in a cohort."""
    cdef const Chain* chain = r.chain
    cdef int cell, i, words, limbs = min(s.width, <int> ((s.bits + 2) // 64) + 1) if s.bits else 0
    r.shift = 0
    r.terms = 0
    r.live = starts_in(r.q, chain, s, number)
    r.start = (r.live & chain.start) != 0
    for i in range(chain.numbers):
        r.whole[i] = r.vector + (chain.cell * chain.numbers + i) * r.room
        r.spare[i] = r.vector + (r.q.cells * chain.numbers + i) * r.room
        r.value[i] = 0
    for i in range(chain.flags):
        r.flag[i] = 0
    for cell in range(r.q.cells):
        r.used[cell] = limbs
        for i in range(chain.numbers):
            words = limbs + chain.more[i]
            if limbs == 0:
                limbs_fill(vector_of(r, cell, i), 0, words, False)
            elif cell == chain.cell and chain.before >= 0:
                limbs_sum(
                    r.whole[i], held(r, s, cohort, cell, chain.component[i]),
                    held(r, s, cohort, chain.before, chain.component[i]), words,
                )
            else:
                memcpy(vector_of(r, cell, i), held(r, s, cohort, cell, chain.component[i]), words * sizeof(uint64_t))
        if limbs and limbs_nonzero(held(r, s, cohort, cell, 0), limbs):
            r.live |= <uint64_t> 1 << cell
            for i in range(chain.flags):
                if held(r, s, cohort, cell, chain.flag[i])[0]:
                    r.flag[i] |= <uint64_t> 1 << cell
        if cell == chain.cell and r.start:
            extend(r, cell, 1)
            limbs_increment(r.whole[0], r.used[cell])
        trim(r, cell)
    r.most = bits_of(r, chain.cell)


cdef int put_down(Run* r, State* s, int cohort) noexcept nogil:
    """Write what has become of a cohort into its cells. Returns a Failure."""
    cdef const Chain* chain = r.chain
    cdef int cell, i, words
    cdef int64_t bits = s.bits
    cdef uint64_t* to
    cdef const uint64_t* a
    shift_whole(r)
    for cell in range(r.q.cells):
        bits = max(bits, bits_of(r, cell))
    if bits > 64 * s.width - 3 and widen(r.q, s, bits):
        return OUT_OF_MEMORY
    s.bits = bits
    if chain.before >= 0:
        extend(r, chain.before, r.used[chain.cell])
    for cell in range(r.q.cells):
        for i in range(chain.numbers):
            words = r.used[cell] + chain.more[i]
            to = held(r, s, cohort, cell, chain.component[i])
            a = vector_of(r, cell, i)
            if cell == chain.cell:
                limbs_less(
                    to, a, r.none if chain.before < 0 else vector_of(r, chain.before, i), words,
                    r.start if i == 0 else 0,
                )
            else:
                memcpy(to, a, words * sizeof(uint64_t))
            limbs_fill(to, words, s.width + chain.more[i], i > 0 and is_negative(to, words))
        for i in range(chain.flags):
            held(r, s, cohort, cell, chain.flag[i])[0] = r.flag[i] >> cell & 1
    return NO_FAILURE
