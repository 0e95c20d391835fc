"""The append-only record of every state change and every issuance."""
