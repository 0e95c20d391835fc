"""Requests for decisions: reading, deciding, answering."""
