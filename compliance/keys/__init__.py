"""Private keys that never leave their token: the `KeyBackend` contract, and the backends that keep it."""
