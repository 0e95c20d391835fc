cimport cython


@cython.locals(keys=tuple, plain=tuple, found=list, place=Py_ssize_t)
cpdef read(details)

@cython.locals(tools=tuple, verbs=tuple, targets=tuple, hosts=tuple)
cdef _facts(list found)
