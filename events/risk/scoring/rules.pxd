cimport cython
from events.risk.scoring.comparison cimport Comparison

@cython.locals(found=list, weight=double)
cpdef list broken_rules(Comparison seen, context, outside)

@cython.locals(weight=double)
cpdef list scope_mismatch(Comparison seen, context, outside)

cpdef outside_scope(Comparison seen, context)
