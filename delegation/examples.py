"""Examples for the API's description."""

from drf_spectacular.utils import OpenApiExample

CHAIN = [
    {"sub": "alice@example.com", "type": "human"},
    {"sub": "research-agent", "type": "agent"},
    {"sub": "price-checker", "type": "sub_agent"},
]
COMPACT = "eyJhbGciOiJFUzI1NiIsImtpZCI6Ik5fd0x5….eyJpc3MiOiJodHRwczovL….QWx3YXlzIHNpZ25lZA"

GRANT = OpenApiExample(
    "Human to agent to sub-agent",
    request_only=True,
    value={
        "chain": CHAIN,
        "scope": "read_market_data",
        "audience": "https://api.example.com",
        "ttl_seconds": 900,
    },
)
REDELEGATION = OpenApiExample(
    "Handing a token on",
    request_only=True,
    value={
        "chain": [*CHAIN, {"sub": "quote-service", "type": "service"}],
        "scope": "read_market_data",
        "parent_token": COMPACT,
    },
)
ISSUED = OpenApiExample(
    "Issued",
    response_only=True,
    status_codes=["200"],
    value={
        "data": {
            "token": COMPACT,
            "chain": CHAIN,
            "principal": "price-checker",
            "scope": "read_market_data",
            "issued_at": "2026-11-20T09:00:00Z",
            "expires_at": "2026-11-20T09:15:00Z",
        }
    },
)
TOKEN = OpenApiExample("A token", request_only=True, value={"token": COMPACT})
VALID = OpenApiExample(
    "Valid",
    response_only=True,
    status_codes=["200"],
    value={
        "data": {
            "valid": True,
            "principal": "price-checker",
            "chain": CHAIN,
            "chain_display": "alice@example.com → research-agent → price-checker",
            "scope": "read_market_data",
            "agent_id": "019a9f5e-6f5a-7c43-9a53-0c4c1f3d2b11",
            "expires_at": "2026-11-20T09:15:00Z",
            "audience": "https://api.example.com",
            "certificate_serial": "5f2c9a3de1b047c8a6d1f0e2b3c4d5e6",
            "environment": "live",
        }
    },
)
EXPIRED = OpenApiExample(
    "Expired",
    response_only=True,
    status_codes=["200"],
    value={"data": {"valid": False, "reason": "expired"}},
)
JWKS = OpenApiExample(
    "One key",
    response_only=True,
    status_codes=["200"],
    value={
        "keys": [
            {
                "kty": "EC",
                "crv": "P-256",
                "x": "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4",
                "y": "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM",
                "kid": "cn-I_WNMClehiVp51i_0VpOENW1upEerA8sEam5hn-s",
                "alg": "ES256",
                "use": "sig",
            }
        ]
    },
)
