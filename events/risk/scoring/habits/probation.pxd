cimport cython
from events.risk.scoring.habits cimport packed
from events.risk.scoring.habits.tables cimport Table

cdef long long LEAST_SPAN, LEAST_DAYS, LONG_SPAN, FEW_DAYS, _MOST_SPAN, _MOST_DAYS, _MOST_KIND

cdef class Meeting:
    cdef public long long first, span, days, kind
    cdef public bint is_counted

    cpdef bint is_over(self) except -1

@cython.locals(span=cython.longlong, days=cython.longlong)
cpdef double packed_meeting(Meeting met) except? -1.0

@cython.locals(bits=cython.longlong, met=Meeting)
cpdef Meeting unpacked_meeting(double number)

@cython.locals(number=double, met=Meeting)
cpdef bint meet(Table waiting, bytes name, long long day, long long kind, Py_ssize_t limit, bint is_counted=*) except -1

@cython.locals(number=double)
cpdef bint ends_probation(Table waiting, bytes name, long long day) except -1

@cython.locals(number=double)
cpdef bint was_met(Table waiting, bytes name, long long kind) except -1

@cython.locals(met=Meeting, span=cython.longlong)
cdef Meeting _met_again(double number, long long day)

@cython.locals(place=Py_ssize_t, number=double, bits=cython.longlong, waited=cython.longlong, found=list, forgotten=list, numbers=list)
cpdef list take_uncounted(Table waiting, long long day)
