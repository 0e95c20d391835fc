"""Drafts of the notifications that laws ask for after an incident, filled from the record."""
