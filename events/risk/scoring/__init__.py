"""How risky an agent's action is: a pure, explainable, online anomaly detector.

`model.fold(state, event, context, baseline)` scores an event and folds it into the state. No database,
settings, clock or randomness: for one `MODEL_VERSION` the same events in the same order give the same
numbers. In the order of use: `details` reads an event's facts (by `keys`, `places`, `names`), `comparison`
compares them with the agent's state, `features`, `rules` and `marked` weigh the differences, `model` adds
them up and finds how rare so much is, `reasons` words them, and `learning` changes the state.
"""

from events.risk.compiling import with_compiled

__path__ = with_compiled(__path__)
