"""Certificates of agents: the chain, the identity they certify, and their revocation by lists or OCSP."""
