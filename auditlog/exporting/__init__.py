"""Exports of a tenant's entries with the proofs of each."""
