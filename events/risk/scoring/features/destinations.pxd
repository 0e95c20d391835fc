cimport cython
from libc cimport math
from events.risk.scoring.features.novelty cimport novelty
from events.risk.scoring.habits.baseline cimport Baseline
from events.risk.scoring.habits.comparison cimport Comparison

cdef double WITHIN_HOME, MUTATION_CARRIES, FETCH_CARRIES, IN_COMPANY, MOST

@cython.locals(found=list)
cpdef list destination_signals(Comparison seen, context, Baseline baseline)

@cython.locals(total=double, share=double, weight=double)
cdef list _weighed(list found, double strange)

cpdef bint is_inside(host, home) except -1

@cython.locals(strange=double)
cdef double _strangeness(Comparison seen, context, Baseline baseline) except? -1.0
