"""Encryption at rest of what the service must read again: webhook secrets, kept answers."""

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings


class Undecryptable(RuntimeError):
    """None of ENCRYPTION_KEYS opens the text: a key was dropped before its data was re-encrypted."""


def _box() -> MultiFernet:
    return MultiFernet([Fernet(key) for key in settings.ENCRYPTION_KEYS])


def encrypt(plain: bytes) -> bytes:
    """Authenticated encryption under the newest of ENCRYPTION_KEYS."""
    return _box().encrypt(plain)


def decrypt(token: bytes) -> bytes:
    """What `encrypt` was given; raises `Undecryptable`."""
    try:
        return _box().decrypt(bytes(token))
    except InvalidToken as error:
        raise Undecryptable("ENCRYPTION_KEYS lacks the key of this secret") from error
