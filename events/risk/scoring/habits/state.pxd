cimport cython
from libc cimport math
from events.risk.scoring.habits cimport packed
from events.risk.scoring.habits.tables cimport Table

cdef Py_ssize_t _HEAD, _NUMBERS, _TRIALS, _RATES, _HOURS, _TABLES

@cython.no_gc
cdef class AgentState:
    cdef public double landmark, last_at, learned
    cdef public Table tools, aimed, bigrams, destinations, resources, hosts, waiting, objects, acts, paid
    cdef public bytes trials, rates, amounts, hours, last_tool, taken_in
    cdef public double usual_amount, tool_surprise, bigram_surprise, burst_level
    cdef public double burst, reads, failures, anomalies, day_usd
    cdef public double days, usual_outflow, day_new, usual_new, fresh, hour_new, fresh_peak, usual_fresh
    cdef public long long day

    cpdef AgentState changeable(self)
    cpdef double trials_of(self, Py_ssize_t kind) except? -1.0
    cpdef double rate_of(self, Py_ssize_t kind) except? -1.0
    @cython.locals(count=double, rate=double, share=double)
    cpdef count_trial(self, Py_ssize_t kind, bint new)
    cpdef add_amount(self, double root)
    cpdef double in_hour(self, Py_ssize_t hour) except? -1.0
    @cython.locals(before=Py_ssize_t, after=Py_ssize_t, beside=double)
    cpdef double around(self, Py_ssize_t hour) except? -1.0
    cpdef add_hour(self, Py_ssize_t hour, double weight)
    @cython.locals(age=double)
    cpdef double fading(self, double now) except? -1.0

@cython.locals(tools=Table, aimed=Table, bigrams=Table, destinations=Table, resources=Table, hosts=Table, waiting=Table, objects=Table, acts=Table, paid=Table)
cpdef bytes encode_state(AgentState state)

@cython.locals(state=AgentState, amounts=Py_ssize_t)
cpdef AgentState decode_state(bytes data)

cdef Py_ssize_t _end(bytes data) except -1

@cython.locals(names=Py_ssize_t, weights=Py_ssize_t, end=Py_ssize_t)
cdef Table _table(bytes data, Py_ssize_t place)

@cython.locals(names=Py_ssize_t, before=Py_ssize_t)
cdef Py_ssize_t _start(bytes data, Py_ssize_t place) except -1
