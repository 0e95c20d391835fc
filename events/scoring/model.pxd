cimport cython

from events.scoring.baseline cimport Baseline
from events.scoring.state cimport AgentState
from events.scoring.view cimport View


@cython.locals(prior_logit=double, seen=View, broken=list, evidence=list, judged=bint, score=double)
cpdef fold(AgentState state, event, context, Baseline baseline=*)

@cython.locals(after=AgentState)
cpdef assess(AgentState state, event, context, Baseline baseline=*)
