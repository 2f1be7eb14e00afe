"""The memory of a run: one account for all its kernels, looked at before every allocation that grows with the data."""

from libc.stdint cimport int64_t

cdef extern from *:
    """
    #include <stdint.h>
    /* kernels of several threads share an account */
    static inline int64_t hamlet_add(int64_t* total, int64_t more) {
        return __atomic_add_fetch(total, more, __ATOMIC_RELAXED);
    }
    static inline void hamlet_raise(int64_t* most, int64_t value) {
        if (value > __atomic_load_n(most, __ATOMIC_RELAXED)) __atomic_store_n(most, value, __ATOMIC_RELAXED);
    }
    """
    int64_t hamlet_add(int64_t* total, int64_t more) noexcept nogil
    void hamlet_raise(int64_t* most, int64_t value) noexcept nogil

cdef enum:
    ALLOCATION = 16      # what the C allocator adds to a block, padding included

cdef struct Account:     # bytes
    int64_t held         # by kernels
    int64_t most         # ever held; of several threads roughly
    int64_t other        # by what is no kernel, as estimated last
    int64_t limit
    int64_t refused      # the request that would have passed the limit, 0 for none


cdef class Budget:
    cdef Account account


cdef inline bint take_spare(Account* account, int64_t bytes) noexcept nogil:
    """Account for memory that the run can do without; a refusal is no failure, unlike that of `take`."""
    cdef int64_t held = hamlet_add(&account.held, bytes)
    if bytes > 0 and held + account.other > account.limit:
        hamlet_add(&account.held, -bytes)
        return False
    hamlet_raise(&account.most, held)
    return True


cdef inline bint take(Account* account, int64_t bytes) noexcept nogil:
    """Count memory before it is allocated, or after it is freed (bytes < 0); False where there is no room for it."""
    if take_spare(account, bytes):
        return True
    account.refused = bytes
    return False
