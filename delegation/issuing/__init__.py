"""Issuing tokens: what is read, what is asked for, and the transaction that a group of requests shares."""
