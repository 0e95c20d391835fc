"""The formats of transparency logs (RFC 6962, C2SP): pure functions, no storage and no settings."""
