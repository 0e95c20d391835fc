cimport cython
from libc cimport math
from events.risk.scoring.habits.comparison cimport Comparison

cdef double BURST_SLACK, MAX_BURST, MAX_FAILURES, SETTLED_HOURS, QUIET_HOUR, MAX_HOUR, SETTLED_DAYS
cdef double FRESH_SLACK, OUTFLOW_SLACK, MAX_VOLUME, ACTIVE_HOURS, NEW_ALLOWED, MAX_NEW

@cython.locals(excess=double, factor=double, weight=double, found=list)
cpdef list pace_signals(Comparison seen)

@cython.locals(excess=double, settled=double, surprise=double, weight=double, found=list)
cpdef list volume_signals(Comparison seen)

cdef double _surprise(double count, double expected) except? -1.0

@cython.locals(near=double)
cdef double _hour(Comparison seen) except? -1.0
