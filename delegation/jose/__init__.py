"""Tokens and public keys in JOSE form: JWS, JWKS, DPoP proofs, claims."""
