"""Examples for the API's description."""

from typing import Any

from drf_spectacular.utils import OpenApiExample


def _request(name: str, **value: Any) -> OpenApiExample:
    return OpenApiExample(name, request_only=True, value=value)


def _response(name: str, **value: Any) -> OpenApiExample:
    return OpenApiExample(name, response_only=True, status_codes=["200"], value=value)


ALICE = {"sub": "alice@example.com", "type": "human"}
CHAIN = [ALICE, {"sub": "research-agent", "type": "agent"}, {"sub": "price-checker", "type": "sub_agent"}]
COMPACT = "eyJhbGciOiJFUzI1NiIsImtpZCI6Ik5fd0x5….eyJpc3MiOiJodHRwczovL….QWx3YXlzIHNpZ25lZA"
GRANTED = {"principal": "price-checker", "chain": CHAIN, "scope": "read_market_data"}
HELD = {
    "token_id": "019a9f5e-70c1-7d0a-8a54-2f6b1c9d3e42",
    "root": {"assurance": "asserted", "issuer": None, "subject": None, "vouched_by": None},
    "bound_to": None,
}
AGENT_ID, SERIAL = "019a9f5e-6f5a-7c43-9a53-0c4c1f3d2b11", "5f2c9a3de1b047c8a6d1f0e2b3c4d5e6"
AUDIENCE, EXPIRY = "https://api.example.com", "2026-11-20T09:15:00Z"

GRANT = _request(
    "Human to agent to sub-agent", chain=CHAIN, scope="read_market_data", audience=AUDIENCE, ttl_seconds=900
)
REDELEGATION = _request(
    "Handing a token on",
    chain=[*CHAIN, {"sub": "quote-service", "type": "service"}],
    scope="read_market_data",
    parent_token=COMPACT,
)
ISSUED = _response(
    "Issued",
    data={"token": COMPACT, **GRANTED, "issued_at": "2026-11-20T09:00:00Z", "expires_at": EXPIRY, **HELD},
)
TOKEN = _request("A token", token=COMPACT)
VALID = _response(
    "Valid",
    data={
        "valid": True,
        **GRANTED,
        "chain_display": "alice@example.com → research-agent → price-checker",
        "agent_id": AGENT_ID,
        "expires_at": EXPIRY,
        "audience": AUDIENCE,
        "certificate_serial": SERIAL,
        "environment": "live",
        **HELD,
    },
)
EXPIRED = _response("Expired", data={"valid": False, "reason": "expired"})
POINT = {
    "x": "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4",
    "y": "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM",
}
KID = "cn-I_WNMClehiVp51i_0VpOENW1upEerA8sEam5hn-s"
JWKS = _response(
    "One key", keys=[{"kty": "EC", "crv": "P-256", **POINT, "kid": KID, "alg": "ES256", "use": "sig"}]
)
REASON = "The quote service is decommissioned"
ROW: dict[str, Any] = {
    **HELD,
    **GRANTED,
    "agent_id": AGENT_ID,
    "certificate_serial": SERIAL,
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

LISTED = _response("A page", data=[ROW], has_next_page=False, next_cursor=None)
STANDING = _response("A token that stands", data=ROW)
REVOCATION = _request("A revocation", reason=REASON)
REVOKED = _response("Revoked", data={**ROW, **ENDED})
STATUS_LIST = OpenApiExample(
    "A list",
    response_only=True,
    value="eyJhbGciOiJFUzI1NiIsInR5cCI6InN0YXR1c2xpc3Qr….eyJpc3MiOiJodHRwczovL….c2ln",
)
TOLD: dict[str, Any] = {
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
    "agent_id": AGENT_ID,
    "cert_serial": SERIAL,
    "env": "live",
    "risk_band": "low",
}
ACTIVE = _response("Active", **TOLD)
INACTIVE = _response("Inactive", active=False)
NOTHING = _response("Revoked")
CREDENTIAL = _response("A credential", data={"credential": COMPACT, "valid_until": "2026-11-21T09:00:00Z"})
