cimport cython
from libc cimport math
from events.risk.scoring cimport packed
from events.risk.scoring.comparison cimport Comparison
from events.risk.scoring.state cimport AgentState, Baseline
from events.risk.scoring.tables cimport was_paid

cdef double PRIOR_RATE, PRIOR_TRIALS, MOST_TRIALS, MAX_RARITY, UNTRIED, FEW_TRIALS
cdef Py_ssize_t AIMED_KINDS

@cython.locals(trials=double, rate=double, assumed=double)
cpdef double rarity(AgentState state, Py_ssize_t kind) except? -1.0

@cython.locals(new=double, trials=double, count=double, kind=Py_ssize_t)
cpdef double aimed_rate(AgentState state) except? -1.0

@cython.locals(untried=double, share=double)
cpdef double novelty(AgentState state, Py_ssize_t kind) except? -1.0

cdef double WITHIN_HOME, MUTATION_CARRIES, FETCH_CARRIES, IN_COMPANY, MOST

@cython.locals(found=list)
cpdef list destination_signals(Comparison seen, context, Baseline baseline)

@cython.locals(total=double, share=double, weight=double)
cdef list _weighed(list found, double strange)

cpdef bint is_inside(host, home) except -1

@cython.locals(strange=double)
cdef double _strangeness(Comparison seen, context, Baseline baseline) except? -1.0

cdef double WAS_READ, ACT_HALF, ACT_TRIALS, MAX_SELDOM, ON_SOMETHING_NEW, READING_COUNTS, DECLARED
cdef double SURPRISE_SLACK, MAX_SURPRISE

@cython.locals(weight=double, share=double, found=list)
cpdef list object_signals(Comparison seen)

@cython.locals(done=double, seldom=double, weight=double)
cpdef list act_signals(Comparison seen)

@cython.locals(counts=double, excess=double, strange=double, weight=double, found=list)
cpdef list tool_signals(Comparison seen, context, Baseline baseline)

cdef Py_ssize_t FEW_AMOUNTS
cdef double LEAST_SPREAD, LEAST_SHARE, LEAST_OF_FEW, HALF_AMOUNTS, WITHIN, MAX_ABOVE, TOKEN_SHARE
cdef double PAID_BEFORE, SETTLED_AMOUNTS, DRIFT_OF_MEDIAN, DRIFT_OF_AMOUNT, MAX_DRIFT

@cython.locals(limit=double, used=double, middle=double, worth=double, stated=double, size=double, above=double, share=double, found=list, ordered=list)
cpdef list spending_signals(Comparison seen, context)

@cython.locals(above=double, least=double, deviations=double)
cdef double _above(list ordered, double middle, double size) except? -1.0

@cython.locals(half=Py_ssize_t, first=Py_ssize_t, last=Py_ssize_t, start=Py_ssize_t, reach=double)
cdef double _median_distance(list ordered, double middle) except? -1.0

@cython.locals(above=double, weight=double)
cdef list _drift(AgentState state, amount, double middle, double share)

cdef double BURST_SLACK, MAX_BURST, MAX_FAILURES, SETTLED_HOURS, QUIET_HOUR, MAX_HOUR, SETTLED_DAYS
cdef double FRESH_SLACK, OUTFLOW_SLACK, MAX_VOLUME, ACTIVE_HOURS, NEW_ALLOWED, MAX_NEW

@cython.locals(excess=double, factor=double, weight=double, found=list)
cpdef list pace_signals(Comparison seen)

@cython.locals(excess=double, settled=double, expected=double, surprise=double, weight=double, found=list)
cpdef list volume_signals(Comparison seen)

@cython.locals(near=double)
cdef double _hour(Comparison seen) except? -1.0

@cython.locals(found=list)
cpdef list signals(Comparison seen, context, Baseline baseline=*)
