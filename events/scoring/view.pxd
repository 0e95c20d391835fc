cimport cython

from events.scoring.state cimport AgentState
from events.scoring.tables cimport Table


cdef double MATURITY_HALF, BURST_FADE, READ_FADE, FAILURE_FADE, ANOMALY_FADE, SESSION_GAP, EXPECTED, READ_BEFORE
cdef Py_ssize_t HOST, RESOURCE, AMOUNT
cdef bytes OMITTED


@cython.no_gc
cdef class View:
    cdef public double at
    cdef public bytes tool, pair
    cdef public bint has_tool
    cdef public double unigram, bigram
    cdef public list destinations, new, new_names
    cdef public bint aims
    cdef public list hosts
    cdef public bytes resource
    cdef public double fading, learned, maturity
    cdef public Py_ssize_t hour
    cdef public double burst, reads, failures, anomalies


@cython.locals(at=double, elapsed=double, seen=View, targets=tuple, sends=bint)
cpdef View view(AgentState state, event, facts)

@cython.locals(tools=Table, share=double, count=double, before=double)
cdef _see_tool(View seen, AgentState state, facts, bint does, bytes previous)

@cython.locals(known=Table)
cdef _see_unknown(View seen, AgentState state, tuple targets)

@cython.locals(uses=double)
cdef bint _expects_target(AgentState state, action_type, facts, bytes tool) except -1
