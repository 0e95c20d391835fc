cimport cython
from libc cimport math
from events.risk.scoring.habits cimport packed
from events.risk.scoring.habits.baseline cimport Baseline
from events.risk.scoring.habits.comparison cimport Comparison
from events.risk.scoring.habits.state cimport AgentState

cdef double PRIOR_RATE, PRIOR_TRIALS, MOST_TRIALS, MAX_RARITY
cdef double WITHIN_HOME, SELDOM, MUTATION_CARRIES, IN_COMPANY, READING_COUNTS, DECLARED
cdef double SURPRISE_SLACK, MAX_SURPRISE
cdef Py_ssize_t FEW_AMOUNTS
cdef double LEAST_SPREAD, LEAST_SHARE, LEAST_OF_FEW, HALF_AMOUNTS, WITHIN, MAX_ABOVE, TOKEN_SHARE
cdef double SETTLED_AMOUNTS, DRIFT_OF_MEDIAN, DRIFT_OF_AMOUNT, MAX_DRIFT
cdef double BURST_SLACK, MAX_BURST, MAX_FAILURES, SETTLED_HOURS, QUIET_HOUR, MAX_HOUR

@cython.locals(value=double, found=list)
cpdef list signals(Comparison seen, context, Baseline baseline=*)

@cython.locals(trials=double, rate=double)
cpdef double rarity(AgentState state, Py_ssize_t kind) except? -1.0

@cython.locals(strange=double, nats=double, carries=double, value=double, weight=double, found=list)
cdef list _destination(Comparison seen, context, Baseline baseline)

@cython.locals(carries=double)
cdef double _carries(Comparison seen) except? -1.0

@cython.locals(carries=double, weight=double, found=list)
cdef list _host(Comparison seen, context, Baseline baseline)

cdef bint _inside(host, home) except -1

@cython.locals(counts=double, excess=double, strange=double, weight=double, found=list)
cdef list _tool(Comparison seen, context, Baseline baseline)

@cython.locals(limit=double, used=double, middle=double, worth=double, stated=double, size=double, above=double, found=list, ordered=list)
cdef list _amount(Comparison seen, context)

@cython.locals(above=double, least=double, deviations=double)
cdef double _above(list ordered, double middle, double size) except? -1.0

@cython.locals(half=Py_ssize_t, first=Py_ssize_t, last=Py_ssize_t, start=Py_ssize_t, reach=double)
cdef double _median_distance(list ordered, double middle) except? -1.0

@cython.locals(above=double, weight=double)
cdef list _drift(AgentState state, amount, double middle)

@cython.locals(excess=double, factor=double, weight=double, found=list)
cdef list _pace(Comparison seen)

@cython.locals(near=double)
cdef double _hour(Comparison seen) except? -1.0
