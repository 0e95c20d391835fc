"""A provider that answers over real HTTP whatever a test tells it to."""

import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from django.test import Client
from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from compliance.core.clock import now
from compliance.tests.http_server import QuickServer
from people.sso.tests import toolkit
from people.sso.tests.providers import begin, follow, parameters_of

RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())
SUBJECT = "248289761001"


def public(key: Any, kid: str, **more: Any) -> dict[str, Any]:
    """The key as a JWK."""
    algorithm: Any = RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else ECAlgorithm
    return {**algorithm.to_jwk(key.public_key(), as_dict=True), "kid": kid, "use": "sig", **more}


@dataclass
class Forger:
    """A provider over real HTTP; tests change its `document`, `keys` and `answer` as they like."""

    server: HTTPServer
    document: dict[str, Any] = field(default_factory=dict)
    keys: list[dict[str, Any]] = field(default_factory=lambda: [public(RSA_KEY, "rsa"), public(EC_KEY, "ec")])
    answer: Any = None
    status: int = 200
    asked: list[dict[str, Any]] = field(default_factory=list)
    key_requests: int = 0

    @classmethod
    @contextmanager
    def serving(cls, tls: ssl.SSLContext | None = None) -> Iterator["Forger"]:
        with QuickServer(host="127.0.0.1", ssl_context=tls) as server:
            forger = cls(server)
            forger.document = forger.honest_document()
            server.expect_request("/.well-known/openid-configuration").respond_with_handler(
                lambda _: Response(json.dumps(forger.document), content_type="application/json")
            )
            server.expect_request("/keys").respond_with_handler(forger.give_keys)
            server.expect_request("/token").respond_with_handler(forger.give_token)
            yield forger

    @property
    def issuer(self) -> str:
        return f"{'https' if self.server.ssl_context else 'http'}://127.0.0.1:{self.server.port}"

    def honest_document(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize?tenant=1",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
        }

    def give_keys(self, request: Request) -> Response:
        self.key_requests += 1
        return Response(json.dumps({"keys": self.keys}), content_type="application/json")

    def give_token(self, request: Request) -> Response:
        self.asked.append({**request.form.to_dict(), "authorization": request.headers.get("Authorization")})
        body = self.answer if isinstance(self.answer, bytes) else json.dumps(self.answer)
        return Response(body, self.status, content_type="application/json")

    def claims(self, nonce: str, /, **changed: Any) -> dict[str, Any]:
        """Return claims that are right but for what is `changed`; None takes a claim away."""
        moment = int(now().timestamp())
        right = {
            "iss": self.issuer,
            "sub": SUBJECT,
            "aud": toolkit.CLIENT_ID,
            "iat": moment,
            "exp": moment + 300,
            "nonce": nonce,
        }
        return {name: value for name, value in {**right, **changed}.items() if value is not None}

    def sign_in(self, client: Client, *, parameters: dict[str, Any] | None = None, **changed: Any) -> Any:
        """Sign in with a token of these claims; return the console's answer to the provider's."""
        asked = parameters_of(begin(client))
        self.answer = {"id_token": signed(self.claims(asked["nonce"], **changed)), "access_token": "x"}
        return self.call_back(client, asked, **(parameters or {}))

    def call_back(self, client: Client, asked: dict[str, str], **parameters: Any) -> Any:
        """Send the browser back with a code and the state, but for what is given; None leaves it out."""
        sent = {"code": "a-code", "state": asked["state"], **parameters}
        query = "&".join(f"{name}={value}" for name, value in sent.items() if value is not None)
        return follow(client, f"{asked['redirect_uri']}?{query}")


def signed(claims: dict[str, Any], *, key: Any = RSA_KEY, algorithm: str = "RS256", **header: Any) -> str:
    kid = {"kid": "ec" if isinstance(key, ec.EllipticCurvePrivateKey) else "rsa"}
    found = {name: value for name, value in {**kid, **header}.items() if value is not None}
    return jwt.encode(claims, key, algorithm, headers=found)
