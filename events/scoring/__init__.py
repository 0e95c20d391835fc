"""How risky an agent's action is: a pure, explainable, online anomaly detector.

`fold(state, event, context, baseline)` scores one event and folds it into an agent's state; `assess()` leaves
the state it is given alone. No database, settings, clock or randomness: the same events in the same order
give the same numbers for one `MODEL_VERSION`.
"""

from compliance.compiling import with_compiled

__path__ = with_compiled(__path__)  # before what is imported from here

from agents.risk import HIGH, MEDIUM, band_of
from events.scoring.baseline import Baseline, decode_baseline, encode_baseline, pool
from events.scoring.contract import Assessment, Context, Event, FinancialScope, Verdict, normal_actions
from events.scoring.model import MODEL_VERSION, assess, fold, teach, with_day_total
from events.scoring.places import places_of
from events.scoring.reasons import Reason
from events.scoring.relearning import ORDINARY, has_taken_in, note_taken_in, relearn, teach_late, unlearn
from events.scoring.state import AgentState, StateUnreadable, decode_state, encode_state

__all__ = [
    "HIGH",
    "MEDIUM",
    "MODEL_VERSION",
    "ORDINARY",
    "AgentState",
    "Assessment",
    "Baseline",
    "Context",
    "Event",
    "FinancialScope",
    "Reason",
    "StateUnreadable",
    "Verdict",
    "assess",
    "band_of",
    "decode_baseline",
    "decode_state",
    "encode_baseline",
    "encode_state",
    "fold",
    "has_taken_in",
    "normal_actions",
    "note_taken_in",
    "places_of",
    "pool",
    "relearn",
    "teach",
    "teach_late",
    "unlearn",
    "with_day_total",
]
