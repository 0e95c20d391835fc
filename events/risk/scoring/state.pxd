cimport cython
from libc cimport math
from events.risk.scoring cimport packed
from events.risk.scoring.tables cimport Table

@cython.no_gc
cdef class AgentState:
    cdef public double landmark, last_at, learned
    cdef public Table tools, aimed, bigrams, destinations, resources, hosts, waiting, objects, acts, paid
    cdef public bytes amounts, last_tool, taken_in
    cdef public bytearray counts
    cdef public double usual_amount, tool_surprise, bigram_surprise, burst_level
    cdef public double burst, reads, failures, anomalies, day, day_usd
    cdef public double days, usual_outflow, day_new, usual_new, fresh, hour_new, fresh_peak, usual_fresh
    cdef public double strange, credit

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
    @cython.locals(at=Py_ssize_t, total=double)
    cpdef double surprises_from(self, Py_ssize_t place) except? -1.0
    @cython.locals(at=Py_ssize_t)
    cpdef count_surprise(self, Py_ssize_t place, double weight)
    @cython.locals(age=double)
    cpdef double fading(self, double now) except? -1.0

cdef Py_ssize_t _TABLES, _HEAD, _COUNTS, _FIXED, _RATES, _HOURS, _SURPRISES, _END

@cython.locals(table=Table, tables=list, head=bytearray, parts=list, place=Py_ssize_t)
cpdef bytes encode_state(AgentState state)

@cython.locals(state=AgentState, table=Table, tables=list, place=Py_ssize_t, start=Py_ssize_t, end=Py_ssize_t, are_finite=bint)
cpdef AgentState decode_state(bytes data)

cdef double SHARED, OWN_HABITS

@cython.no_gc
cdef class Baseline:
    cdef public double landmark, learned
    cdef public Table destinations, hosts, tools, waiting
    cdef public bytes surprises

    cpdef double fading(self, double now) except? -1.0
    cpdef bint is_enough(self, double now) except -1
    cpdef double surprises_from(self, Py_ssize_t place) except? -1.0
    @cython.locals(fading=double, name=bytes)
    cpdef double strangeness(self, Table table, list names, double at, double learned) except? -1.0
