cimport cython

from events.scoring.baseline cimport Baseline
from events.scoring.reasons cimport Signal
from events.scoring.state cimport AgentState
from events.scoring.tables cimport Table
from events.scoring.view cimport View


cdef double PRIOR_RATE, PRIOR_TRIALS, MOST_TRIALS, MAX_RARITY
cdef double WITHIN_HOME, SELDOM, MUTATION_CARRIES, IN_COMPANY, READING_COUNTS, DECLARED
cdef double SURPRISE_SLACK, MAX_SURPRISE
cdef Py_ssize_t FEW_AMOUNTS
cdef double LEAST_SPREAD, LEAST_SHARE, LEAST_OF_FEW, HALF_AMOUNTS, WITHIN, MAX_ABOVE, TOKEN_SHARE
cdef double SETTLED_AMOUNTS, DRIFT_OF_MEDIAN, DRIFT_OF_AMOUNT, MAX_DRIFT
cdef double BURST_SLACK, MAX_BURST, MAX_FAILURES, SETTLED_HOURS, QUIET_HOUR, MAX_HOUR


@cython.locals(value=double, found=list)
cpdef list signals(AgentState state, event, context, facts, View seen, Baseline baseline=*)

@cython.locals(trials=double, rate=double, nats=double)
cpdef double rarity(AgentState state, Py_ssize_t kind) except? -1.0

cdef double _strangeness(Baseline baseline, Table table, list names, View seen) except? -1.0

@cython.locals(strange=double, nats=double, carries=double, value=double, weight=double, found=list)
cdef list _destination(AgentState state, event, context, View seen, Baseline baseline)

@cython.locals(carries=double)
cdef double _carries(event, View seen) except? -1.0

@cython.locals(carries=double, weight=double, found=list)
cdef list _host(AgentState state, event, context, facts, View seen, Baseline baseline)

cdef bint _inside(host, home) except -1

@cython.locals(counts=double, excess=double, strange=double, weight=double, found=list)
cdef list _tool(AgentState state, event, context, facts, View seen, Baseline baseline)

@cython.locals(limit=double, used=double, middle=double, worth=double, stated=double, size=double, above=double, found=list, ordered=list)
cdef list _amount(AgentState state, context, facts, View seen)

@cython.locals(above=double, least=double, deviations=double)
cdef double _above(list ordered, double middle, double size) except? -1.0

@cython.locals(half=Py_ssize_t, first=Py_ssize_t, last=Py_ssize_t, start=Py_ssize_t, reach=double)
cdef double _median_distance(list ordered, double middle) except? -1.0

@cython.locals(above=double, weight=double)
cdef list _drift(AgentState state, amount, double middle)

@cython.locals(excess=double, factor=double, weight=double, found=list)
cdef list _pace(AgentState state, event, View seen)

@cython.locals(near=double)
cdef double _hour(AgentState state, View seen) except? -1.0
