"""The attestation of one agent: how it stood at a moment, by rows and the audit log."""
