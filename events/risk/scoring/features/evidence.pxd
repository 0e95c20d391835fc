cimport cython
from events.risk.scoring.features.actions cimport act_signals, object_signals, tool_signals
from events.risk.scoring.features.destinations cimport destination_signals
from events.risk.scoring.features.pace cimport pace_signals, volume_signals
from events.risk.scoring.features.spending cimport spending_signals
from events.risk.scoring.habits.baseline cimport Baseline
from events.risk.scoring.habits.comparison cimport Comparison

@cython.locals(found=list)
cpdef list signals(Comparison seen, context, Baseline baseline=*)
