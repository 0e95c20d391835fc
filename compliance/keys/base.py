"""The contract of a key backend: what an HSM or a KMS does for the rest of the service.

A URI names a key (RFC 7512 for PKCS#11 tokens). `compliance/keys/tests/test_contract.py` tests every backend.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import cast

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_der_public_key

from compliance.core.errors import Unavailable

PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey
"""Of keys that sign digests: CAs, agents and tokens have them."""
AnyPublicKey = PublicKey | ed25519.Ed25519PublicKey

RSA_SIZES = (2048, 3072, 4096)
ED25519_OCTETS = 32
MAX_MESSAGE = 32 * 1024
"""Octets that Ed25519 signs at most: the message itself is sent to the token, not its digest."""


class KeyServiceUnavailable(Unavailable):
    """503: the key service cannot do the operation now; try again later."""

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
    """Where an agent's private key lies: in the HSM for good, or in the database, wrapped by the HSM."""

    RESIDENT = "resident"
    WRAPPED = "wrapped"


class WrapMechanism(StrEnum):
    """AES key wrap with padding (RFC 5649); modules older than PKCS#11 v3.0 have it under the second name."""

    KWP = "AES_KEY_WRAP_KWP"
    PAD = "AES_KEY_WRAP_PAD"


class SignatureAlgorithm(StrEnum):
    """Signature algorithms of keys; the value is the name that API clients see."""

    RSA_SHA256 = "RSASSA_PKCS1_V1_5_SHA_256"
    RSA_SHA384 = "RSASSA_PKCS1_V1_5_SHA_384"
    RSA_SHA512 = "RSASSA_PKCS1_V1_5_SHA_512"
    ECDSA_SHA256 = "ECDSA_SHA_256"

    @property
    def is_rsa(self) -> bool:
        return self is not SignatureAlgorithm.ECDSA_SHA256

    @property
    def hash_name(self) -> str:
        return f"sha{self.value[-3:]}"

    @property
    def digest_size(self) -> int:
        return int(self.value[-3:]) // 8

    def digest(self, data: bytes) -> bytes:
        return hashlib.new(self.hash_name, data).digest()

    def require_digest(self, digest: bytes) -> None:
        if len(digest) != self.digest_size:
            raise ValueError(f"{self} signs digests of {self.digest_size} octets, not {len(digest)}")


def require_message(message: bytes) -> None:
    if len(message) > MAX_MESSAGE:
        raise ValueError(f"Ed25519 keys sign up to {MAX_MESSAGE} octets, not {len(message)}")


def read_spki(spki: bytes) -> AnyPublicKey:
    return cast("AnyPublicKey", load_der_public_key(spki))


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
class Ed25519KeyRef:
    """A generated Ed25519 key: its URI and its public key in 32 octets (RFC 8032 §5.1.5)."""

    uri: str
    public: bytes

    @property
    def public_key(self) -> ed25519.Ed25519PublicKey:
        return ed25519.Ed25519PublicKey.from_public_bytes(self.public)


@dataclass(frozen=True)
class StoredKey:
    """The objects stored for one key; a public one alone is left over from an interruption."""

    uri: str
    label: str
    has_private: bool
    has_public: bool
    made_at: datetime | None = None  # if the key's id holds a time


class KeyBackend(ABC):
    """Generate, use and destroy non-exportable keys, from any thread and after a fork.

    Every method ends within a bounded time, and may raise `KeyServiceUnavailable`, `KeyServiceNotConfigured`.
    """

    @abstractmethod
    def generate_rsa(self, bits: int = 2048, *, label: str, spread: bool = False) -> KeyRef:
        """Generate an RSA key pair that can only sign; raises ValueError for a size not in `RSA_SIZES`.

        `spread` is for the many keys of agents: they are stored where they do not slow down others.
        """

    @abstractmethod
    def generate_ec(self, *, label: str) -> KeyRef:
        """Generate a P-256 key pair that can only sign."""

    @abstractmethod
    def generate_ed25519(self, *, label: str) -> Ed25519KeyRef:
        """Generate an Ed25519 key pair that can only sign."""

    @abstractmethod
    def make_wrapping_key(self, *, label: str) -> WrappingKeyRef:
        """Generate an AES-256 key that only wraps and unwraps; `destroy()` ends all that it wrapped."""

    @abstractmethod
    def adopt_wrapping_key(self, uri: str) -> WrappingKeyRef:
        """Describe a wrapping key made otherwise; raises `KeyNotFound`.

        Raises `KeyServiceNotConfigured` for a key that can be read, or used for more than wrapping.
        """

    @abstractmethod
    def generate_wrapped(self, wrapping: WrappingKeyRef, *, label: str) -> WrappedKey:
        """Generate an RSA-2048 key that only signs, and of which nothing is left but what is returned."""

    @abstractmethod
    def sign_wrapped(
        self, key: KeyRef, digest: bytes, algorithm: SignatureAlgorithm, read: Callable[[], WrappedKey]
    ) -> bytes:
        """Sign a digest with a wrapped key; `read` is called if the key service has not just used it.

        Raises `KeyMismatch` if what `read` returns holds another key than `key.spki`, `KeyNotFound` if the
        wrapping key is gone, and ValueError as `sign_digest`.
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
    def public_key(self, uri: str) -> AnyPublicKey:
        """Read the public key; raises `KeyNotFound`."""

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
    def problems(self) -> list[str]:
        """Describe each part of the key service that is missing, for an operator."""

    def provision(self) -> int:
        """Make the missing places for spread keys, where settings allow it; return how many there are."""
        return 0

    def sign(self, uri: str, data: bytes, algorithm: SignatureAlgorithm) -> bytes:
        """Hash and sign: RSA as in RFC 8017 §8.2 (PKCS#1 v1.5), ECDSA as DER (RFC 3279 §2.2.3).

        Only the digest is sent, so a large CRL costs no more than a small one. Raises `KeyNotFound`.
        """
        return self.sign_digest(uri, algorithm.digest(data), algorithm)
