cimport cython
from libc cimport math
from events.risk.scoring.features.novelty cimport novelty, rarity
from events.risk.scoring.habits.baseline cimport Baseline
from events.risk.scoring.habits.comparison cimport Comparison

cdef double WAS_READ, ACT_HALF, ACT_TRIALS, MAX_SELDOM, ON_SOMETHING_NEW, READING_COUNTS, DECLARED
cdef double SURPRISE_SLACK, MAX_SURPRISE

@cython.locals(weight=double, share=double, found=list)
cpdef list object_signals(Comparison seen)

@cython.locals(done=double, seldom=double, weight=double)
cpdef list act_signals(Comparison seen)

@cython.locals(counts=double, excess=double, strange=double, weight=double, found=list)
cpdef list tool_signals(Comparison seen, context, Baseline baseline)
