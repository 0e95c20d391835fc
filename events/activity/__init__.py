"""Whether agents are active by their events, and what follows where they have fallen silent."""
