"""All that an event differs in from its agent's habits."""

from events.risk.scoring.contract import Context
from events.risk.scoring.features.actions import act_signals, object_signals, tool_signals
from events.risk.scoring.features.destinations import destination_signals
from events.risk.scoring.features.pace import pace_signals, volume_signals
from events.risk.scoring.features.spending import spending_signals
from events.risk.scoring.habits.baseline import Baseline
from events.risk.scoring.habits.comparison import Comparison
from events.risk.scoring.reasons import Signal
from events.risk.scoring.weights import TRANSACTIONS


def signals(seen: Comparison, context: Context, baseline: Baseline | None = None) -> list[Signal]:
    """Return every difference that may weigh something, in no particular order."""
    found = destination_signals(seen, context, baseline) if seen.aims else []
    found += object_signals(seen)
    found += act_signals(seen)
    if seen.has_tool:
        found += tool_signals(seen, context, baseline)
    if seen.event.action_type in TRANSACTIONS:
        found += spending_signals(seen, context)
    return found + pace_signals(seen) + volume_signals(seen)
