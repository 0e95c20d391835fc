"""Ready-made requests: tokens issued, exchanged, verified, introspected; messages signed."""

import base64
import hashlib
import json
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import count, cycle
from urllib.parse import urlencode
from uuid import uuid4

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from bench.harness.load import Source
from bench.harness.traffic import TOOLS
from bench.trust.run import TrustRun

FORM = "application/x-www-form-urlencoded"
JSON = "application/json"
DEEPEST = 8
ROOT = {"sub": "alice@example.com", "type": "human"}
TOKENS_VERIFIED = 2_500
"""Different tokens, more than two processes remember, so that each signature is checked anew."""
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"


class ProofMaker:
    """An agent's key, and a new DPoP proof for each request."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())

    @cached_property
    def _jwk(self) -> dict[str, str]:
        """The public key, its members in the order of a thumbprint."""
        numbers = self._key.public_key().public_numbers()
        x, y = (_b64url(number.to_bytes(32, "big")) for number in (numbers.x, numbers.y))
        return {"crv": "P-256", "kty": "EC", "x": x, "y": y}

    @cached_property
    def _header(self) -> str:
        return _b64url(json.dumps({"typ": "dpop+jwt", "alg": "ES256", "jwk": self._jwk}).encode())

    @property
    def jkt(self) -> str:
        """The key's thumbprint (RFC 7638)."""
        text = json.dumps(self._jwk, separators=(",", ":"))
        return _b64url(hashlib.sha256(text.encode()).digest())

    def proof(self, method: str, url: str, token: str | None = None) -> str:
        """A proof for one request made now."""
        claims = {"jti": str(uuid4()), "htm": method, "htu": url, "iat": int(time.time())}
        if token is not None:
            claims["ath"] = _b64url(hashlib.sha256(token.encode()).digest())
        text = f"{self._header}.{_b64url(json.dumps(claims).encode())}"
        r, s = decode_dss_signature(self._key.sign(text.encode(), ec.ECDSA(SHA256())))
        return f"{text}.{_b64url(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"


def _b64url(octets: bytes) -> str:
    return base64.urlsafe_b64encode(octets).rstrip(b"=").decode()


def request(path: str, body: str, *, key: str = "", content_type: str = JSON, more: str = "") -> bytes:
    """A POST as it goes over the wire; `more` are headers, each with its line's end."""
    authorization = f"Authorization: Bearer {key}\r\n" if key else ""
    octets = body.encode()
    return (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{authorization}{more}"
        f"Content-Type: {content_type}\r\nContent-Length: {len(octets)}\r\n\r\n"
    ).encode() + octets


def in_turn(requests: Sequence[bytes]) -> Source:
    """The requests one after the other, and again from the first."""
    numbers = count()
    return lambda: requests[next(numbers) % len(requests)]


def issuing(run: TrustRun, agents: Sequence[str]) -> Source:
    """Tokens for each agent in turn."""
    body = json.dumps({"chain": [ROOT, {"sub": "bench", "type": "agent"}], "scope": TOOLS[0]})
    key = run.place.api_key
    return in_turn([request(f"/v1/agents/{agent}/delegation", body, key=key) for agent in agents])


def exchanging(run: TrustRun, agents: Sequence[str]) -> Source:
    """The first agent's token handed on to each of the others, as a bearer token."""
    return in_turn([_exchange(run, body) for body in _exchanges(run, agents)])


def exchanging_proven(run: TrustRun, agents: Sequence[str]) -> Callable[[], bytes]:
    """The same, bound to a key by a new DPoP proof in each request."""
    bodies, maker, url = cycle(_exchanges(run, agents)), ProofMaker(), f"{run.base_url}/oauth/token"
    return lambda: _exchange(run, next(bodies), f"DPoP: {maker.proof('POST', url)}\r\n")


def _exchange(run: TrustRun, body: str, more: str = "") -> bytes:
    return request("/oauth/token", body, key=run.place.api_key, content_type=FORM, more=more)


def _exchanges(run: TrustRun, agents: Sequence[str]) -> list[str]:
    subject = token_of(run, agents[0], [ROOT])
    name = run.place.environment()["SERVICE_NAME"]
    fixed = {
        "grant_type": EXCHANGE,
        "subject_token": subject,
        "subject_token_type": ACCESS_TOKEN,
        "actor_token_type": f"urn:{name}:params:oauth:token-type:agent",
        "scope": TOOLS[0],
    }
    return [urlencode({**fixed, "actor_token": agent}) for agent in agents[1:]]


def verifying(run: TrustRun, agents: Sequence[str]) -> Source:
    """Tokens of several agents, each verified in turn."""
    tokens = tokens_of(run, agents)
    return in_turn([request("/v1/delegation/verify", json.dumps({"token": one})) for one in tokens])


def tokens_of(run: TrustRun, agents: Sequence[str]) -> list[str]:
    """So many different tokens."""
    chosen = cycle(agents)
    return [token_of(run, next(chosen), [ROOT]) for _ in range(TOKENS_VERIFIED)]


def introspecting(run: TrustRun, agents: Sequence[str]) -> Source:
    """One token whose chain has eight actors, each added by an agent of its own."""
    body = urlencode({"token": deep_token(run, agents)})
    return in_turn([request("/oauth/introspect", body, key=run.place.api_key, content_type=FORM)])


def deep_token(run: TrustRun, agents: Sequence[str]) -> str:
    """A token handed on from agent to agent until its chain is full."""
    chain, parent = [ROOT], None
    for number in range(DEEPEST):
        parent = token_of(run, agents[number], chain, parent)
        chain = [*chain, {"sub": f"agent-{number}", "type": "agent"}]
    return str(parent)


def token_of(run: TrustRun, agent: str, chain: Sequence[object], parent: str | None = None) -> str:
    """A new token of the agent."""
    body = {"chain": chain, "scope": TOOLS[0], "parent_token": parent, "ttl_seconds": 86_400}
    return str(run.done("POST", f"/v1/agents/{agent}/delegation", body)["data"]["token"])


def signing(run: TrustRun, agents: Sequence[str]) -> Source:
    """A message signed by each agent in turn."""
    body = json.dumps({"payload": {"order": 17, "text": "buy"}})
    key = run.place.api_key
    return in_turn([request(f"/v1/agents/{agent}/sign", body, key=key) for agent in agents])
