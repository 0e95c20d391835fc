cimport cython

from events.scoring.tables cimport Table


cdef double FADE
cdef Py_ssize_t LAYOUT, HOURS, MAX_AMOUNTS, _HEAD, _NUMBERS, _TRIALS, _RATES, _HOURS, _TABLES


@cython.no_gc
cdef class AgentState:
    cdef public double landmark, last_at, learned
    cdef public Table tools, aimed, bigrams, destinations, resources, hosts, waiting
    cdef public bytes trials, rates, amounts
    cdef public double usual_amount
    cdef public bytes hours
    cdef public double tool_surprise, bigram_surprise, burst_level, burst, reads, failures, anomalies
    cdef public bytes last_tool
    cdef public long long day
    cdef public double day_usd
    cdef public bytes taken_in

    cpdef AgentState changeable(self)
    cpdef add_amount(self, double root)
    cpdef double in_hour(self, Py_ssize_t hour) except? -1.0
    @cython.locals(before=Py_ssize_t, after=Py_ssize_t, beside=double)
    cpdef double around(self, Py_ssize_t hour) except? -1.0
    cpdef add_hour(self, Py_ssize_t hour, double weight)
    @cython.locals(age=double)
    cpdef double fading(self, double now) except? -1.0


@cython.locals(state=AgentState, numbers=tuple, amounts=Py_ssize_t)
cpdef AgentState decode_state(bytes data)

@cython.locals(head=bytes, numbers=bytes)
cpdef bytes encode_state(AgentState state)

@cython.locals(names=Py_ssize_t, weights=Py_ssize_t)
cdef Table _table(bytes data, Py_ssize_t place)

@cython.locals(names=Py_ssize_t, before=Py_ssize_t)
cdef Py_ssize_t _start(bytes data, Py_ssize_t place) except -1
