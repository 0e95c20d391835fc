"""An OpenID provider over real HTTP whose answers and tokens a test shapes."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from compliance.core.clock import now
from compliance.tests.http_server import QuickServer

RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())
CLIENT_ID = "research-app"
SUBJECT = "248289761001"


def public(key: Any, kid: str | None, **more: Any) -> dict[str, Any]:
    """The key as a JWK; None leaves a member out."""
    algorithm: Any = RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else ECAlgorithm
    bare = algorithm.to_jwk(key.public_key(), as_dict=True)
    bare.pop("key_ops", None)
    jwk = {**bare, "kid": kid, "use": "sig", **more}
    return {name: value for name, value in jwk.items() if value is not None}


@dataclass
class Provider:
    """It answers with `document` and `jwks`, or with `answer` if that is set."""

    server: HTTPServer
    document: Any = None
    jwks: Any = field(default_factory=lambda: {"keys": [public(RSA_KEY, "rsa"), public(EC_KEY, "ec")]})
    answer: Response | None = None
    headers: dict[str, str] = field(default_factory=dict)
    key_requests: int = 0

    @classmethod
    @contextmanager
    def serving(cls) -> Iterator["Provider"]:
        with QuickServer(host="127.0.0.1") as server:
            found = cls(server)
            found.document = {"issuer": found.issuer, "jwks_uri": f"{found.issuer}/keys"}
            server.expect_request("/.well-known/openid-configuration").respond_with_handler(found.describe)
            server.expect_request("/keys").respond_with_handler(found.give_keys)
            yield found

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"

    def describe(self, request: Request) -> Response:
        return Response(json.dumps(self.document), content_type="application/json")

    def give_keys(self, request: Request) -> Response:
        self.key_requests += 1
        return self.answer or Response(
            json.dumps(self.jwks), content_type="application/json", headers=self.headers
        )

    def claims(self, **changed: Any) -> dict[str, Any]:
        """Claims that are right but for what is `changed`; None takes a claim away."""
        moment = int(now().timestamp())
        right = {
            "iss": self.issuer,
            "sub": SUBJECT,
            "aud": CLIENT_ID,
            "iat": moment,
            "exp": moment + 300,
            "email": "alice@example.com",
            "email_verified": True,
        }
        return {name: value for name, value in {**right, **changed}.items() if value is not None}

    def token(
        self,
        *,
        key: Any = RSA_KEY,
        algorithm: str = "RS256",
        header: dict[str, Any] | None = None,
        **changed: Any,
    ) -> str:
        kid = {"kid": "ec" if isinstance(key, ec.EllipticCurvePrivateKey) else "rsa"}
        named = {name: value for name, value in {**kid, **(header or {})}.items() if value is not None}
        return jwt.encode(self.claims(**changed), key, algorithm, headers=named)


class Held:
    """Addresses that accept requests and don't answer before they are released."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._accepted: list[socket.socket] = []
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"

    def accept(self, requests: int) -> None:
        """Return once so many requests have come."""
        self._accepted += [self._listener.accept()[0] for _ in range(requests)]

    def release(self) -> None:
        """End all of them without an answer."""
        for accepted in self._accepted:
            accepted.close()
