"""Keys that an agent makes itself, and shows that it holds (DPoP, RFC 9449)."""

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, Self
from uuid import uuid4

import httpx
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from agentid import jose
from agentid.errors import ConfigurationError
from agentid.jose import P256_ORDER, b64url_encode
from agentid.verify.proofs import KIND, target, token_hash


class OwnKey(ABC):
    """A key that an agent made itself, kept in a file."""

    private_key: ec.EllipticCurvePrivateKey | Ed25519PrivateKey
    algorithm: ClassVar[str]

    @classmethod
    @abstractmethod
    def generate(cls) -> Self: ...

    @classmethod
    @abstractmethod
    def of(cls, key: object) -> Self | None:
        """The key if it is of this kind."""

    @property
    @abstractmethod
    def jwk(self) -> dict[str, str]:
        """The public half (RFC 7517), its members in lexical order."""

    @abstractmethod
    def sign(self, octets: bytes) -> bytes:
        """A signature in the form of JWS."""

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read a key from PEM. Raises: OSError, ConfigurationError for another kind of key."""
        try:
            key = serialization.load_pem_private_key(Path(path).read_bytes(), None)
        except (ValueError, TypeError):
            raise ConfigurationError(f"{path}: not an unencrypted private key in PEM") from None
        found = cls.of(key)
        if found is None:
            raise ConfigurationError(f"{path}: not a key for {cls.algorithm}")
        return found

    @classmethod
    def load_or_generate(cls, path: Path | str) -> Self:
        """The key of this file, made first if there is none; of several processes all get the same."""
        with suppress(FileExistsError):
            cls.generate().save(path)
        return cls.load(path)

    def save(self, path: Path | str) -> None:
        """Write the key as PEM that only its owner may read. Raises: FileExistsError, OSError."""
        pem = self.private_key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        whole = Path(f"{path}.{uuid4()}")
        with os.fdopen(os.open(whole, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(pem)
        try:
            # A link appears at once and whole, and never replaces a key.
            os.link(whole, path)
        finally:
            whole.unlink()

    @property
    def thumbprint(self) -> str:
        """The RFC 7638 thumbprint."""
        return jose.thumbprint(self.jwk)

    def proof(
        self,
        method: str,
        url: str,
        *,
        access_token: str | None = None,
        nonce: str | None = None,
        now: datetime | None = None,
    ) -> str:
        """A proof for one request; with `access_token` for the use of that token."""
        claims = {
            "jti": str(uuid4()),
            "htm": method,
            "htu": target(url),
            "iat": int((now or datetime.now(UTC)).timestamp()),
        }
        claims |= {"ath": token_hash(access_token)} if access_token is not None else {}
        claims |= {"nonce": nonce} if nonce is not None else {}
        return self.signed({"typ": KIND, "alg": self.algorithm, "jwk": self.jwk}, claims)

    def signed(self, header: dict[str, Any], claims: dict[str, Any]) -> str:
        """A compact JWS."""
        parts = (json.dumps(each, separators=(",", ":")).encode() for each in (header, claims))
        text = ".".join(map(b64url_encode, parts))
        return f"{text}.{b64url_encode(self.sign(text.encode()))}"


@dataclass(frozen=True)
class DpopKey(OwnKey):
    """A key on P-256; its `thumbprint` is what a token is bound to (`cnf.jkt`)."""

    private_key: ec.EllipticCurvePrivateKey = field(repr=False)
    algorithm = "ES256"

    @classmethod
    def generate(cls) -> Self:
        return cls(ec.generate_private_key(ec.SECP256R1()))

    @classmethod
    def of(cls, key: object) -> Self | None:
        is_fit = isinstance(key, ec.EllipticCurvePrivateKey) and isinstance(key.curve, ec.SECP256R1)
        return cls(key) if is_fit else None  # type: ignore[arg-type]

    @property
    def jwk(self) -> dict[str, str]:
        return jose.public_jwk(self.private_key.public_key())

    def sign(self, octets: bytes) -> bytes:
        r, s = decode_dss_signature(self.private_key.sign(octets, ec.ECDSA(hashes.SHA256())))
        return r.to_bytes(32) + min(s, P256_ORDER - s).to_bytes(32)  # with the lower s


class DpopAuth(httpx.Auth):
    """Adds `DPoP` to each request, and tries once more with the nonce that a server asks for (RFC 9449 §8).

    With a `token`, requests carry it as `Authorization: DPoP`; without one, as to `/oauth/token`, the
    request's own `Authorization` stays.
    """

    def __init__(self, key: DpopKey, token: str | None = None) -> None:
        self._key = key
        self._token = token
        self._nonces: dict[str, str] = {}

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        if self._token is not None:
            request.headers["Authorization"] = f"DPoP {self._token}"
        server, url = request.url.netloc.decode(), str(request.url)
        for _ in range(2):
            known = self._nonces.get(server)
            proof = self._key.proof(request.method, url, access_token=self._token, nonce=known)
            request.headers["DPoP"] = proof
            response = yield request
            if (nonce := response.headers.get("dpop-nonce")) is None:
                return
            self._nonces[server] = nonce
            # In OAuth's error (§8), where the body is not read, or in a challenge (§9).
            challenge = response.headers.get("www-authenticate", "") if response.status_code == 401 else ""
            if "use_dpop_nonce" not in challenge and response.status_code != 400:
                return

    def __repr__(self) -> str:
        return f"DpopAuth({self._key.thumbprint!r})"
