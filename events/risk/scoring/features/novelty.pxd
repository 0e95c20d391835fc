cimport cython
from libc cimport math
from events.risk.scoring.habits.state cimport AgentState

cdef double PRIOR_RATE, PRIOR_TRIALS, MOST_TRIALS, MAX_RARITY, UNTRIED, FEW_TRIALS
cdef Py_ssize_t AIMED_KINDS

@cython.locals(trials=double, rate=double, assumed=double)
cpdef double rarity(AgentState state, Py_ssize_t kind) except? -1.0

@cython.locals(new=double, trials=double, count=double, kind=Py_ssize_t)
cpdef double aimed_rate(AgentState state) except? -1.0

@cython.locals(untried=double, share=double)
cpdef double novelty(AgentState state, Py_ssize_t kind) except? -1.0
