"""The key that a client proves to hold at the token endpoint (RFC 9449 §5), and the one it asks to bind."""

from datetime import datetime

from django.conf import settings
from django.http import HttpRequest

from delegation import proofs
from delegation.jose import tokens
from delegation.oauth.errors import InvalidRequest
from delegation.oauth.exchange import Possession
from delegation.oauth.forms import Form

TOKEN_PATH = "/oauth/token"


def of(request: HttpRequest, form: Form, *, now: datetime) -> Possession:
    """What the request proves; the proof is used up. Raises: OAuthError, ProofRejected, Unavailable."""
    wanted = form.get("dpop_jkt")
    if wanted is not None and not tokens.is_thumbprint(wanted):
        raise InvalidRequest("dpop_jkt: not a thumbprint (RFC 7638, SHA-256 in base64url)")
    sent = request.headers.get("DPoP")
    return Possession(proofs.proven_key(proof=sent, method="POST", path=TOKEN_PATH, now=now), wanted)


def next_nonce(*, now: datetime) -> dict[str, str]:
    """The header with a nonce for the next proof, where one is needed (RFC 9449 §8.2)."""
    return {"DPoP-Nonce": proofs.current_nonce(now=now)} if settings.DPOP_NONCE_REQUIRED else {}
