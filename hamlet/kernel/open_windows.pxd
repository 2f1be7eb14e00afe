from hamlet.kernel.core cimport Core

cdef int stand(Core* k, int query, int place) noexcept nogil
