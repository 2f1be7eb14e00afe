from libc.stdint cimport int64_t, uint64_t

from hamlet.kernel.operators.matching.tables cimport Core, Nodes, Partition, Table, node_words

cdef enum:
    SPARE_BITS = 3       # of a count

cdef Partition* allocated(Core* k, const Table* t) noexcept nogil
cdef Partition* new_partition(Core* k, Table* t, int64_t time) noexcept nogil
cdef void give_up(Core* k, Table* t, Partition* p) noexcept nogil
cdef void free_partition(Core* k, const Table* t, Partition* p) noexcept nogil
cdef void clear_partition(const Table* t, Partition* p) noexcept nogil
cdef uint64_t* append_node(Core* k, const Table* t, Partition* p, int number) noexcept nogil
cdef int add_node(
    Core* k, const Table* t, Partition* p, int number, int64_t lane, int64_t step, const uint64_t* value, uint64_t pane
) noexcept nogil
cdef int add_value(
    Core* k, const Table* t, Partition* p, uint64_t* target, const uint64_t* source
) noexcept nogil
cdef void drop_first(Nodes* n, Py_ssize_t nodes, Py_ssize_t stride) noexcept nogil
cdef void keep_unmoved(const Table* t, Partition* p, int number, uint64_t mark) noexcept nogil
cdef int reserve_bits(Core* k, const Table* t, Partition* p, int64_t additions) noexcept nogil
cdef int relay(
    Core* k, const Table* t, const Table* old, Partition* p, int width, int set_words
) noexcept nogil
cdef bint killed_since(const Table* t, const Partition* p, int guards, int64_t step) noexcept nogil
