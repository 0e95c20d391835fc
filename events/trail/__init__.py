"""An agent's trail: what it did and what was done about it, in the order in which the service saw it."""
