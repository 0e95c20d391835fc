"""An environment's main token and its shards: numbered tokens beside it that hold agents' keys."""

import logging
import re
import secrets
from abc import abstractmethod
from collections.abc import Collection
from typing import Final

from django.conf import settings

from compliance.core.environments import Environment
from compliance.keys import base
from compliance.keys.base import KeyNotFound, KeyRef, KeyServiceNotConfigured, KeyServiceUnavailable
from compliance.keys.uri import InvalidUri, parse

logger = logging.getLogger(__name__)

MAX_SHARDS: Final = 100
LABEL_OCTETS: Final = 32  # of CK_TOKEN_INFO (PKCS#11 v2.40 §3.2)
P256: Final = 0  # in place of an RSA key's size
ED25519: Final = 1  # likewise

_NUMBER = re.compile(r"-[0-9]{2}\Z")


def shard_labels(label: str, count: int) -> list[str]:
    """Name `count` shards of the token `label`; ValueError if they are too many or the label too long."""
    if not 0 <= count <= MAX_SHARDS:
        raise ValueError(f"a token has up to {MAX_SHARDS} shards, not {count}")
    if count and len(label.encode()) > LABEL_OCTETS - len("-00"):
        raise ValueError(f"the label {label!r} leaves no room for a shard's number")
    return [f"{label}-{number:02}" for number in range(count)]


def is_shard(label: str, of: str) -> bool:
    """Whether `label` names a shard of the token `of`, even one beyond the number now in use."""
    return label.startswith(of) and _NUMBER.fullmatch(label, len(of)) is not None


def main_token(environment: Environment) -> tuple[str, str]:
    """Return label and PIN of the environment's main token; raises `KeyServiceNotConfigured`."""
    entry = settings.PKCS11_TOKENS.get(environment.value)
    if not entry or not entry["label"]:
        raise KeyServiceNotConfigured
    return entry["label"], entry["pin"]


class ShardedBackend(base.KeyBackend):
    """Store agents' keys in an existing shard picked at random, others in the main token."""

    def __init__(self, main_label: str, *, shards: int) -> None:
        self.main_label = main_label
        try:
            self.wanted_shards = shard_labels(main_label, shards)
        except ValueError as error:
            logger.error("KMS not configured: PKCS11_SHARDS: %s", error)
            raise KeyServiceNotConfigured from error

    @abstractmethod
    def generate_in(self, token: str, bits: int, *, label: str, keep_public: bool) -> KeyRef:
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
        """Whether the last call to the token did not fail."""

    def generate_rsa(self, bits: int = 2048, *, label: str, spread: bool = False) -> KeyRef:
        if bits not in base.RSA_SIZES:
            raise ValueError(f"RSA keys have {base.RSA_SIZES} bits, not {bits}")
        if not spread:
            return self.generate_in(self.main_label, bits, label=label, keep_public=True)
        token = self._pick_shard()
        try:
            return self.generate_in(token, bits, label=label, keep_public=False)
        except KeyServiceUnavailable:
            other = self._pick_shard(besides=token)
            if other == token:
                raise
        return self.generate_in(other, bits, label=label, keep_public=False)

    def generate_ec(self, *, label: str) -> KeyRef:
        return self.generate_in(self.main_label, P256, label=label, keep_public=True)

    def generate_ed25519(self, *, label: str) -> base.Ed25519KeyRef:
        key = self.generate_in(self.main_label, ED25519, label=label, keep_public=True)
        # The public key is the end of its SubjectPublicKeyInfo (RFC 8410 §4).
        return base.Ed25519KeyRef(key.uri, key.spki[-base.ED25519_OCTETS :])

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

    def _pick_shard(self, *, besides: str = "") -> str:
        shards = [label for label in self.known_shards() if label != besides]
        serving = [label for label in shards if self.seems_to_serve(label)]
        return secrets.choice(serving or shards or [besides or self.main_label])
