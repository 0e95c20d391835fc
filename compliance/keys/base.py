"""The contract of a key backend, an HSM or a KMS; a URI names a key (RFC 7512 for PKCS#11 tokens)."""

import hashlib
import logging
import os
import re
import secrets
from abc import ABC, abstractmethod
from collections.abc import Collection
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
from compliance.keys.uri import InvalidUri, parse

logger = logging.getLogger(__name__)

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


def require_digest(digest: bytes) -> None:
    if len(digest) != DIGEST_OCTETS:
        raise ValueError(f"Keys sign digests of {DIGEST_OCTETS} octets, not {len(digest)}")


def require_message(message: bytes) -> None:
    if len(message) > MAX_MESSAGE:
        raise ValueError(f"Ed25519 keys sign up to {MAX_MESSAGE} octets, not {len(message)}")


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


class KeyBackend(ABC):
    """Generate, use and destroy non-exportable keys, from any thread and after a fork.

    Agents' keys lie in shards, numbered tokens beside the environment's main token, which holds all others.
    Every method ends within a bounded time, and may raise `KeyServiceUnavailable`, `KeyServiceNotConfigured`.
    """

    def __init__(self, main_label: str, *, shards: int) -> None:
        self.main_label = main_label
        try:
            self.wanted_shards = shard_labels(main_label, shards)
        except ValueError as error:
            logger.error("KMS not configured: PKCS11_SHARDS: %s", error)
            raise KeyServiceNotConfigured from error

    @abstractmethod
    def generate_in(self, token: str, bits: int, label: str, keep_public: bool) -> KeyRef:
        """Generate a key: RSA of `bits`, `P256` or `ED25519`; `keep_public` stores a public object too."""

    @abstractmethod
    def present_tokens(self) -> Collection[str]:
        """Return the labels of the environment's tokens that exist now."""

    def known_shards(self) -> list[str]:
        """Return the wanted shards that existed when this process last looked."""
        present = self.present_tokens() if self.wanted_shards else ()
        return [label for label in self.wanted_shards if label in present]

    @abstractmethod
    def seems_to_serve(self, token: str) -> bool:
        """Return whether the last call to the token did not fail."""

    def generate_rsa(self, bits: int = 2048, *, label: str, spread: bool = False) -> KeyRef:
        """Generate an RSA key that can only sign, in a shard if `spread`.

        Raises ValueError for a size not in `RSA_SIZES`.
        """
        if bits not in RSA_SIZES:
            raise ValueError(f"RSA keys have {RSA_SIZES} bits, not {bits}")
        if not spread:
            return self.generate_in(self.main_label, bits, label, keep_public=True)
        token = self._pick_shard()
        try:
            return self.generate_in(token, bits, label, keep_public=False)
        except KeyServiceUnavailable:
            other = self._pick_shard(besides=token)
            if other == token:
                raise
        return self.generate_in(other, bits, label, keep_public=False)

    def generate_ec(self, *, label: str) -> KeyRef:
        return self.generate_in(self.main_label, P256, label, keep_public=True)

    def generate_ed25519(self, *, label: str) -> KeyRef:
        return self.generate_in(self.main_label, ED25519, label, keep_public=True)

    @abstractmethod
    def make_wrapping_key(self, label: str) -> WrappingKeyRef:
        """Generate an AES-256 key that only wraps and unwraps; `destroy()` ends all that it wrapped."""

    @abstractmethod
    def generate_wrapped(self, wrapping: WrappingKeyRef, label: str) -> WrappedKey:
        """Generate an RSA-2048 key that only signs, and of which nothing is left but what is returned."""

    @abstractmethod
    def sign_wrapped(self, key: WrappedKey, digest: bytes) -> bytes:
        """Sign a digest by `RSA_SHA256` with a wrapped key.

        Raises `KeyMismatch` if the blob holds another key than `key.key`, `KeyNotFound` if the wrapping key
        is gone, and ValueError as `sign_digest`.
        """

    @abstractmethod
    def wrap_anew(self, wrapped: WrappedKey, to: WrappingKeyRef) -> WrappedKey:
        """Wrap a key under another wrapping key; raises as `sign_wrapped`."""

    @abstractmethod
    def sign_digest(self, uri: str, digest: bytes, algorithm: SignatureAlgorithm) -> bytes:
        """Sign a digest; raises `KeyNotFound`, and ValueError for a digest of another length."""

    @abstractmethod
    def sign_ed25519(self, uri: str, message: bytes) -> bytes:
        """Sign a message as it is, in 64 octets (pure Ed25519, RFC 8032 §5.1.6).

        Raises `KeyNotFound`, and ValueError for more than `MAX_MESSAGE` octets.
        """

    @abstractmethod
    def spki(self, uri: str) -> bytes:
        """Read the public key as SubjectPublicKeyInfo DER; raises `KeyNotFound`."""

    def public_key(self, uri: str) -> AnyPublicKey:
        return cast("AnyPublicKey", load_der_public_key(self.spki(uri)))

    @abstractmethod
    def destroy(self, uri: str) -> None:
        """Delete the key for good; raises `KeyNotFound` if neither half of it exists."""

    @abstractmethod
    def list_keys(self, label_prefix: str = "") -> list[StoredKey]:
        """List the keys whose label starts with the prefix, incomplete ones included, ordered by URI."""

    @abstractmethod
    def check(self) -> None:
        """Return if the key service serves now, else raise; cheap, and never answered from memory."""

    @abstractmethod
    def provision(self) -> int:
        """Make the missing places for spread keys, where settings allow it; return how many there are."""

    def problems(self) -> list[str]:
        present = self.present_tokens()
        absent = [label for label in self.wanted_shards if label not in present]
        if len(absent) in (0, len(self.wanted_shards)):
            return []
        return [f"{len(absent)} of {len(self.wanted_shards)} shards are missing: {', '.join(absent[:5])}"]

    def token_of(self, uri: str) -> str:
        """Return the label of the token that a key's URI names; `KeyNotFound` for another environment's."""
        try:
            token = parse(uri).token
        except InvalidUri as error:
            raise KeyNotFound from error
        return self.require_own(token)

    def require_own(self, token: str) -> str:
        """Return the label; raises `KeyNotFound` for another environment's token."""
        if token != self.main_label and not is_shard(token, of=self.main_label):
            logger.warning("Key URI names no token of this environment")
            raise KeyNotFound
        return token

    def sign(self, uri: str, data: bytes, algorithm: SignatureAlgorithm) -> bytes:
        """Hash here and sign: PKCS#1 v1.5, or ECDSA as DER (RFC 3279 §2.2.3); raises `KeyNotFound`."""
        return self.sign_digest(uri, hashlib.sha256(data).digest(), algorithm)

    def _pick_shard(self, *, besides: str = "") -> str:
        shards = [label for label in self.known_shards() if label != besides]
        serving = [label for label in shards if self.seems_to_serve(label)]
        return secrets.choice(serving or shards or [besides or self.main_label])


_kept: WeakSet[Any] = WeakSet()


def reset_in_children(owner: Any) -> None:
    """Call `owner.reset_after_fork()` in forked children: threads, locks and connections are the parent's."""
    _kept.add(owner)


def _reset_all() -> None:
    for owner in list(_kept):
        owner.reset_after_fork()


os.register_at_fork(after_in_child=_reset_all)
