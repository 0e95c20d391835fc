"""Encryption at rest of what the service must read again: webhook secrets, kept answers; derived keys."""

import base64

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings


class Undecryptable(RuntimeError):
    """None of ENCRYPTION_KEYS opens the text: a key was dropped before its data was re-encrypted."""


def encrypt(plain: bytes) -> bytes:
    """Authenticated encryption under the newest of ENCRYPTION_KEYS."""
    return Fernet(settings.ENCRYPTION_KEYS[0]).encrypt(plain)


def decrypt(token: bytes) -> bytes:
    """Return the plaintext of what `encrypt` returned; raises `Undecryptable`."""
    try:
        return MultiFernet([Fernet(key) for key in settings.ENCRYPTION_KEYS]).decrypt(bytes(token))
    except InvalidToken as error:
        raise Undecryptable("ENCRYPTION_KEYS lacks the key of this secret") from error


def derived_keys(purpose: str) -> list[bytes]:
    """Keys of 32 octets that serve `purpose` alone, one from each of ENCRYPTION_KEYS, newest first."""
    return [
        HKDF(SHA256(), length=32, salt=None, info=purpose.encode()).derive(base64.urlsafe_b64decode(key))
        for key in settings.ENCRYPTION_KEYS
    ]
