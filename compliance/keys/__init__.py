"""Private keys that never leave their token: the `KeyBackend` contract, and the backends that keep it."""

from compliance.keys.adaptors import HsmECPrivateKey
from compliance.keys.base import KeyNotFound, KeyRef, SignatureAlgorithm, StoredKey
from compliance.keys.registry import backend_for, private_key, reset

__all__ = ["HsmECPrivateKey", "KeyNotFound", "KeyRef", "SignatureAlgorithm", "StoredKey"]
__all__ += ["backend_for", "private_key", "reset"]
