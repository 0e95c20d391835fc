"""Trusted issuers: the OpenID providers whose ID tokens a tenant accepts as proof of who a human is."""
