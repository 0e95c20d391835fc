"""Trusted issuers: whose ID tokens a tenant takes for the word of who a human is."""
