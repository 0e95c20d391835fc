"""The contract of a key backend: operations of PKCS#11 tokens, run here or in a key host; keys have URIs."""

import hashlib
import logging
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from typing import TypeVar, TypeVarTuple, cast

from cryptography.hazmat.primitives.serialization import load_der_public_key

from compliance.keys import base
from compliance.keys.base import AnyPublicKey, KeyNotFound, KeyRef, SignatureAlgorithm, StoredKey
from compliance.keys.pkcs11 import operations, wrapping
from compliance.keys.pkcs11.token import TokenSession
from compliance.keys.uri import InvalidUri, parse

logger = logging.getLogger(__name__)

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")


class KeyBackend(ABC):
    """Generate, use and destroy non-exportable keys, from any thread and after a fork.

    Agents' keys lie in shards, numbered tokens beside the environment's main token, which holds all others.
    Every method ends within a bounded time, and may raise `KeyServiceUnavailable`, `KeyServiceNotConfigured`.
    """

    def __init__(self, main_label: str, *, shards: int) -> None:
        self.main_label = main_label
        try:
            self.wanted_shards = base.shard_labels(main_label, shards)
        except ValueError as error:
            logger.error("KMS not configured: PKCS11_SHARDS: %s", error)
            raise base.KeyServiceNotConfigured from error

    @abstractmethod
    def perform(
        self, token: str, operation: Callable[[TokenSession, *Arguments], Result], *arguments: *Arguments
    ) -> Result:
        """Run an operation with a session of the token, where that is.

        Raises what it raises, but `KeyNotFound` for its `KeyMissing`, and a 503 for its PKCS11Error.
        """

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
        if bits not in base.RSA_SIZES:
            raise ValueError(f"RSA keys have {base.RSA_SIZES} bits, not {bits}")
        if not spread:
            return self.perform(self.main_label, operations.generate, bits, label, True)
        token = self._pick_shard()
        try:
            return self.perform(token, operations.generate, bits, label, False)
        except base.KeyServiceUnavailable:
            other = self._pick_shard(besides=token)
            if other == token:
                raise
        return self.perform(other, operations.generate, bits, label, False)

    def generate_ec(self, *, label: str) -> KeyRef:
        return self.perform(self.main_label, operations.generate, base.P256, label, True)

    def generate_ed25519(self, *, label: str) -> KeyRef:
        return self.perform(self.main_label, operations.generate, base.ED25519, label, True)

    def make_wrapping_key(self, label: str) -> base.WrappingKeyRef:
        """Generate an AES-256 key that only wraps and unwraps; `destroy()` ends all that it wrapped."""
        return self.perform(self.main_label, wrapping.make_wrapping_key, label)

    def generate_wrapped(self, by: base.WrappingKeyRef, label: str) -> base.WrappedKey:
        """Generate an RSA-2048 key that only signs, and of which nothing is left but what is returned."""
        return self.perform(self.token_of(by.uri), wrapping.generate_wrapped, by, label)

    def sign_wrapped(self, key: base.WrappedKey, digest: bytes) -> bytes:
        """Sign a digest by `RSA_SHA256` with a wrapped key.

        Raises `KeyMismatch` if the blob holds another key than `key.key`, `KeyNotFound` if the wrapping key
        is gone, and ValueError as `sign_digest`.
        """
        base.require_signable(digest, SignatureAlgorithm.RSA_SHA256)
        return self.perform(self.token_of(key.wrapping.uri), wrapping.sign_wrapped, key, digest)

    def wrap_anew(self, wrapped: base.WrappedKey, to: base.WrappingKeyRef) -> base.WrappedKey:
        """Wrap a key under another wrapping key of the same token; raises as `sign_wrapped`."""
        token = self.token_of(wrapped.wrapping.uri)
        if self.token_of(to.uri) != token:
            raise KeyNotFound
        return self.perform(token, wrapping.wrap_anew, wrapped, to)

    def sign(self, uri: str, data: bytes, algorithm: SignatureAlgorithm) -> bytes:
        """Hash here and sign: PKCS#1 v1.5, or ECDSA as DER (RFC 3279 §2.2.3); raises `KeyNotFound`."""
        return self.sign_digest(uri, hashlib.sha256(data).digest(), algorithm)

    def sign_digest(self, uri: str, digest: bytes, algorithm: SignatureAlgorithm) -> bytes:
        """Sign a digest; raises `KeyNotFound`, and ValueError for a digest of another length."""
        base.require_signable(digest, algorithm)
        return self.perform(self.token_of(uri), operations.sign, uri, digest, algorithm)

    def sign_ed25519(self, uri: str, message: bytes) -> bytes:
        """Sign a message as it is, in 64 octets (pure Ed25519, RFC 8032 §5.1.6).

        Raises `KeyNotFound`, and ValueError for more than `MAX_MESSAGE` octets.
        """
        base.require_signable(message, None)
        return self.perform(self.token_of(uri), operations.sign, uri, message, None)

    def public_key(self, uri: str) -> AnyPublicKey:
        """Read the public key; raises `KeyNotFound`."""
        spki = self.perform(self.token_of(uri), operations.read, uri)
        return cast("AnyPublicKey", load_der_public_key(spki))

    def destroy(self, uri: str) -> None:
        """Delete the key for good; raises `KeyNotFound` if neither half of it exists."""
        self.perform(self.token_of(uri), operations.destroy, uri)

    def list_keys(self, label_prefix: str = "") -> list[StoredKey]:
        """List the keys whose label starts with the prefix, incomplete ones included, ordered by URI."""
        found: list[StoredKey] = []
        for token in self.present_tokens():
            found += self.perform(token, operations.list_keys, label_prefix)
        return sorted(found, key=lambda key: key.uri)

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
        if token != self.main_label and not base.is_shard(token, of=self.main_label):
            logger.warning("Key URI names no token of this environment")
            raise KeyNotFound
        return token

    def _pick_shard(self, *, besides: str = "") -> str:
        shards = [label for label in self.known_shards() if label != besides]
        serving = [label for label in shards if self.seems_to_serve(label)]
        return secrets.choice(serving or shards or [besides or self.main_label])
