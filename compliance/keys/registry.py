"""The key backend of each environment, made from settings once per process."""

import logging
import threading
from functools import lru_cache

from django.conf import settings

from compliance.environments import Environment
from compliance.keys.adaptors import HsmECPrivateKey, HsmRSAPrivateKey, adapt
from compliance.keys.base import KeyBackend, KeyServiceNotConfigured
from compliance.keys.module import module_at
from compliance.keys.pkcs11_backend import Pkcs11Backend
from compliance.keys.token import TokenConfig

logger = logging.getLogger(__name__)

_backends: dict[Environment, KeyBackend] = {}
_lock = threading.Lock()


def backend_for(environment: Environment) -> KeyBackend:
    """The environment's backend: its own tokens, the module shared. Touches no token before its first call.

    Raises `KeyServiceNotConfigured` when `PKCS11_MODULE` or the environment's entry in `PKCS11_TOKENS` is
    missing.
    """
    with _lock:
        backend = _backends.get(environment)
        if backend is None:
            backend = _backends[environment] = _make(environment)
        return backend


@lru_cache(maxsize=1_000)
def private_key(environment: Environment, uri: str) -> HsmRSAPrivateKey | HsmECPrivateKey:
    """A key of the environment's token as a `cryptography` private key; reads its public half once per
    process.

    Raises as `KeyBackend.public_key`. For keys that sign again and again (CA, tokens), not for agents' keys.
    """
    backend = backend_for(environment)
    return adapt(backend, uri, backend.public_key(uri))


def reset() -> None:
    """Forget the backends, so that changed settings count; for tests."""
    with _lock:
        _backends.clear()
    private_key.cache_clear()


def _make(environment: Environment) -> KeyBackend:
    entry = settings.PKCS11_TOKENS.get(environment.value)
    if not settings.PKCS11_MODULE or not entry or not entry["label"]:
        raise KeyServiceNotConfigured
    main = TokenConfig(entry["label"], entry["pin"])
    try:
        return Pkcs11Backend(module_at(settings.PKCS11_MODULE), main, shards=settings.PKCS11_SHARDS)
    except ValueError as error:
        logger.error("KMS not configured: PKCS11_SHARDS: %s", error)
        raise KeyServiceNotConfigured from error
