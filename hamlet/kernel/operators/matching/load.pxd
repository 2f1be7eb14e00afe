from hamlet.kernel.interface cimport Interface
from hamlet.kernel.operators.matching.tables cimport Table


cdef void load_table(Table* t, object table, bint apart, Interface owner) except *
