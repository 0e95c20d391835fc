"""The wiring: what joins all rooms (development bootstrap, the played scenario)."""
