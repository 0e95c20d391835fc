cimport cython
from libc cimport math
from events.risk.scoring.comparison cimport Comparison
from events.risk.scoring.features cimport signals
from events.risk.scoring.learning cimport learn
from events.risk.scoring.state cimport AgentState, Baseline

cdef double HABITS_CAP, BEND, PAST_BEND

@cython.locals(prior_logit=double, seen=Comparison, broken=list, evidence=list, said=list, judged=bint, capped=bint, score=double)
cpdef fold(AgentState state, event, context, Baseline baseline=*)

@cython.locals(total=double, logit=double, score=double)
cpdef double combine(double prior_logit, list evidence, Py_ssize_t broken, bint capped) except? -1.0
