"""The tables that all baselines read: a template, or several, as integers."""

from libc.stdint cimport int32_t, int64_t, uint64_t

cdef extern from "_loops.h":
    const double LARGE "HB_LARGE"
    const double DOWN "HB_DOWN"
    const int DOWN_BITS "HB_DOWN_BITS"
    double hb_sum(const double *x, long n) noexcept nogil
    double hb_sum_where(const double *x, const double *left, int operator, double right, long n) noexcept nogil
    void hb_shift_add(double *to, const double *start, long n) noexcept nogil
    void hb_shift_add_scaled(double *to, const double *start, double x, long n) noexcept nogil
    void hb_scale(double *x, double factor, long n) noexcept nogil

cdef enum:
    NO_COLUMN = -1
    START_STATE = 0

cdef struct Tables:
    int states                # with the start, which is 0
    int guards
    int components            # linear aggregates beside the count
    int queries
    int kept                  # attributes that adjacent predicates read of the earlier event
    int32_t *role_of          # state -> bit of the mask of an event that may enter it
    int32_t *source_begin     # state -> its transitions [source_begin[q], source_begin[q + 1])
    int32_t *source_of        # transition -> state that it leaves; a state's own loop comes first
    uint64_t *source_guards   # transition -> guards that must not match in the gap, as bits
    int32_t *pair_begin       # transition -> its comparisons [pair_begin[t], pair_begin[t + 1]), one at most
    int32_t *pairs            # comparison -> kept attribute of the earlier event, operator, column of the later
    int32_t *kept_column      # kept attribute -> column of the values
    int32_t *guard_role       # guard -> bit of the mask of its events
    int32_t *final_begin      # query -> its finals [final_begin[k], final_begin[k + 1])
    int32_t *final_state
    uint64_t *final_guards
    int32_t *adds             # component * states + state -> column that an event adds, NO_COLUMN adds nothing

cdef class Automaton:
    cdef Tables tables
    cdef list arrays          # what the pointers point into
    cdef int32_t *integers(self, numbers) except NULL
    cdef uint64_t *bits(self, sets) except NULL
