cimport cython
from libc cimport math
from events.risk.scoring.features.evidence cimport signals
from events.risk.scoring.habits.baseline cimport Baseline
from events.risk.scoring.habits.comparison cimport Comparison, compare
from events.risk.scoring.habits.learning cimport learn
from events.risk.scoring.habits.state cimport AgentState

cdef double HABITS_CAP, BEND, PAST_BEND

@cython.locals(prior_logit=double, seen=Comparison, broken=list, evidence=list, said=list, judged=bint, capped=bint, score=double)
cpdef fold(AgentState state, event, context, Baseline baseline=*)

@cython.locals(total=double, logit=double, score=double)
cpdef double combine(double prior_logit, list evidence, Py_ssize_t broken, bint capped) except? -1.0
