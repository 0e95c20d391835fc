"""How well the scorer tells attacks from ordinary events: a replay of past events, and its measures."""
