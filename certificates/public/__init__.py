"""What anyone may ask: verify a certificate or a message, resolve a DID."""
