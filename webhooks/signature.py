"""Secrets and signatures of deliveries: HMAC-SHA-256 over the exact bytes of the body."""

import base64
import hashlib
import hmac
import secrets
from uuid import UUID

PREFIX = "whsec_"
SECRET_BYTES = 32
HINT_LENGTH = 4


def new_secret() -> str:
    """A fresh secret: `whsec_` and 256 random bits in base64."""
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def hint_of(secret: str) -> str:
    """What people may see of a secret later: its last four characters."""
    return secret[-HINT_LENGTH:]


def header_name(service_name: str) -> str:
    """The signature's header: `X-Service-Signature` for the service named `service`."""
    return f"X-{service_name.title()}-Signature"


def sign(body: bytes, secret: str) -> str:
    """`sha256=<hex>` of `body`, keyed with the whole secret string (interface specification, Signature)."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def is_signed(body: bytes, secret: str, header: str) -> bool:
    """Whether `header` is the signature of `body`; compares in constant time."""
    return hmac.compare_digest(sign(body, secret).encode(), header.encode())


def sign_standard(body: bytes, secret: str, *, message_id: UUID | str, timestamp: int) -> str:
    """`v1,<base64>` over `id.timestamp.body`, keyed with the secret's decoded bytes.

    Source: Standard Webhooks 1.0, "Signature scheme"; `timestamp` is in Unix seconds.
    """
    key = base64.b64decode(secret.removeprefix(PREFIX))
    signed = f"{message_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
