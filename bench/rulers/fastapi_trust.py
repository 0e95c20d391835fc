"""FastAPI and PyJWT: tokens verified and signed as a good engineer writes it, and nothing else.

It authenticates nobody, limits nothing, asks no row, keeps its key in memory and stores nothing: it is the
price of HTTP, validation and ECDSA.
"""

import json
import os
import time
from typing import Any
from uuid import uuid4

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from fastapi import FastAPI, Response
from pydantic import BaseModel

ISSUER = os.environ["RULER_ISSUER"]
KEYS = {one["kid"]: jwt.PyJWK(one) for one in json.loads(os.environ["RULER_JWKS"])["keys"]}
OWN = ec.generate_private_key(ec.SECP256R1())

app = FastAPI()


class Given(BaseModel):
    """A token."""

    token: str


@app.get("/")
async def ready() -> Response:
    """Tell that the server runs."""
    return Response()


@app.post("/verify")
async def verify(given: Given) -> dict[str, Any]:
    """The claims of a token, or that it is invalid."""
    try:
        key = KEYS[jwt.get_unverified_header(given.token)["kid"]]
        claims = jwt.decode(
            given.token, key, algorithms=["ES256"], issuer=ISSUER, options={"verify_aud": False}
        )
    except (jwt.PyJWTError, KeyError):
        return {"data": {"valid": False}}
    return {"data": {"valid": True, **claims}}


@app.post("/issue")
async def issue(given: Given) -> dict[str, Any]:
    """A new token, whatever is asked."""
    moment = int(time.time())
    claims = {
        "iss": ISSUER,
        "sub": "alice@example.com",
        "act": {"sub": "bench", "sub_type": "agent"},
        "scope": "place_order",
        "jti": str(uuid4()),
        "iat": moment,
        "nbf": moment,
        "exp": moment + 3_600,
    }
    return {"data": {"token": jwt.encode(claims, OWN, algorithm="ES256")}}
