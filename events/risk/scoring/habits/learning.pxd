cimport cython
from libc cimport math
from events.risk.scoring.habits.comparison cimport Comparison, compare
from events.risk.scoring.habits.paid cimport note_paid
from events.risk.scoring.habits.probation cimport meet, take_uncounted
from events.risk.scoring.habits.state cimport AgentState

cdef double LONG_RATE, MOST_READS, MOST_DAYS, NEW_RATE, PEAK_RATE, OUTFLOW_RATE, MOST_NEW, MOST_PEAK, MOST_OUTFLOW

cpdef learn(Comparison seen, band, bint trusted=*)

@cython.locals(state=AgentState, new=double, peak=double)
cdef _begin_day(Comparison seen)

@cython.locals(state=AgentState, out=double, usual=double, nearer=double)
cdef _begin_outflow(Comparison seen)

@cython.locals(state=AgentState)
cdef _last_minutes(Comparison seen)

@cython.locals(state=AgentState, share=double, weight=double)
cdef _habits(Comparison seen, bint trusted)

@cython.locals(state=AgentState, fading=double, before=double, names=list)
cdef _remember_names(Comparison seen, double weight, bint trusted)

@cython.locals(state=AgentState, least=double)
cdef _remember_places(Comparison seen, double weight, double fading, bint trusted)

@cython.locals(state=AgentState)
cdef _meet(Comparison seen)

@cython.locals(factor=double)
cdef _rescale(AgentState state, double now)
