cimport cython
from events.risk.scoring cimport packed

cdef class Table:
    cdef public bytes held

    @cython.locals(at=Py_ssize_t)
    cpdef double get(self, bytes name) except? -1.0
    cpdef bint knows(self, bytes name, double fading) except -1
    @cython.locals(at=Py_ssize_t, before=double)
    cpdef double add(self, bytes name, double weight, Py_ssize_t limit) except? -1.0
    cpdef set(self, bytes name, double weight)
    @cython.locals(at=Py_ssize_t)
    cpdef remove(self, bytes name)

cdef long long LEAST_AGE, _SUMS
cdef double AS_MUCH, ABOUT, _PARTS, _MOST

@cython.locals(number=double, noted=cython.longlong)
cpdef note_paid(Table paid, bytes payee, long long day, double root, Py_ssize_t limit)

@cython.locals(number=double)
cpdef bint was_paid(Table paid, bytes payee, long long day, double root) except -1

cdef double _root(double number) except? -1.0

cdef long long LEAST_SPAN, LEAST_DAYS, LONG_SPAN, FEW_DAYS, _MOST_SPAN, _MOST_DAYS, _MOST_KIND

cdef class Meeting:
    cdef public long long first, span, days, kind
    cdef public bint is_counted

    @cython.locals(span=cython.longlong)
    cpdef again(self, long long day)
    cpdef bint is_over(self) except -1
    @cython.locals(span=cython.longlong, days=cython.longlong)
    cpdef double number(self) except? -1.0

@cython.locals(number=double, met=Meeting)
cpdef bint meet(Table waiting, bytes name, long long day, long long kind, Py_ssize_t limit, bint is_counted=*) except -1

@cython.locals(number=double, met=Meeting)
cpdef bint ends_probation(Table waiting, bytes name, long long day) except -1

@cython.locals(number=double)
cpdef bint was_met(Table waiting, bytes name, long long kind) except -1

@cython.locals(place=Py_ssize_t, number=double, met=Meeting, waited=cython.longlong, found=list, forgotten=list, names=bytes, numbers=list)
cpdef list take_uncounted(Table waiting, long long day)
