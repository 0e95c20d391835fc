cimport cython

cdef class Reading:
    cdef public dict said, money
    cdef public Py_ssize_t size

@cython.locals(said=dict, inner=list)
cdef _take(Reading found, dict details, Py_ssize_t depth)

cdef _take_inner(Reading found, value, Py_ssize_t depth)

@cython.locals(keys=tuple)
cdef tuple _plan_of(dict details)

@cython.locals(said=dict)
cdef _facts(Reading found)

cdef tuple _places(dict said)

cdef tuple _resources(dict said)
