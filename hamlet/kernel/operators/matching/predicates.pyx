"""What the matching operator reads of events: predicates on neighbours, attributes that are kept, single values."""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memset

from hamlet.kernel.expression cimport Column, evaluate_block
from hamlet.kernel.operators.matching.tables cimport Core, Table, ValueSet
from hamlet.kernel.plan cimport Predicate


cdef void bind_scalars(Core* k, const Table* t, int predicate) noexcept nogil:
    """Point at the columns of the later event."""
    cdef const Predicate* p = &t.predicate[predicate]
    cdef int i
    for i in range(p.scalars):
        k.scalar[i] = k.columns[t.member[p.scalar + i]]


cdef int fits_predicate(
    Core* k, int query, int predicate, const uint64_t* kept, int columns, Py_ssize_t row
) noexcept nogil:
    """Whether an event may follow one whose attributes are kept; -1 where integers pass 64 bits."""
    cdef const Table* t = &k.query[query]
    cdef const Predicate* p = &t.predicate[predicate]
    cdef const uint8_t* there = <const uint8_t*> (kept + columns)
    cdef Py_ssize_t where = 0
    cdef int i, place, failed
    for i in range(p.vectors):
        place = t.member[p.vector + i]
        k.vector[i].data = <const int64_t*> kept + place
        k.vector[i].valid = there + place
    failed = evaluate_block(&p.code, k.vector, 0, 1, k.scalar, row, k.ranks, k.registers, &where)
    if failed >= 0:
        k.failed_query, k.failed_predicate, k.failed_place, k.failed_row = query, predicate, failed, row
        return -1
    return k.registers[0].value[0] != 0


cdef void keep_columns(
    const Core* k, const Table* t, int columns, int end, uint64_t* kept, Py_ssize_t row
) noexcept nogil:
    """Keep an event's attributes for predicates."""
    cdef int i, count = end - columns
    cdef const Column* c
    cdef uint8_t* there = <uint8_t*> (kept + count)
    memset(there, 0, (count + 7) // 8 * 8)
    for i in range(count):
        c = &k.columns[t.member[columns + i]]
        there[i] = c.valid == NULL or c.valid[row]
        kept[i] = <uint64_t> c.data[row] if there[i] else 0


cdef bint value_of(const Core* k, const ValueSet* s, Py_ssize_t row, int64_t* value) noexcept nogil:
    """The value of an event for a set, if there is one; -0.0 is 0.0, and NaN is none."""
    cdef const Column* c = &k.columns[s.column]
    cdef double number
    if c.valid != NULL and not c.valid[row]:
        return False
    value[0] = c.data[row]
    if s.floating:
        number = (<double*> value)[0]
        if number != number:
            return False
        (<double*> value)[0] = number + 0.0
    return True
