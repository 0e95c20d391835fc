"""Agents' own keys for signing requests, the directory of a tenant's keys, and how signatures are read."""
