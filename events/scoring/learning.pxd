cimport cython

from events.scoring.state cimport AgentState
from events.scoring.tables cimport Table
from events.scoring.view cimport View


cdef double MEAN_RATE, LONG_RATE


cpdef learn(AgentState state, event, facts, View seen, band, bint trusted=*)

cdef _last_minutes(AgentState state, event, facts, View seen)

@cython.locals(share=double, weight=double)
cdef _habits(AgentState state, event, facts, View seen, bint trusted)

@cython.locals(fading=double, least=double, names=list)
cdef _remember_names(AgentState state, event, View seen, double weight, bint trusted)

@cython.locals(count=double, rate=double, share=double, at=Py_ssize_t)
cdef _tried(AgentState state, Py_ssize_t kind, bint new)

@cython.locals(factor=double)
cdef _rescale(AgentState state, double now)
