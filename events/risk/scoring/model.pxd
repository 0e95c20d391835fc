cimport cython
from libc cimport math
from events.risk.scoring.comparison cimport Comparison
from events.risk.scoring.features cimport signals
from events.risk.scoring.learning cimport learn, share_unknown
from events.risk.scoring.reasons cimport strongest
from events.risk.scoring.rules cimport broken_rules, outside_scope, scope_mismatch
from events.risk.scoring.state cimport AgentState, Baseline

cdef double BEND, PAST_BEND, BELOW_HIGH, ENOUGH_HABITS, HALFWAY, BEYOND, STRANGE, BOLDEST, RARE, ODD, NARROWEST, YOUNG, SETTLED, TIRED, MATURE, MATURE_FOR_PAYMENTS, SLOWLY, TOLD, FAR

@cython.locals(prior_logit=double, seen=Comparison, broken=list, evidence=list, said=list, score=double, reasons=tuple)
cpdef fold(AgentState state, event, context, Baseline baseline=*)

@cython.locals(total=double, volume=double, weight=double, evidence=list)
cpdef list weigh(Comparison seen, double prior_logit, context, Baseline baseline)

cpdef Py_ssize_t row_of(Comparison seen) except -1

@cython.locals(usual=tuple, nats=tuple, below=double, least=double, above=double, place=Py_ssize_t)
cpdef double surprise_of(double logit, Py_ssize_t row) except? -1.0

@cython.locals(state=AgentState, surprise=double, weight=double, place=Py_ssize_t, usual=double, among_all=double, counted=double, above=double, chance=double, pseudo=double, tenants=double, is_rare=bint, limit=double, beyond=double)
cpdef double calibrated(Comparison seen, double logit, list evidence, list said, double budget, Baseline baseline) except? -1.0

@cython.locals(times=double, unknown=double, limit=double, more=double)
cpdef double limit_of(double budget, double credit, double counted) except? -1.0

cpdef bint knows_none(Comparison seen, double counted, double above) except -1

@cython.locals(logit=double, score=double, weight=double)
cpdef double as_said(Comparison seen, double prior_logit, list evidence, Baseline baseline) except? -1.0

cpdef Comparison weighed(AgentState state, event, context, Baseline baseline)
