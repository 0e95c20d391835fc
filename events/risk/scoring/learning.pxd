cimport cython
from libc cimport math
from events.risk.scoring.comparison cimport Comparison
from events.risk.scoring.state cimport AgentState
from events.risk.scoring.tables cimport meet, note_paid, take_uncounted

cdef double LONG_RATE, MOST_READS, MOST_DAYS, NEW_RATE, PEAK_RATE, OUTFLOW_RATE, MOST_NEW, MOST_PEAK, MOST_OUTFLOW

@cython.locals(root=double)
cpdef learn(Comparison seen, band, double budget=*, bint trusted=*)

cdef double CREDIT_RATE, SPENT, NEW, HALF_KNOWN, STRANGE_RATE

cpdef double share_unknown(double counted) except? -1.0

@cython.locals(state=AgentState, counted=double, unknown=double, weight=double, place=Py_ssize_t)
cdef _calibrate(Comparison seen, band, double budget)

@cython.locals(state=AgentState, new=double, peak=double)
cdef _begin_day(Comparison seen)

@cython.locals(state=AgentState, out=double, usual=double, nearer=double)
cdef _last_minutes(Comparison seen)

@cython.locals(state=AgentState, share=double, weight=double)
cdef _habits(Comparison seen, bint trusted)

@cython.locals(state=AgentState, fading=double, before=double, names=list)
cdef _remember_names(Comparison seen, double weight, bint trusted)

@cython.locals(state=AgentState, least=double)
cdef _remember_places(Comparison seen, double weight, double fading, bint trusted)

@cython.locals(state=AgentState)
cdef _meet(Comparison seen)
