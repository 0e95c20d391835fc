"""The key backend of each environment, made once per process; `PKCS11_HOSTS` chooses its class."""

import logging
import threading
from functools import lru_cache
from typing import cast

from cryptography.hazmat.primitives.asymmetric import rsa
from django.conf import settings

from compliance.core import environments
from compliance.core.environments import Environment
from compliance.keys.adaptors import HsmECPrivateKey, HsmRSAPrivateKey
from compliance.keys.backend import KeyBackend
from compliance.keys.base import KeyNotFound, PublicKey
from compliance.keys.hosts.backend import key_host_backend
from compliance.keys.pkcs11.backend import pkcs11_backend

logger = logging.getLogger(__name__)

_backends: dict[Environment, KeyBackend] = {}
_lock = threading.Lock()


def backend_for(environment: Environment) -> KeyBackend:
    """Return the environment's backend, which opens no token yet; raises `KeyServiceNotConfigured`."""
    with _lock:
        backend = _backends.get(environment)
        if backend is None:
            make = key_host_backend if settings.PKCS11_HOSTS else pkcs11_backend
            backend = _backends[environment] = make(environment)
        return backend


@lru_cache(maxsize=1_000)
def private_key(environment: Environment, uri: str) -> HsmRSAPrivateKey | HsmECPrivateKey:
    """Return a key that signs often (CA, tokens), its public key read once; raises as `public_key()`."""
    backend = backend_for(environment)
    public_key = cast("PublicKey", backend.public_key(uri))
    if isinstance(public_key, rsa.RSAPublicKey):
        return HsmRSAPrivateKey(backend, uri, public_key)
    return HsmECPrivateKey(backend, uri, public_key)


def rsa_private_key(uri: str) -> rsa.RSAPrivateKey:
    """Return an RSA key of the current environment; raises as `private_key()`."""
    return cast("rsa.RSAPrivateKey", private_key(environments.current(), uri))


def destroy_if_present(uri: str) -> None:
    """Destroy a key of the current environment, unless it is gone already; raises the other errors."""
    try:
        backend_for(environments.current()).destroy(uri)
    except KeyNotFound:
        logger.info("The key %s was already gone from its token", uri)


def reset() -> None:
    """Drop the backends, so that the next call reads the settings again; for tests."""
    with _lock:
        _backends.clear()
    private_key.cache_clear()
