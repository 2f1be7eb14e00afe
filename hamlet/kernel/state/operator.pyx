"""The table of operators, filled when their modules are imported, and read only afterwards."""

from hamlet.kernel.state.core cimport COMPLETE_WINDOW, EVENT_STORE, MOST_OPERATORS, PANE_MATRIX, SCALAR, SIMD

# Numbers by name, as the planner gives them to a kernel.
NUMBERS = {
    "scalar": SCALAR, "event_store": EVENT_STORE, "simd": SIMD, "pane_matrix": PANE_MATRIX,
    "complete_window": COMPLETE_WINDOW,
}


cdef int number_of(str name) except -1:
    """The number of an operator, a new one where the name is new: its place in `operators`."""
    number = NUMBERS.setdefault(name, len(NUMBERS))
    assert number < MOST_OPERATORS
    return number
