from hamlet._kernel cimport Core

cdef int stand(Core* k, int query, int place) noexcept nogil
