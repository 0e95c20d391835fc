cimport cython
from events.risk.scoring.habits.tables cimport Table

cdef long long LEAST_AGE, _SUMS
cdef double AS_MUCH, ABOUT, _PARTS, _MOST

@cython.locals(number=double, noted=cython.longlong)
cpdef note_paid(Table paid, bytes payee, long long day, double root, Py_ssize_t limit)

@cython.locals(number=double)
cpdef bint was_paid(Table paid, bytes payee, long long day, double root) except -1

cdef double _root(double number) except? -1.0
