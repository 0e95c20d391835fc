"""Examples of trusted issuers for the API's description."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter

ISSUER_ID = OpenApiParameter("issuer_id", OpenApiTypes.UUID, location=OpenApiParameter.PATH)
_TRUST: dict[str, Any] = {
    "issuer": "https://login.example.com",
    "audiences": ["research-app"],
    "algorithms": ["RS256"],
    "subject_claim": "email",
    "required_claims": {"groups": ["traders"]},
    "max_age_seconds": 900,
}
_SHOWN: dict[str, Any] = {
    "id": "019a9f5e-7a10-7b20-8c30-4d5e6f708192",
    **_TRUST,
    "jwks_uri": None,
    "jwks": None,
    "active": True,
    "created_at": "2026-11-20T09:00:00Z",
    "updated_at": "2026-11-20T09:00:00Z",
}
TRUST = OpenApiExample("A trusted issuer", request_only=True, value=_TRUST)
CHANGE = OpenApiExample("Other audiences", request_only=True, value={"audiences": ["research-app", "desk"]})
TRUSTED = OpenApiExample("Trusted", response_only=True, status_codes=["201"], value={"data": _SHOWN})
