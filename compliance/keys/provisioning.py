"""Makes the shards of an environment's token: once, up front, since processes see new tokens only when they
start their module anew.

Not every module can do that: where tokens are made with the vendor's own tools, make them there under the
labels that `shard_labels()` gives.
"""

import ctypes
import logging
from typing import Final

from django.conf import settings
from pkcs11 import PKCS11Error, TokenFlag

from compliance.environments import Environment
from compliance.keys.base import KeyServiceNotConfigured, KeyServiceUnavailable
from compliance.keys.hosts.backend import HostedBackend
from compliance.keys.module import Module, module_at
from compliance.keys.registry import backend_for
from compliance.keys.shards import LABEL_OCTETS, shard_labels
from compliance.keys.startup import startup_lock

logger = logging.getLogger(__name__)

CK_ULONG = ctypes.c_ulong
READ_WRITE: Final = 0x2 | 0x4
SECURITY_OFFICER: Final = 0


def make_shards(environment: Environment) -> int:
    """Make the environment's missing shards, with its user PIN; how many were made.

    0 without the setting PKCS11_SO_PIN. Raises `KeyServiceUnavailable` and `KeyServiceNotConfigured`.
    """
    backend = backend_for(environment)
    if not settings.PKCS11_SO_PIN:
        return 0
    if isinstance(backend, HostedBackend):
        return backend.make_shards(so_pin=settings.PKCS11_SO_PIN, divided=bool(settings.PKCS11_HOST_CONFS))
    entry = settings.PKCS11_TOKENS[environment.value]
    return make_tokens(
        module_at(settings.PKCS11_MODULE),
        shard_labels(entry["label"], settings.PKCS11_SHARDS),
        so_pin=settings.PKCS11_SO_PIN,
        user_pin=entry["pin"],
    )


def make_tokens(module: Module, labels: list[str], *, so_pin: str, user_pin: str) -> int:
    """Make those of the tokens that this process's module lacks; how many were made. 0 without a user PIN."""
    if not user_pin:
        return 0
    with startup_lock(f"{module.path}#shards"):
        module.restart(seen_epoch=module.epoch)
        with module.entered():
            present = module.tokens()
            missing = [label for label in labels if label not in present]
            for label in missing:
                _make(module, label, so_pin=so_pin.encode(), user_pin=user_pin.encode())
        if missing:
            module.restart(seen_epoch=module.epoch)
    return len(missing)


def _make(module: Module, label: str, *, so_pin: bytes, user_pin: bytes) -> None:
    """Initialise an empty slot as `label` and set its user PIN (PKCS#11 v2.40 §5.5 and §5.6)."""
    padded = label.encode().ljust(LABEL_OCTETS)
    slot = CK_ULONG(_free_slot(module))
    _call(module, "C_InitToken", slot, so_pin, CK_ULONG(len(so_pin)), padded)
    session = CK_ULONG()
    _call(module, "C_OpenSession", slot, CK_ULONG(READ_WRITE), None, None, ctypes.byref(session))
    try:
        _call(module, "C_Login", session, CK_ULONG(SECURITY_OFFICER), so_pin, CK_ULONG(len(so_pin)))
        _call(module, "C_InitPIN", session, user_pin, CK_ULONG(len(user_pin)))
    finally:
        _call(module, "C_CloseSession", session)


def _free_slot(module: Module) -> int:
    try:
        for slot in module.slots():
            if not slot.get_token().flags & TokenFlag.TOKEN_INITIALIZED:
                return int(slot.slot_id)
    except PKCS11Error as error:
        raise KeyServiceUnavailable from error
    logger.error("The PKCS#11 module has no free slot: make the shards with its vendor's tools")
    raise KeyServiceNotConfigured


def _call(module: Module, name: str, *arguments: object) -> None:
    function = ctypes.CFUNCTYPE(CK_ULONG)(getattr(module.functions, name))
    result = function(*arguments)
    if result != 0:
        logger.error("%s returned 0x%x", name, result)
        raise KeyServiceUnavailable
