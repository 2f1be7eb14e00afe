from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint32_t, uint64_t

cdef class Words:
    cdef PyObject** things      # the word of each code, one reference; NULL where the code is free
    cdef uint64_t* slots        # by hash: 32 bits of it, then the code + 1; 0 where free
    cdef int64_t room           # codes that fit into `things`
    cdef int64_t used           # codes given out so far, those that are free again among them
    cdef readonly int64_t live  # words that are there
    cdef int64_t mask           # slots - 1, a power of two less one
    cdef list spare             # codes that are free again
    cdef readonly int64_t bytes  # of the words that are there
    cdef int64_t calm           # no sweep while fewer words are there
    cdef int64_t calm_bytes     # and they take fewer bytes
    cdef uint64_t seed

    cdef object thing(self, uint64_t code)
    cdef int64_t intern(self, object word) except -1
    cdef int64_t find(self, const char* letters, Py_ssize_t size, uint32_t hash)
    cdef int64_t add(self, object word, uint32_t hash) except -1
    cdef int rebuild(self, int64_t slots) except -1

cdef struct Entry:
    uint64_t key
    PyObject* value  # borrowed; NULL where the entry is free

cdef class CellMap:
    cdef Entry* entries
    cdef int64_t mask  # entries - 1, a power of two less one
    cdef int64_t live

    cdef PyObject* find(self, uint64_t key) noexcept nogil
    cdef void foresee(self, uint64_t key) noexcept nogil
    cdef int put(self, uint64_t key, PyObject* value) except -1
    cdef int drop(self, uint64_t key) except -1
    cdef int rebuild(self, int64_t size) except -1


cdef extern from *:
    """
    static inline unsigned long long hamlet_mixed(unsigned long long a, unsigned long long b) {
        unsigned __int128 whole = (unsigned __int128)a * b;
        return (unsigned long long)whole ^ (unsigned long long)(whole >> 64);
    }
    static inline void hamlet_prefetch(const void* place) { __builtin_prefetch(place); }
    """
    uint64_t mixed "hamlet_mixed"(uint64_t a, uint64_t b) noexcept nogil
    void prefetch "hamlet_prefetch"(const void* place) noexcept nogil
