cimport cython

from events.scoring.state cimport AgentState


cdef double REPEATED_ANOMALIES


@cython.locals(found=list, weight=double)
cpdef list broken_rules(AgentState state, event, context, facts, double anomalies)

cdef list _reported(event, double anomalies)

cpdef bint concerns_money(event, facts) except -1

cpdef double spent_today(AgentState state, received_at) except? -1.0
