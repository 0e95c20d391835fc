"""The key that a client asks to bind, and the nonce for its next proof (RFC 9449 §5, §8)."""

from datetime import datetime

from django.conf import settings

from delegation import proofs
from delegation.jose import tokens
from delegation.oauth.errors import InvalidRequest
from delegation.oauth.forms import Form

TOKEN_PATH = "/oauth/token"


def bound_to(form: Form) -> str | None:
    """The thumbprint of the key that the client wants the token bound to. Raises: InvalidRequest."""
    wanted = form.get("dpop_jkt")
    if wanted is not None and not tokens.is_thumbprint(wanted):
        raise InvalidRequest("dpop_jkt: not a thumbprint (RFC 7638, SHA-256 in base64url)")
    return wanted


def next_nonce(*, now: datetime) -> str | None:
    """The nonce for the next proof, where one is needed (RFC 9449 §8.2)."""
    return proofs.current_nonce(now=now) if settings.DPOP_NONCE_REQUIRED else None
