"""Security keys and passkeys (WebAuthn) as a second factor."""
