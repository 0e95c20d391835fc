"""Keys that never leave their token: the contract, the PKCS#11 backend, adaptors for `cryptography`."""

from compliance.keys.adaptors import HsmECPrivateKey, HsmRSAPrivateKey
from compliance.keys.base import (
    KeyBackend,
    KeyNotFound,
    KeyRef,
    KeyServiceNotConfigured,
    KeyServiceUnavailable,
    SignatureAlgorithm,
    StoredKey,
)
from compliance.keys.provisioning import make_shards
from compliance.keys.registry import absent_hosts, backend_for, private_key, reset

__all__ = [
    "HsmECPrivateKey",
    "HsmRSAPrivateKey",
    "KeyBackend",
    "KeyNotFound",
    "KeyRef",
    "KeyServiceNotConfigured",
    "KeyServiceUnavailable",
    "SignatureAlgorithm",
    "StoredKey",
    "absent_hosts",
    "backend_for",
    "make_shards",
    "private_key",
    "reset",
]
