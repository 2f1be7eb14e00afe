from hamlet.kernel.state.core cimport ActiveQueries, Core

cdef enum Purpose:  # of live lanes
    OF_WINDOWS  # the queries that events of some classes can complete, from the beginning of a window
    OF_CELLS    # all queries, from what stands in the cells of a window
    OF_MAPS     # all queries, and each once more from each cell on that events read or empty

cdef bint choose(Core* k, ActiveQueries* chosen, Purpose purpose) noexcept nogil
cdef void free_chosen(Core* k, ActiveQueries* chosen) noexcept nogil
