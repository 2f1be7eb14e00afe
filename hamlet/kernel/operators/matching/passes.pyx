"""Passes over the events of a window, in either direction, that add up how many trends there are by what they took.

Every slot has a *vector*: a number of trends for each mark, or one number. Forwards it says how many stand in the slot;
backwards, what becomes of one that does. An event adds vectors along its ways, and changes marks: a first value is
given to trends without one, a last one to all, and a count goes up by one. Seen from the end on, first and last change
places. Vectors stand in *rows*: forwards one for what has begun and one for each slot that trends have stood in before;
backwards one for each slot that they may come to.

**Split** trends have vectors of one number. A trend is counted at its first (or last) event of the variable, by the
value there: one pass leaves that variable out and keeps what it finds at each of its events, which is one side of the
trends; the other pass finds the other side, and the two are multiplied.
"""

from libc.stdint cimport uint64_t
from libc.string cimport memcpy, memset

from hamlet.kernel.cell_products cimport limbs_add_times, limbs_used
from hamlet.kernel.cells cimport limbs_add, limbs_nonzero
from hamlet.kernel.operators.matching.room cimport reserve_words
from hamlet.kernel.operators.matching.tables cimport COUNT, Arrival, Core, Member, one_by_one
from hamlet.kernel.plan cimport NO_FAILURE, OUT_OF_MEMORY

cdef extern from *:
    int ctzll "__builtin_ctzll"(unsigned long long) noexcept nogil


cdef inline void add_number(const Tally* y, uint64_t* target, const uint64_t* source) noexcept nogil:
    if y.width == 1:
        target[0] += source[0]
    else:
        limbs_add(target, source, y.width)


cdef void add_marks(const Tally* y, uint64_t* target, const uint64_t* source, int marks) noexcept nogil:
    """Add numbers of trends, mark by mark."""
    cdef int mark
    if y.width == 1:
        for mark in range(marks):
            target[mark] += source[mark]
            one_by_one()
    else:
        for mark in range(marks):
            limbs_add(target + mark * y.width, source + mark * y.width, y.width)


cdef void add_times(const Tally* y, uint64_t* target, const uint64_t* one, const uint64_t* other) noexcept nogil:
    """Add the product of two numbers to a number."""
    if y.width == 1:
        target[0] += one[0] * other[0]
    else:
        limbs_add_times(
            target, y.width, one, limbs_used(one, y.width, 0), other, limbs_used(other, y.width, 0)
        )


cdef inline void meet(Tally* y, int mark) noexcept nogil:
    """At an event of the variable: keep what has been found of one side, or multiply it with the other one."""
    cdef uint64_t* kept = y.kept + y.meeting * y.width
    y.meeting += 1
    if y.keeps:
        memcpy(kept, y.number, y.width * sizeof(uint64_t))
    else:
        add_times(y, y.total + <Py_ssize_t> mark * y.width, kept, y.number)


# ---------------------------------------------------------------------------------------------------- forwards


cdef void follow(Tally* y, const Step* step, Py_ssize_t steps) noexcept nogil:
    """Add up the trends of all slots at the end of some events."""
    cdef Py_ssize_t at = 0
    cdef uint64_t entered = 0, emptied = 0
    while at < steps:
        if y.rows == 1 and not y.splits and take_alone(y, step + at, at + 1 == steps):
            at += 1
            continue
        at += read_step(y, step + at, steps - at, &entered, &emptied)
        write_step(y, entered, emptied)


cdef Py_ssize_t read_step(
    Tally* y, const Step* step, Py_ssize_t steps, uint64_t* entered, uint64_t* emptied
) noexcept nogil:
    """What the events of the first step add; how many they are."""
    cdef const Member* m = y.member
    cdef Py_ssize_t at = 0
    cdef uint64_t left
    cdef int state, row
    entered[0] = emptied[0] = 0
    while at < steps and step[at].step == step[0].step:
        use_mark(y, &step[at])
        y.meeting = step[at].place
        left = step[at].slots
        while left:
            state = m.slot_state[ctzll(left)]
            left &= ~m.state_slots[state]
            entered[0] |= m.state_slots[state]
            for row in range(y.rows):
                take_event(y, state, row, step[at].mark)
        emptied[0] |= step[at].emptied
        at += 1
    return at


