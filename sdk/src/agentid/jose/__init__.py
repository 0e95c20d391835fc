"""Strict JSON, base64 and JOSE: one algorithm, one spelling."""
