"""How unlike its agent's habits an event is: each difference as a signal with a weight in log-odds.

To add one: a function here that returns its signals, called in `evidence.py`, its types in the `.pxd` beside
it, its weight in `weights.py`, its words in `reasons.py` and `events/risk/words.py`. No weight is below zero,
so more difference never lowers a score, and what an event leaves out counts as new: leaving out a tool,
target or amount gains nothing.
"""

from events.risk.compiling import with_compiled

__path__ = with_compiled(__path__)
