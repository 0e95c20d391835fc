"""Actors of requests and their present names."""
