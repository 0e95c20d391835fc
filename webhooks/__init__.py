"""Signed notifications to the tenants' own endpoints; the database is the queue."""
