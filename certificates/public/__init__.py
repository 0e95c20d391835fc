"""Public questions: verify a certificate, resolve a DID; and the check of a message."""
