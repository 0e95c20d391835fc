"""Calls of the service: transport, errors, retries, and an operation for each endpoint."""
