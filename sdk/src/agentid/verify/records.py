"""Signed records (docs/stops.md): what became of many agents, a line each, under one signature."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from hashlib import sha256
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec

from agentid import jose
from agentid.errors import NotValid, Reason
from agentid.verify.audit import leaf_hash, node_hash
from agentid.verify.messages import canonical


class RecordKind(StrEnum):
    """What a record is of, as its `typ` says."""

    HALT = "halt+jwt"
    ACCESS_REVIEW = "access-review+jwt"


def verify_record(
    record: str,
    lines: Sequence[Mapping[str, Any]],
    *,
    kind: RecordKind,
    keys: Mapping[str, ec.EllipticCurvePublicKey],
    issuer: str,
    environment: str = "live",
) -> Mapping[str, Any]:
    """Check a halt receipt or a review's record with the lines beside it, as JSON; return its claims.

    Raises: NotValid.
    """
    claims = jose.signed_claims(record, kind=kind, keys=keys, max_length=jose.MAX_LENGTH)
    if claims.get("iss") != issuer:
        raise NotValid(Reason.INVALID_ISSUER)
    if claims.get("env") != environment:
        raise NotValid(Reason.WRONG_ENVIRONMENT)
    nodes = [leaf_hash(canonical(line)) for line in lines]
    if claims.get("count") != len(nodes) or claims.get("root") != _root(nodes).hex():
        raise NotValid(Reason.NOT_AS_SEALED, "the record is of other lines")
    return claims


def _root(nodes: list[bytes]) -> bytes:
    """The root of the tree over these leaves (RFC 6962 §2.1); a last node without a sibling moves up."""
    while len(nodes) > 1:
        pairs = [node_hash(*nodes[place : place + 2]) for place in range(0, len(nodes) - 1, 2)]
        nodes = pairs + nodes[len(pairs) * 2 :]
    return nodes[0] if nodes else sha256(b"").digest()
