cimport cython


cdef double FORGOTTEN


cdef class Table:
    cdef public bytes names
    cdef public bytes weights

    @cython.locals(at=Py_ssize_t)
    cpdef double get(self, bytes name) except? -1.0
    cpdef bint knows(self, bytes name, double fading) except -1
    @cython.locals(at=Py_ssize_t, before=double)
    cpdef double add(self, bytes name, double weight, Py_ssize_t limit) except? -1.0
    @cython.locals(since=double)
    cpdef bint has_waited(self, bytes name, double now, double seconds, Py_ssize_t limit) except -1
    cpdef Table copy(self)


@cython.locals(table=Table)
cpdef Table table_of(bytes names, bytes weights)
