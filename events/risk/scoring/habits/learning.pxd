cimport cython
from libc cimport math
from events.risk.scoring.habits.comparison cimport Comparison, compare
from events.risk.scoring.habits.state cimport AgentState

cdef double LONG_RATE

cpdef learn(Comparison seen, band, bint trusted=*)

@cython.locals(state=AgentState)
cdef _last_minutes(Comparison seen)

@cython.locals(state=AgentState, share=double, weight=double)
cdef _habits(Comparison seen, bint trusted)

@cython.locals(state=AgentState, fading=double, least=double, names=list)
cdef _remember_names(Comparison seen, double weight, bint trusted)

@cython.locals(factor=double)
cdef _rescale(AgentState state, double now)
