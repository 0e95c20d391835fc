"""Behavioural events: ingest, risk, and what follows from it."""
