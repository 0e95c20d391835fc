"""Sign an agent's requests with its own key (RFC 9421, Web Bot Auth), and its assertions for OAuth."""

from base64 import b64encode
from collections.abc import Generator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from re import search
from typing import Final, Self
from urllib.parse import urlsplit
from uuid import uuid4

import httpx
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from agentid.jose import b64url_encode
from agentid.keys import OwnKey

LIFE: Final = timedelta(minutes=1)  # of a signature or an assertion
_USUAL_PORTS: Final = {"http": ":80", "https": ":443"}


@dataclass(frozen=True)
class AgentKey(OwnKey):
    """An Ed25519 key; registered by `client.agent_keys.register(id, jwk=key.jwk, proof=key.proof)`."""

    private_key: Ed25519PrivateKey = field(repr=False)
    algorithm = "EdDSA"

    @classmethod
    def generate(cls) -> Self:
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def of(cls, key: object) -> Self | None:
        return cls(key) if isinstance(key, Ed25519PrivateKey) else None

    @property
    def jwk(self) -> dict[str, str]:
        octets = self.private_key.public_key().public_bytes_raw()
        return {"crv": "Ed25519", "kty": "OKP", "x": b64url_encode(octets)}

    def sign(self, octets: bytes) -> bytes:
        return self.private_key.sign(octets)

    def headers(
        self,
        method: str,
        url: str,
        *,
        signature_agent: str,
        body: bytes | None = None,
        nonce: str | None = None,
        legacy: bool = False,
        now: datetime | None = None,
    ) -> dict[str, str]:
        """The headers that sign one request; they cover method, authority, path, query and body.

        `signature_agent`: the https address of the domain with the key directory. `legacy`: in the form of
        earlier drafts, which some verifiers still need.
        """
        parts, made_at = urlsplit(url), int((now or datetime.now(UTC)).timestamp())
        found = {"Signature-Agent": f'"{signature_agent}"' if legacy else f'sig1="{signature_agent}"'}
        covered = {
            '"@method"': method,
            '"@authority"': parts.netloc.lower().removesuffix(_USUAL_PORTS.get(parts.scheme, "")),
            '"@path"': parts.path or "/",
            **({'"@query"': f"?{parts.query}"} if parts.query else {}),
            '"signature-agent"' if legacy else '"signature-agent";key="sig1"': f'"{signature_agent}"',
        }
        if body:
            found["Content-Digest"] = f"sha-256=:{b64encode(sha256(body).digest()).decode()}:"
            covered['"content-digest"'] = found["Content-Digest"]
        params = (
            f"({' '.join(covered)});created={made_at};expires={made_at + int(LIFE.total_seconds())}"
            f';keyid="{self.thumbprint}";alg="ed25519";nonce="{nonce or uuid4().hex}";tag="web-bot-auth"'
        )
        base = "\n".join(
            f"{name}: {value}" for name, value in {**covered, '"@signature-params"': params}.items()
        )
        found["Signature-Input"] = f"sig1={params}"
        found["Signature"] = f"sig1=:{b64encode(self.sign(base.encode())).decode()}:"
        return found

    def client_assertion(self, did: str, audience: str, *, now: datetime | None = None) -> str:
        """An assertion by which the agent authenticates at a token endpoint (RFC 7523 §2.2)."""
        made_at = int((now or datetime.now(UTC)).timestamp())
        claims = {
            "iss": did,
            "sub": did,
            "aud": audience,
            "jti": str(uuid4()),
            "iat": made_at,
            "exp": made_at + int(LIFE.total_seconds()),
        }
        return self.signed({"typ": "JWT", "alg": self.algorithm, "kid": self.thumbprint}, claims)


class SignatureAuth(httpx.Auth):
    """Signs each request, and tries once more with the nonce that a server asks for (RFC 9421 §5)."""

    requires_request_body = True

    def __init__(self, key: AgentKey, signature_agent: str) -> None:
        self._key = key
        self._signature_agent = signature_agent

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        response = yield self._signed(request)
        asked = search(r';nonce="([^"]+)"', response.headers.get("accept-signature", ""))
        if response.status_code == 401 and asked:
            yield self._signed(request, asked[1])

    def _signed(self, request: httpx.Request, nonce: str | None = None) -> httpx.Request:
        method, url, agent = request.method, str(request.url), self._signature_agent
        signed = self._key.headers(method, url, signature_agent=agent, body=request.content, nonce=nonce)
        request.headers.update(signed)
        return request
