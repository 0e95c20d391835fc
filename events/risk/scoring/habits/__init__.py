"""What the scorer remembers: an agent's state, a tenant's baseline, and how an event changes them."""

from events.risk.compiling import with_compiled

__path__ = with_compiled(__path__)