cdef void write_step(Tally* y, uint64_t entered, uint64_t emptied) noexcept nogil:
    """Empty slots, then add what has been read."""
    cdef const Member* m = y.member
    cdef uint64_t left
    cdef int slot, state, row
    cdef Py_ssize_t across = m.slots * y.stride, beside = y.table.states * y.stride
    emptied &= ~y.starts
    while emptied:
        slot = ctzll(emptied)
        emptied &= emptied - 1
        for row in range(y.rows):
            memset(y.standing + row * across + slot * y.stride, 0, y.stride * sizeof(uint64_t))
    while entered:
        state = m.slot_state[ctzll(entered)]
        for row in range(y.rows):
            left = m.state_slots[state]
            while left:
                slot = ctzll(left)
                left &= left - 1
                add_marks(
                    y, y.standing + row * across + slot * y.stride, y.pending + row * beside + state * y.stride, y.depth
                )
            memset(y.pending + row * beside + state * y.stride, 0, y.stride * sizeof(uint64_t))
        entered &= ~m.state_slots[state]


cdef inline void use_mark(Tally* y, const Step* step) noexcept nogil:
    """Note the mark that trends may have behind an event."""
    if y.taking == NULL or not step.slots & y.named:
        return
    if y.taking.function == COUNT:
        y.used = min(y.used + 1, y.marks)
    else:
        y.used = max(y.used, step.mark + 1)


cdef inline bint take_alone(Tally* y, const Step* step, bint last) noexcept nogil:
    """Take the only event of its step, into one slot by one way or two, with numbers of one word; False for others.

    What is added is added where it is: what is written for a mark is not read again, since marks go down where they
    move up by one.
    """
    cdef const Member* m = y.member
    cdef const Arrival* a
    cdef uint64_t* target
    cdef const uint64_t* one
    cdef const uint64_t* two = y.nothing
    cdef uint64_t found = 0, slots
    cdef int each
    cdef bint named
    if y.width > 1 or step.state < 0 or step.emptied or (not last and step[1].step == step.step):
        return False
    a = &y.table.arrival[m.arrival[step.state]]
    slots = m.state_slots[step.state]
    if slots & (slots - 1) or not 1 <= a.ways_end - a.ways <= 2:
        return False
    use_mark(y, step)
    target = y.standing + ctzll(slots) * y.stride
    one = y.standing + m.way_slot[a.ways] * y.stride
    named = slots & y.named != 0
    if a.ways_end - a.ways == 2:
        two = y.standing + m.way_slot[a.ways + 1] * y.stride
    if named and y.taking.function == COUNT:
        for each in range(y.used - 1, 0, -1):
            target[each] += one[each - 1] + two[each - 1]
            one_by_one()
    elif named and y.overwrites:
        for each in range(y.used):
            found += one[each] + two[each]
            one_by_one()
        target[step.mark] += found
    else:
        found = one[NOTHING] + two[NOTHING]
        for each in range(NO_VALUE, y.used):
            target[each] += one[each] + two[each]
            one_by_one()
        target[step.mark if named else NOTHING] += found
    return True


cdef void take_event(Tally* y, int state, int row, int mark) noexcept nogil:
    """Extend what stands in the slots of a row by an event that is taken in a state."""
    cdef const Member* m = y.member
    cdef const Arrival* a = &y.table.arrival[m.arrival[state]]
    cdef uint64_t* target = y.pending + (row * y.table.states + state) * y.stride
    cdef const uint64_t* first = y.standing + row * m.slots * y.stride
    cdef bint named = m.state_slots[state] & y.named != 0
    cdef int way
    if named and y.splits:
        memset(y.number, 0, y.width * sizeof(uint64_t))
        for way in range(a.ways, a.ways_end):
            add_number(y, y.number, first + m.way_slot[way] * y.stride)
        meet(y, mark)
        if not y.keeps:
            add_number(y, target, y.number)
        return
    for way in range(a.ways, a.ways_end):
        add_marked(y, target, first + m.way_slot[way] * y.stride, named, mark)


