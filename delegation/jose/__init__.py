"""Tokens and keys in JOSE form: JWS, JWKS, signing keys, claims."""
