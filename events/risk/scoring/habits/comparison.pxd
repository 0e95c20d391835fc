cimport cython
from libc cimport math
from events.risk.scoring.habits.probation cimport ends_probation, was_met
from events.risk.scoring.habits.state cimport AgentState
from events.risk.scoring.habits.tables cimport Table

cdef double MATURITY_HALF, BURST_FADE, READ_FADE, FRESH_FADE, FAILURE_FADE, ANOMALY_FADE

@cython.no_gc
cdef class Comparison:
    cdef public AgentState state
    cdef public object event, facts
    cdef public double at, unigram, bigram, fading, learned, maturity, burst, reads, failures, anomalies
    cdef public double fresh, hour_new, day_new, outflow
    cdef public bytes tool, pair, resource, act
    cdef public bint has_tool, aims, begins_day, is_further, is_fresh
    cdef public list destinations, new, new_names, ending, hosts, objects, new_objects, containers, new_containers
    cdef public Py_ssize_t hour, day

@cython.locals(at=double, elapsed=double, seen=Comparison, targets=tuple, sends=bint)
cpdef Comparison compare(AgentState state, event)

cdef _see_last_minutes(Comparison seen, AgentState state, double elapsed)

@cython.locals(targets=tuple)
cdef _see_places(Comparison seen, AgentState state, facts, bint sends, double elapsed)

@cython.locals(known=Table)
cdef _see_things(Comparison seen, AgentState state, facts, bint sends)

@cython.locals(tools=Table, share=double, count=double, before=double)
cdef _see_tool(Comparison seen, AgentState state, facts, bint does, bytes previous)

@cython.locals(known=Table)
cdef _see_unknown(Comparison seen, AgentState state, tuple targets)

cdef bint _goes_where_it_never_was(Comparison seen, AgentState state) except -1

@cython.locals(uses=double)
cdef bint _expects_target(AgentState state, facts, bytes tool) except -1
