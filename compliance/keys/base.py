"""What key backends share: errors, the types of keys, and tokens' names."""

import os
import re
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Any, Final, cast
from weakref import WeakSet

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_der_public_key
from django.conf import settings

from compliance.core.environments import Environment
from compliance.core.errors import Unavailable

PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey
"""Of keys that sign digests: CAs, agents and tokens have them."""
AnyPublicKey = PublicKey | ed25519.Ed25519PublicKey

MAX_SHARDS: Final = 100
LABEL_OCTETS: Final = 32  # of CK_TOKEN_INFO (PKCS#11 v2.40 §3.2)
P256: Final = 0  # in place of an RSA key's size
ED25519: Final = 1  # likewise
_NUMBER: Final = re.compile(r"-[0-9]{2}\Z")
RSA_SIZES = (2048, 3072, 4096)
DIGEST_OCTETS = 32  # SHA-256
MAX_MESSAGE = 32 * 1024
"""Octets that Ed25519 signs at most: the message itself is sent to the token, not its digest."""


class KeyServiceUnavailable(Unavailable):
    message = "KMS signing service unavailable"


class KeyServiceNotConfigured(Unavailable):
    """503: module, token or PIN are missing or wrong; an operator must act. The log has the reason."""

    message = "KMS not configured"


class KeyNotFound(Unavailable):
    """503: the token answers and lacks the key; an operator must act."""

    message = "The key is not in the key service"


class KeyMismatch(KeyNotFound):
    """503: what is stored as the wrapped key is not the key of the certificate; an operator must act."""

    message = "The stored key is not the certificate's"


class KeyStorage(StrEnum):
    """Storage of an agent's private key: in the HSM for good, or in the database, wrapped by the HSM."""

    RESIDENT = "resident"
    WRAPPED = "wrapped"


class WrapMechanism(StrEnum):
    """AES key wrap with padding (RFC 5649); modules older than PKCS#11 v3.0 have it under the second name."""

    KWP = "AES_KEY_WRAP_KWP"
    PAD = "AES_KEY_WRAP_PAD"


class SignatureAlgorithm(StrEnum):
    """Signature algorithms of keys; the value is the name that API clients see."""

    RSA_SHA256 = "RSASSA_PKCS1_V1_5_SHA_256"
    ECDSA_SHA256 = "ECDSA_SHA_256"


def require_signable(data: bytes, algorithm: SignatureAlgorithm | None) -> None:
    """Raise ValueError for what is no digest, or, without an algorithm, no message for an Ed25519 key."""
    if algorithm is None and len(data) > MAX_MESSAGE:
        raise ValueError(f"Ed25519 keys sign up to {MAX_MESSAGE} octets, not {len(data)}")
    if algorithm is not None and len(data) != DIGEST_OCTETS:
        raise ValueError(f"Keys sign digests of {DIGEST_OCTETS} octets, not {len(data)}")


@dataclass(frozen=True)
class KeyRef:
    """A generated key: its URI and its public key as SubjectPublicKeyInfo DER."""

    uri: str
    spki: bytes
    storage: KeyStorage = field(default=KeyStorage.RESIDENT, compare=False)

    @classmethod
    def of(cls, uri: str, public_key: AnyPublicKey, storage: KeyStorage = KeyStorage.RESIDENT) -> "KeyRef":
        spki = public_key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return cls(uri, spki, storage)

    @cached_property
    def public_key(self) -> PublicKey:
        return cast("PublicKey", load_der_public_key(self.spki))


@dataclass(frozen=True)
class WrappingKeyRef:
    """An AES-256 key of the HSM: its URI, and the mechanism of all that it has wrapped."""

    uri: str
    mechanism: WrapMechanism


@dataclass(frozen=True)
class WrappedKey:
    """An RSA key whose private half is `blob`, encrypted by the wrapping key; `key.uri` names no object."""

    key: KeyRef
    wrapping: WrappingKeyRef
    blob: bytes = field(repr=False)


@dataclass(frozen=True)
class StoredKey:
    """The objects stored for one key; a public one alone is left over from an interruption."""

    uri: str
    label: str
    has_private: bool
    has_public: bool
    made_at: datetime | None = None  # if the key's id holds a time


def shard_labels(label: str, count: int) -> list[str]:
    """Name `count` shards of the token `label`; ValueError if they are too many or the label too long."""
    if not 0 <= count <= MAX_SHARDS:
        raise ValueError(f"a token has up to {MAX_SHARDS} shards, not {count}")
    if count and len(label.encode()) > LABEL_OCTETS - len("-00"):
        raise ValueError(f"the label {label!r} leaves no room for a shard's number")
    return [f"{label}-{number:02}" for number in range(count)]


def is_shard(label: str, of: str) -> bool:
    """Return whether `label` names a shard of the token `of`, even one beyond the number now in use."""
    return label.startswith(of) and _NUMBER.fullmatch(label, len(of)) is not None


def main_token(environment: Environment) -> tuple[str, str]:
    """Return label and PIN of the environment's main token; raises `KeyServiceNotConfigured`."""
    entry = settings.PKCS11_TOKENS.get(environment.value)
    if not entry or not entry["label"]:
        raise KeyServiceNotConfigured
    return entry["label"], entry["pin"]


reset_in_children: Final[WeakSet[Any]] = WeakSet()
"""Owners of threads, locks or connections of the parent: forked children call their `reset_after_fork()`."""


def _reset_all() -> None:
    for owner in list(reset_in_children):
        owner.reset_after_fork()


os.register_at_fork(after_in_child=_reset_all)
