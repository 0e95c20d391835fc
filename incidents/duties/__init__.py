"""The reports that laws ask for after an incident: terms, clocks, and what officers state about them."""
