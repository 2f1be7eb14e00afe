cdef enum Form:        # of a component in the kernel's words, and of its column
    INTEGER
    PAIR               # mantissa and exponent
    FLAG
    EXTREMUM           # whether there is one, and its value
