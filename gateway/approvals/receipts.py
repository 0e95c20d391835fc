"""Receipts of approvals: compact JWS by the token keys, for one act of one agent."""

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec
from django.conf import settings

from certificates.pki.signing import canonical
from compliance.core import environments
from delegation.errors import TokenRejected
from delegation.jose import jws
from delegation.jose.tokens import NumericDate
from delegation.token_keys import keyring, keys
from gateway.approvals.errors import ApprovalRefused, RefusedReason

TYPE = "approval+jwt"
HASH_PATTERN = r"^[0-9a-f]{64}\Z"


class Receipt(msgspec.Struct, frozen=True):
    """The claims: `sub` is the agent's DID, `exp` the first second in which the receipt is void."""

    iss: str
    sub: str
    agent_id: UUID
    action: str
    action_hash: Annotated[str, msgspec.Meta(pattern=HASH_PATTERN)]
    decided_by: str
    iat: NumericDate
    exp: NumericDate
    jti: UUID
    approval_id: UUID
    env: str


def action_hash(action: str, details: Mapping[str, Any]) -> str:
    """The SHA-256, in hex, of the RFC 8785 form of `{"action": …, "details": …}`; raises `Invalid`."""
    return hashlib.sha256(canonical({"action": action, "details": dict(details)})).hexdigest()


def sign(receipt: Receipt) -> str:
    """Sign a receipt in the HSM with the current environment's token key; raises 503 errors."""
    key = keys.signing_key()
    text = jws.sign(msgspec.to_builtins(receipt), kid=key.kid, key=keys.private_half(key), typ=TYPE)
    keyring.add(key)
    return text


def read(text: str) -> Receipt:
    """The receipt in `text`, if this service signed it in the current environment, whenever it expires.

    Raises `ApprovalRefused`, and `KeyRingUnavailable` for an unknown key while the keys can't be read.
    """
    try:
        parsed = jws.parse(text, typ=TYPE)
    except TokenRejected as rejected:
        raise ApprovalRefused(RefusedReason.MALFORMED) from rejected
    try:
        environment, key = keyring.find(parsed.header["kid"])
        claims = jws.verify(parsed, key)
        receipt = msgspec.convert(claims, Receipt)
    except TokenRejected as rejected:
        raise ApprovalRefused(RefusedReason.INVALID_SIGNATURE) from rejected
    except msgspec.ValidationError as error:
        raise ApprovalRefused(RefusedReason.MALFORMED) from error
    if receipt.iss != settings.TOKEN_ISSUER or receipt.env != environment.value:
        raise ApprovalRefused(RefusedReason.INVALID_SIGNATURE)
    if environment is not environments.current():
        raise ApprovalRefused(RefusedReason.INVALID_ENVIRONMENT)
    return receipt


def check(
    receipt: Receipt, *, agent_id: UUID, action: str, details: Mapping[str, Any], now: datetime
) -> None:
    """Raise `ApprovalRefused` unless the receipt is for this act of this agent and has not expired."""
    if receipt.agent_id != agent_id:
        raise ApprovalRefused(RefusedReason.WRONG_AGENT)
    if receipt.action_hash != action_hash(action, details):
        raise ApprovalRefused(RefusedReason.WRONG_ACTION)
    if now.timestamp() >= receipt.exp:
        raise ApprovalRefused(RefusedReason.EXPIRED)
