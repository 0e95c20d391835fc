cimport cython

@cython.locals(ranked=list)
cpdef tuple strongest(list decided, list signals, Py_ssize_t count=*)
