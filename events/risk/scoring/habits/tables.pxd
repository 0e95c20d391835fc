cimport cython
from events.risk.scoring.habits cimport packed

cdef class Table:
    cdef public bytes names, weights

    @cython.locals(at=Py_ssize_t)
    cpdef double get(self, bytes name) except? -1.0
    cpdef bint knows(self, bytes name, double fading) except -1
    @cython.locals(at=Py_ssize_t, before=double)
    cpdef double add(self, bytes name, double weight, Py_ssize_t limit) except? -1.0
    cpdef set(self, bytes name, double weight)
    @cython.locals(at=Py_ssize_t)
    cpdef remove(self, bytes name)
    cpdef drop(self, Py_ssize_t at)
