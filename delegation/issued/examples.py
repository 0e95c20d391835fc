"""Examples of issued tokens for the API's description."""

from typing import Any

from drf_spectacular.utils import OpenApiExample

from delegation.examples import AUDIENCE, CHAIN, COMPACT, EXPIRY, GRANTED, HELD


def _response(name: str, value: Any) -> OpenApiExample:
    return OpenApiExample(name, response_only=True, status_codes=["200"], value=value)


REASON = "The quote service is decommissioned"
TOKEN: dict[str, Any] = {
    **HELD,
    **GRANTED,
    "agent_id": "019a9f5e-6f5a-7c43-9a53-0c4c1f3d2b11",
    "certificate_serial": "5f2c9a3de1b047c8a6d1f0e2b3c4d5e6",
    "parent_token_id": None,
    "audience": AUDIENCE,
    "state": "active",
    "reason": None,
    "issued_at": "2026-11-20T09:00:00Z",
    "expires_at": EXPIRY,
    "revoked_at": None,
    "revocation_reason": None,
}
ENDED = {
    "state": "revoked",
    "reason": "revoked",
    "revoked_at": "2026-11-20T09:05:00Z",
    "revocation_reason": REASON,
}

LISTED = OpenApiExample(
    "A page",
    response_only=True,
    status_codes=["200"],
    value={"data": [TOKEN], "has_next_page": False, "next_cursor": None},
)
STANDING = _response("A token that stands", {"data": TOKEN})
REVOCATION = OpenApiExample("A revocation", request_only=True, value={"reason": REASON})
REVOKED = _response("Revoked", {"data": {**TOKEN, **ENDED}})
STATUS_LIST = OpenApiExample(
    "A list",
    response_only=True,
    value="eyJhbGciOiJFUzI1NiIsInR5cCI6InN0YXR1c2xpc3Qr….eyJpc3MiOiJodHRwczovL….c2ln",
)
TOKEN_EXAMPLE = OpenApiExample("A token", request_only=True, value={"token": COMPACT})
ACTIVE = _response(
    "Active",
    {
        "active": True,
        "token_type": "Bearer",
        "scope": GRANTED["scope"],
        "exp": 1795166100,
        "iat": 1795165200,
        "nbf": 1795165200,
        "sub": CHAIN[0]["sub"],
        "sub_type": CHAIN[0]["type"],
        "aud": AUDIENCE,
        "iss": "https://compliance.example.com",
        "jti": HELD["token_id"],
        "act": {
            "sub": CHAIN[2]["sub"],
            "sub_type": CHAIN[2]["type"],
            "act": {"sub": CHAIN[1]["sub"], "sub_type": CHAIN[1]["type"]},
        },
        "agent_id": TOKEN["agent_id"],
        "cert_serial": TOKEN["certificate_serial"],
        "env": "live",
        "risk_band": "low",
    },
)
INACTIVE = _response("Inactive", {"active": False})
NOTHING = _response("Revoked", {})
