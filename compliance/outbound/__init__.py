"""Requests to addresses that others gave: the HTTP client, and the loop of processes that send."""
