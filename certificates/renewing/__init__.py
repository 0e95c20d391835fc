"""Renewals of blueprints: picked agents are brought up to date, and their certificates renewed."""
