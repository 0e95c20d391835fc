"""The key that a client proves to hold at the token endpoint (RFC 9449 §5), and the one it asks to bind."""

import re
from datetime import datetime

from django.conf import settings
from django.http import HttpRequest

from delegation import proofs
from delegation.jose.tokens import THUMBPRINT_PATTERN
from delegation.oauth.errors import InvalidRequest
from delegation.oauth.exchange import Possession
from delegation.oauth.forms import Form


def token_endpoint() -> str:
    """The address of the token endpoint, as metadata and proofs name it."""
    return f"{settings.BASE_URL}/oauth/token"


def of(request: HttpRequest, form: Form, *, now: datetime) -> Possession:
    """What the request proves; the proof is used up. Raises: OAuthError, ProofRejected, Unavailable."""
    wanted = form.get("dpop_jkt")
    if wanted is not None and (not re.fullmatch(THUMBPRINT_PATTERN, wanted) or len(wanted) != 43):
        raise InvalidRequest("dpop_jkt: not a thumbprint (RFC 7638, SHA-256 in base64url)")
    presented = request.headers.get("DPoP")
    if presented is None:
        return Possession(None, wanted)
    proof = proofs.check(
        proof=presented,
        method="POST",
        uri=token_endpoint(),
        access_token=None,
        nonce_required=settings.DPOP_NONCE_REQUIRED,
        now=now,
    )
    return Possession(proof.jkt, wanted)


def next_nonce(*, now: datetime) -> dict[str, str]:
    """The header with a nonce for the next proof, where one is needed (RFC 9449 §8.2)."""
    return {"DPoP-Nonce": proofs.current_nonce(now=now)} if settings.DPOP_NONCE_REQUIRED else {}
