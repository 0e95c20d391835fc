cimport cython
from libc cimport math
from events.risk.scoring.habits.tables cimport Table

cdef double SHARED, GROWN

@cython.no_gc
cdef class Baseline:
    cdef public double landmark, learned
    cdef public Table destinations, hosts, tools, waiting

    cpdef double fading(self, double now) except? -1.0
    cpdef bint is_enough(self, double now) except -1
    @cython.locals(fading=double, name=bytes)
    cpdef double strangeness(self, Table table, list names, double at, double learned) except? -1.0
