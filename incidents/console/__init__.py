"""Incidents in the console: what their pages show, and what officers do there."""
