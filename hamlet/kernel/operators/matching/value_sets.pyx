"""The values of exact sets of distinct values: each has a number, which is the place of its bit in a set."""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memset

from hamlet.kernel.cells cimport words_of
from hamlet.kernel.operators.matching.room cimport claim
from hamlet.kernel.operators.matching.state cimport relay
from hamlet.kernel.operators.matching.tables cimport (
    HEAD,
    Core,
    Dictionary,
    Nodes,
    Partition,
    Table,
    node_at,
    node_words,
)
from hamlet.kernel.plan cimport NO_FAILURE, OUT_OF_MEMORY
from hamlet.memory.arrays cimport regrown
from hamlet.memory.budget cimport ALLOCATION


cdef inline uint64_t slot_of(int64_t value, Py_ssize_t slots) noexcept nogil:
    cdef uint64_t hashed = <uint64_t> value * <uint64_t> 0x9E3779B97F4A7C15
    return (hashed ^ hashed >> 32) & <uint64_t> (slots - 1)


cdef int64_t find_value(const Partition* p, int place, int64_t value) noexcept nogil:
    """The number of a value, -1 where it has none."""
    cdef const Dictionary* d = &p.dictionary[place]
    cdef uint64_t at
    if d.slots == 0:
        return -1
    at = slot_of(value, d.slots)
    while d.slot[at] >= 0:
        if d.value[d.slot[at]] == value:
            return d.slot[at]
        at = (at + 1) & <uint64_t> (d.slots - 1)
    return -1


cdef int make_room(Core* k, const Table* t, Partition* p, int place, Py_ssize_t more) noexcept nogil:
    """Before a step that numbers at most so many values: forget those that no trend has, where room runs short.

    In a step no value is forgotten: no trend has those that its events have, until it writes.
    """
    cdef Dictionary* d = &p.dictionary[place]
    if d.count + more <= 64 * <Py_ssize_t> p.set_words:
        return NO_FAILURE
    forget_values(t, p, place)
    if 2 * d.count > 64 * <Py_ssize_t> p.set_words:
        return relay(k, t, t, p, p.width, 2 * p.set_words)
    return NO_FAILURE


cdef int number_value(Core* k, const Table* t, Partition* p, int place, int64_t value) noexcept nogil:
    """Give a value a number, and its set room for it."""
    cdef Dictionary* d = &p.dictionary[place]
    if find_value(p, place, value) >= 0:
        return NO_FAILURE
    if d.count >= 64 * <Py_ssize_t> p.set_words and relay(k, t, t, p, p.width, 2 * p.set_words):
        return OUT_OF_MEMORY
    if 2 * (d.count + 1) > d.slots and enlarge(k, p, d):
        return OUT_OF_MEMORY
    enter(d, value)
    return NO_FAILURE


cdef void enter(Dictionary* d, int64_t value) noexcept nogil:
    cdef uint64_t at = slot_of(value, d.slots)
    while d.slot[at] >= 0:
        at = (at + 1) & <uint64_t> (d.slots - 1)
    d.slot[at] = <int32_t> d.count
    d.value[d.count] = value
    d.count += 1


cdef void enter_all(Dictionary* d, Py_ssize_t count) noexcept nogil:
    """Number the first values anew; their slots are empty or out of date."""
    cdef Py_ssize_t i
    memset(d.slot, 0xFF, d.slots * sizeof(int32_t))
    d.count = 0
    for i in range(count):
        enter(d, d.value[i])


cdef void widen_values(Dictionary* d) noexcept nogil:
    """Integers become doubles; two that become one keep two numbers, which whoever reads them makes one."""
    cdef Py_ssize_t i
    for i in range(d.count):
        (<double*> &d.value[i])[0] = <double> d.value[i]
    enter_all(d, d.count)


cdef int enlarge(Core* k, Partition* p, Dictionary* d) noexcept nogil:
    """Twice as many slots."""
    cdef Py_ssize_t slots = max(2 * d.slots, 16)
    if claim(k, p, (slots - d.slots) * (sizeof(int64_t) + sizeof(int32_t)) + (0 if d.slots else 2 * ALLOCATION)):
        return OUT_OF_MEMORY
    if not regrown(<void**>&d.value, slots * sizeof(int64_t)):
        return OUT_OF_MEMORY
    if not regrown(<void**>&d.slot, slots * sizeof(int32_t)):
        return OUT_OF_MEMORY
    d.slots = slots
    enter_all(d, d.count)
    return NO_FAILURE


cdef void forget_values(const Table* t, Partition* p, int place) noexcept nogil:
    """Forget the values of a set that no trend has, and number the others anew."""
    cdef Dictionary* d = &p.dictionary[place]
    cdef Py_ssize_t first = words_of(&t.cells, p.width) + place * <Py_ssize_t> p.set_words, stride, i, kept = 0
    cdef int number
    cdef int64_t value
    cdef uint64_t used
    for i in range(d.count):  # values keep their order, so that bits only move down
        used = 0
        for number in range(t.states + t.end_count + 1):
            stride = node_words(t, p, number)
            used |= taken_bits(&p.nodes[number], stride, HEAD + first, i, kept)
        if used:
            value = d.value[i]
            d.value[kept] = value
            kept += 1
    enter_all(d, kept)


cdef uint64_t taken_bits(Nodes* n, Py_ssize_t stride, Py_ssize_t first, Py_ssize_t old, Py_ssize_t new) noexcept nogil:
    """Move a bit of every node's set down; whether some node has it."""
    cdef Py_ssize_t i
    cdef uint64_t* word
    cdef uint64_t bit, found = 0
    for i in range(n.count):
        word = node_at(n, i, stride) + first
        bit = word[old >> 6] >> (old & 63) & 1
        found |= bit
        if old != new:
            word[old >> 6] &= ~(<uint64_t> 1 << (old & 63))
            word[new >> 6] = (word[new >> 6] & ~(<uint64_t> 1 << (new & 63))) | bit << (new & 63)
    return found
