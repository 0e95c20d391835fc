"""How risky an agent's action is: a pure, explainable, online anomaly detector.

`model.fold(state, event, context, baseline)` scores an event and folds it into the state. No database,
settings, clock or randomness: for one `MODEL_VERSION` the same events in the same order give the same
numbers.
"""

from events.risk.compiling import with_compiled

__path__ = with_compiled(__path__)
