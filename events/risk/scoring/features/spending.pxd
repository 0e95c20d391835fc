cimport cython
from libc cimport math
from events.risk.scoring.habits cimport packed
from events.risk.scoring.habits.comparison cimport Comparison
from events.risk.scoring.habits.paid cimport was_paid
from events.risk.scoring.habits.state cimport AgentState

cdef Py_ssize_t FEW_AMOUNTS
cdef double LEAST_SPREAD, LEAST_SHARE, LEAST_OF_FEW, HALF_AMOUNTS, WITHIN, MAX_ABOVE, TOKEN_SHARE
cdef double PAID_BEFORE, SETTLED_AMOUNTS, DRIFT_OF_MEDIAN, DRIFT_OF_AMOUNT, MAX_DRIFT

@cython.locals(limit=double, used=double, middle=double, worth=double, stated=double, size=double, above=double, share=double, found=list, ordered=list)
cpdef list spending_signals(Comparison seen, context)

@cython.locals(above=double, least=double, deviations=double)
cdef double _above(list ordered, double middle, double size) except? -1.0

cdef bint _were_paid(Comparison seen, double size) except -1

@cython.locals(half=Py_ssize_t, first=Py_ssize_t, last=Py_ssize_t, start=Py_ssize_t, reach=double)
cdef double _median_distance(list ordered, double middle) except? -1.0

@cython.locals(above=double, weight=double)
cdef list _drift(AgentState state, amount, double middle, double share)