cdef inline void add_marked(
    const Tally* y, uint64_t* target, const uint64_t* source, bint named, Py_ssize_t mark
) noexcept nogil:
    """Add a vector, with the marks that an event leaves."""
    cdef int each
    if not named:
        add_marks(y, target, source, y.depth)
    elif y.taking.function == COUNT:
        add_marks(y, target + y.width, source, y.depth - 1)
    elif y.overwrites:
        for each in range(y.depth):
            limbs_add(target + mark * y.width, source + each * y.width, y.width)
    else:
        add_marks(y, target + y.width, source + y.width, y.depth - 1)
        limbs_add(target + mark * y.width, source, y.width)


# --------------------------------------------------------------------------------------------------- backwards


cdef int retrace(Core* k, Tally* y, const Step* step, Py_ssize_t steps) noexcept nogil:
    """Find, from the last event to the first, what becomes of a trend that stands in a slot.

    Under SPAN what becomes of trends that begin is noted, the latest first; else it is what stands in the start.
    """
    cdef const Member* m = y.member
    cdef const Arrival* a
    cdef Py_ssize_t at = steps, across = y.rows * y.stride
    cdef uint64_t left, entered, emptied, number
    cdef int state, slot, way
    while at:
        number = step[at - 1].step
        entered = emptied = 0
        while at and step[at - 1].step == number:
            at -= 1
            y.meeting = step[at].place
            left = step[at].slots
            while left:
                state = m.slot_state[ctzll(left)]
                left &= ~m.state_slots[state]
                entered |= m.state_slots[state]
                leave_event(y, state, step[at].mark)
            emptied |= step[at].emptied
        emptied &= ~y.starts
        while emptied:
            memset(y.standing + ctzll(emptied) * across, 0, across * sizeof(uint64_t))
            emptied &= emptied - 1
        while entered:
            state = m.slot_state[ctzll(entered)]
            entered &= ~m.state_slots[state]
            a = &y.table.arrival[m.arrival[state]]
            for way in range(a.ways, a.ways_end):
                slot = m.way_slot[way]
                if not y.starts >> slot & 1:
                    add_marks(y, y.standing + slot * across, y.pending + state * across, y.rows * y.depth)
                elif step[at].starts >> slot & 1 and note_starts(k, y, &step[at], y.pending + state * across):
                    return OUT_OF_MEMORY
            memset(y.pending + state * across, 0, across * sizeof(uint64_t))
    return NO_FAILURE


cdef void leave_event(Tally* y, int state, int mark) noexcept nogil:
    """What becomes of a trend that takes an event in a state."""
    cdef const Member* m = y.member
    cdef Py_ssize_t across = y.rows * y.stride
    cdef uint64_t* target = y.pending + state * across
    cdef uint64_t left = m.state_slots[state]
    cdef bint named = left & y.named != 0
    cdef int row
    if named and y.splits:
        memset(y.number, 0, y.width * sizeof(uint64_t))
        while left:
            add_number(y, y.number, y.standing + ctzll(left) * across)
            left &= left - 1
        meet(y, mark)
        if not y.keeps:
            add_number(y, target, y.number)
        return
    while left:
        for row in range(y.rows):
            add_marked(
                y, target + row * y.stride, y.standing + ctzll(left) * across + row * y.stride, named, mark
            )
        left &= left - 1


cdef int note_starts(Core* k, const Tally* y, const Step* step, const uint64_t* becomes) noexcept nogil:
    """Note what becomes of trends that begin with a step, slot by slot and mark by mark."""
    cdef Py_ssize_t words = START_HEAD + y.width
    cdef const uint64_t* number
    cdef uint64_t* record
    cdef int slot, mark
    for slot in range(y.member.slots):
        for mark in range(y.depth):
            number = becomes + slot * y.stride + mark * y.width
            if not limbs_nonzero(number, y.width):
                continue
            if reserve_words(k, &k.gathered, &k.gathered_words, (k.gathered_count + 1) * words):
                return OUT_OF_MEMORY
            record = k.gathered + k.gathered_count * words
            record[0], record[1], record[2] = <uint64_t> step.time, <uint64_t> slot, <uint64_t> mark
            memcpy(record + START_HEAD, number, y.width * sizeof(uint64_t))
            k.gathered_count += 1
    return NO_FAILURE
