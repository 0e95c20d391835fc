"""Make webhook secrets, and sign deliveries: HMAC-SHA-256 over the exact bytes of the body."""

import base64
import hashlib
import hmac
import secrets
from uuid import UUID

PREFIX = "whsec_"


def new_secret() -> str:
    """Return a new secret: `whsec_` and 256 random bits in base64."""
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def hint_of(secret: str) -> str:
    """Return the part of a secret that may be shown later."""
    return secret[-4:]


def sign(body: bytes, secret: str) -> str:
    """Return `sha256=<hex>` of `body`, keyed with the whole secret (interface specification, Signature)."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def sign_standard(body: bytes, secret: str, *, message_id: UUID | str, timestamp: int) -> str:
    """Return `v1,<base64>` over `id.timestamp.body`, keyed with the secret's decoded bytes.

    `timestamp` is in Unix seconds. Source: Standard Webhooks 1.0, "Signature scheme".
    """
    key = base64.b64decode(secret.removeprefix(PREFIX))
    signed = f"{message_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
