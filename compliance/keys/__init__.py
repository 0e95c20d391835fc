"""Private keys that never leave their token: the `KeyBackend` contract, and the backends that keep it."""

from compliance.keys.adaptors import HsmECPrivateKey, HsmEd25519PrivateKey
from compliance.keys.base import KeyNotFound, KeyRef, KeyStorage, SignatureAlgorithm, StoredKey
from compliance.keys.registry import backend_for, destroy_if_present, private_key, reset

__all__ = [
    "HsmECPrivateKey",
    "HsmEd25519PrivateKey",
    "KeyNotFound",
    "KeyRef",
    "KeyStorage",
    "SignatureAlgorithm",
]
__all__ += ["StoredKey", "backend_for", "destroy_if_present", "private_key", "reset"]
