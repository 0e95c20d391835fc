"""Holders of tokens for tests: keys as an agent makes them, and the DPoP proofs it signs."""

import json
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any
from uuid import uuid4

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from compliance.core.clock import now
from compliance.core.encodings import b64url_encode
from delegation.jose.dpop import token_hash
from delegation.jose.holder_keys import thumbprint


def segment(value: Any) -> str:
    """A segment of a JWS: octets as they are, anything else as JSON."""
    return b64url_encode(value if isinstance(value, bytes) else json.dumps(value).encode())


@dataclass(frozen=True)
class Holder:
    """Someone with a private key; on P-256 unless told otherwise."""

    key: ec.EllipticCurvePrivateKey | Ed25519PrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1())
    )

    @cached_property
    def jwk(self) -> dict[str, str]:
        if isinstance(self.key, Ed25519PrivateKey):
            octets = self.key.public_key().public_bytes_raw()
            return {"kty": "OKP", "crv": "Ed25519", "x": b64url_encode(octets)}
        numbers = self.key.public_key().public_numbers()
        x, y = (b64url_encode(number.to_bytes(32, "big")) for number in (numbers.x, numbers.y))
        return {"kty": "EC", "crv": "P-256", "x": x, "y": y}

    @property
    def jkt(self) -> str:
        return thumbprint(self.jwk)

    def proof(
        self,
        method: str = "POST",
        uri: str = "https://api.example/v1/things",
        *,
        token: str | None = None,
        at: datetime | None = None,
        header: dict[str, Any] | None = None,
        **claims: Any,
    ) -> str:
        """A proof; `header` and `claims` change members, and None leaves one out."""
        algorithm = "EdDSA" if isinstance(self.key, Ed25519PrivateKey) else "ES256"
        said = {
            "jti": str(uuid4()),
            "htm": method,
            "htu": uri,
            "iat": int((at or now()).timestamp()),
            "ath": None if token is None else token_hash(token),
            **claims,
        }
        return self.signed({"typ": "dpop+jwt", "alg": algorithm, "jwk": self.jwk, **(header or {})}, said)

    def signed(self, header: Any, claims: Any) -> str:
        """A compact JWS; members that are None are left out."""
        parts = [
            {name: value for name, value in part.items() if value is not None}
            if isinstance(part, dict)
            else part
            for part in (header, claims)
        ]
        text = ".".join(map(segment, parts))
        return f"{text}.{b64url_encode(self.sign(text.encode()))}"

    def sign(self, message: bytes) -> bytes:
        """A signature in the form of JWS."""
        if isinstance(self.key, Ed25519PrivateKey):
            return self.key.sign(message)
        r, s = decode_dss_signature(self.key.sign(message, ec.ECDSA(SHA256())))
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")
