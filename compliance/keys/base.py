"""The contract of a key backend: what any HSM or KMS must do for the rest of the service.

A key is named by its URI (RFC 7512 for PKCS#11 tokens) and is never seen: backends generate, sign and
destroy. `compliance/keys/tests/test_contract.py` is the contract as a test suite.
"""

import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import cast

from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_der_public_key

from compliance.errors import Unavailable

PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey

RSA_SIZES = (2048, 3072, 4096)


class KeyServiceUnavailable(Unavailable):
    """503: the token can't be reached or can't do the operation now; transient."""

    message = "KMS signing service unavailable"


class KeyServiceNotConfigured(Unavailable):
    """503: module, token or PIN are missing or wrong; an operator must act. The log has the reason."""

    message = "KMS not configured"


class KeyNotFound(Unavailable):
    """503: the token answers and does not hold the key; retrying will not help, an operator must look."""

    message = "The key is not in the key service"


def require_rsa_size(bits: int) -> None:
    """ValueError for a size that is not one of `RSA_SIZES`."""
    if bits not in RSA_SIZES:
        raise ValueError(f"RSA keys have {RSA_SIZES} bits, not {bits}")


class SignatureAlgorithm(StrEnum):
    """What a key may sign with; the value is the name shown to API clients."""

    RSA_SHA256 = "RSASSA_PKCS1_V1_5_SHA_256"
    RSA_SHA384 = "RSASSA_PKCS1_V1_5_SHA_384"
    RSA_SHA512 = "RSASSA_PKCS1_V1_5_SHA_512"
    ECDSA_SHA256 = "ECDSA_SHA_256"

    @property
    def is_rsa(self) -> bool:
        return self is not SignatureAlgorithm.ECDSA_SHA256

    @property
    def hash_name(self) -> str:
        """The digest's name in `hashlib`."""
        return f"sha{self.value[-3:]}"

    @property
    def digest_size(self) -> int:
        """Octets of the digest that `KeyBackend.sign_digest` takes."""
        return int(self.value[-3:]) // 8

    def require_digest(self, digest: bytes) -> None:
        """ValueError for a digest of another length."""
        if len(digest) != self.digest_size:
            raise ValueError(f"{self} signs digests of {self.digest_size} octets, not {len(digest)}")


@dataclass(frozen=True)
class KeyRef:
    """A generated key: its URI and its public half as SubjectPublicKeyInfo DER."""

    uri: str
    spki: bytes

    @classmethod
    def of(cls, uri: str, public_key: PublicKey) -> "KeyRef":
        return cls(uri, public_key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))

    @cached_property
    def public_key(self) -> PublicKey:
        """The public half as a `cryptography` object."""
        return cast("PublicKey", load_der_public_key(self.spki))


@dataclass(frozen=True)
class StoredKey:
    """What a token holds under one key id, for reconciliation. `made_at` is None where the id does not tell.

    A public half alone is what a torn generation or destruction left; a private one needs no stored public.
    """

    uri: str
    label: str
    has_private: bool
    has_public: bool
    made_at: datetime | None = None

    @property
    def is_complete(self) -> bool:
        return self.has_private


class KeyBackend(ABC):
    """Generates, uses and destroys non-exportable keys; safe to share between threads and to carry over a
    fork.

    Every method raises `KeyServiceUnavailable` when the token can't serve, `KeyServiceNotConfigured` when it
    was never set up properly, and returns or raises within a bounded time.
    """

    @abstractmethod
    def generate_rsa(self, bits: int = 2048, *, label: str, spread: bool = False) -> KeyRef:
        """Make a key pair that can only sign; `bits` is one of `RSA_SIZES`, `label` is for people and
        listings. `spread` is for keys of which there will be many: they go where they don't slow others.
        """

    @abstractmethod
    def generate_ec(self, *, label: str) -> KeyRef:
        """Make a P-256 key pair that can only sign."""

    @abstractmethod
    def sign_digest(self, uri: str, digest: bytes, algorithm: SignatureAlgorithm) -> bytes:
        """Sign a digest made with the algorithm's hash; as `sign()`. ValueError for a digest of another
        length.
        """

    @abstractmethod
    def public_key(self, uri: str) -> PublicKey:
        """The public half; raises `KeyNotFound`."""

    @abstractmethod
    def destroy(self, uri: str) -> None:
        """Remove both halves for good; raises `KeyNotFound` when neither is there."""

    @abstractmethod
    def list_keys(self, label_prefix: str = "") -> list[StoredKey]:
        """Everything held under labels that start so, torn pairs included, ordered by URI."""

    @abstractmethod
    def shards(self) -> dict[str, bool]:
        """The places that `spread` keys are meant to go to, each with whether it is there."""

    @abstractmethod
    def check(self) -> None:
        """Return if the token serves now, else raise; cheap, and never answers from memory alone."""

    def sign(self, uri: str, data: bytes, algorithm: SignatureAlgorithm) -> bytes:
        """Hash and sign: RSA as in RFC 8017 §8.2 (PKCS#1 v1.5), ECDSA as DER (RFC 3279 §2.2.3).

        Only the digest travels to the token, so a large CRL costs as little as a small one.
        Raises `KeyNotFound`; ValueError when the key is of another kind than the algorithm's.
        """
        return self.sign_digest(uri, hashlib.new(algorithm.hash_name, data).digest(), algorithm)
