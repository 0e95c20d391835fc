cimport cython

from events.scoring.reasons cimport Signal


cdef double BEND, PAST_BEND, COLD_CAP


cdef double RULE_FLOOR, MORE_RULES


cpdef double floor_of(Py_ssize_t broken) except? -1.0

cpdef double rule_weight(double prior_logit) except? -1.0

@cython.locals(total=double, logit=double, score=double, signal=Signal)
cpdef double combine(double prior_logit, list evidence, Py_ssize_t broken, bint capped) except? -1.0
