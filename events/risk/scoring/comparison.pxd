cimport cython
from libc cimport math
from events.risk.scoring.state cimport AgentState
from events.risk.scoring.tables cimport Table, ends_probation, was_met

cdef double MATURITY_HALF, BURST_FADE, READ_FADE, FRESH_FADE, FAILURE_FADE, ANOMALY_FADE

@cython.no_gc
cdef class Comparison:
    cdef public AgentState state
    cdef public object facts, action_type, scored_as
    cdef public double at, unigram, bigram, fading, learned, maturity, burst, reads, failures, anomalies
    cdef public double fresh, hour_new, day_new, outflow, excess, counts, surprise, strange
    cdef public bytes tool, pair, resource, act
    cdef public bint has_tool, aims, begins_day, is_further, is_fresh
    cdef public list destinations, new, new_names, ending, hosts, objects, new_objects, containers, new_containers
    cdef public Py_ssize_t hour, day

    @cython.locals(tools=Table, share=double, count=double, before=double)
    cdef _see_tool(self, AgentState state, facts, bytes previous)
    @cython.locals(targets=tuple, uses=double, kind=Py_ssize_t, place=Py_ssize_t)
    cdef _see_places(self, AgentState state, facts, bint sends)
    @cython.locals(known=Table)
    cdef _see_things(self, AgentState state, facts, bint sends)
