"""The installation that comes before the stack: virtual environment, servers' programs, SoftHSM."""
