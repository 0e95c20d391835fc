cimport cython


@cython.no_gc
cdef class Signal:
    cdef public str name
    cdef public double weight
    cdef public object observed, expected


@cython.locals(made=Signal)
cpdef Signal signal(str name, double weight, observed=*, expected=*)

@cython.locals(ranked=list, signal=Signal)
cpdef tuple strongest(list signals, Py_ssize_t count=*)

cdef _told(Signal signal)
