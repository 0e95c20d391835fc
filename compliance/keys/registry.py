"""The key backend of each environment, made from settings once per process."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache

from django.conf import settings

from compliance.environments import Environment
from compliance.keys.adaptors import HsmECPrivateKey, HsmRSAPrivateKey, adapt
from compliance.keys.base import KeyBackend, KeyServiceNotConfigured
from compliance.keys.hosts.backend import HostedBackend
from compliance.keys.hosts.line import lines_to
from compliance.keys.lanes import Runner
from compliance.keys.module import module_at
from compliance.keys.pkcs11_backend import Pkcs11Backend
from compliance.keys.token import TokenConfig

logger = logging.getLogger(__name__)

_backends: dict[Environment, KeyBackend] = {}
_lock = threading.Lock()


def backend_for(environment: Environment) -> KeyBackend:
    """The environment's backend: its own tokens, the module or the key hosts shared. Touches no token before
    its first call.

    Raises `KeyServiceNotConfigured` when `PKCS11_MODULE` (without key hosts) or the environment's entry in
    `PKCS11_TOKENS` is missing.
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


def absent_hosts() -> list[int]:
    """The numbers of the key hosts that do not answer; none where each process opens the module itself."""
    lines = lines_to(settings.PKCS11_HOST_FOLDER, settings.PKCS11_HOSTS)
    return [line.number for line in lines if not line.is_there()]


def reset() -> None:
    """Forget the backends, so that changed settings count; for tests."""
    with _lock:
        _backends.clear()
    private_key.cache_clear()


def direct_backend(environment: Environment, *, runner: Callable[[], Runner] | None = None) -> Pkcs11Backend:
    """A backend that opens the module in this process; `runner` as in `Pkcs11Backend`.

    Raises as `backend_for()`.
    """
    label, pin = _main_token(environment)
    if not settings.PKCS11_MODULE:
        raise KeyServiceNotConfigured
    options = {} if runner is None else {"runner": runner}
    with _sound_settings():
        return Pkcs11Backend(
            module_at(settings.PKCS11_MODULE),
            TokenConfig(label, pin),
            shards=settings.PKCS11_SHARDS,
            **options,
        )


def _make(environment: Environment) -> KeyBackend:
    if not settings.PKCS11_HOSTS:
        return direct_backend(environment)
    label, _ = _main_token(environment)
    with _sound_settings():
        lines = lines_to(settings.PKCS11_HOST_FOLDER, settings.PKCS11_HOSTS)
        return HostedBackend(lines, environment, label, shards=settings.PKCS11_SHARDS)


def _main_token(environment: Environment) -> tuple[str, str]:
    entry = settings.PKCS11_TOKENS.get(environment.value)
    if not entry or not entry["label"]:
        raise KeyServiceNotConfigured
    return entry["label"], entry["pin"]


@contextmanager
def _sound_settings() -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        logger.error("KMS not configured: PKCS11_SHARDS: %s", error)
        raise KeyServiceNotConfigured from error
