"""Signed records of what was done to many: a compact JWS over the Merkle root of one line each."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.conf import settings

from auditlog.tlog.merkle import leaf_hash, node_hash, tree_root
from certificates.pki.signing import canonical
from compliance.core import environments
from compliance.core.json_values import written
from delegation.jose import jws
from delegation.token_keys import keyring, keys


def root_of(lines: Sequence[Mapping[str, Any]]) -> bytes:
    """Return the root of the Merkle tree (RFC 6962 §2.1) over the RFC 8785 form of each line."""
    leaves = [leaf_hash(canonical(line)) for line in lines]

    def subtree(start: int, end: int) -> bytes:
        middle = (start + end) // 2
        return leaves[start] if end - start == 1 else node_hash(subtree(start, middle), subtree(middle, end))

    return tree_root(len(leaves), subtree)


def ensure_signed(job: Any, column: str, claims: Mapping[str, Any], *, typ: str, now: datetime) -> str:
    """Return the record that the column of an ended job holds; sign it in the HSM when first asked for.

    It is signed again once its key is no longer published. Raises: 503 errors.
    """
    text: str | None = getattr(job, column)
    published = {key["kid"] for key in keys.jwks(now=now)}
    if text is None or jws.parse(text, typ=typ, max_length=len(text)).header["kid"] not in published:
        key = keys.signing_key()
        common = {
            "iss": settings.TOKEN_ISSUER,
            "iat": int(job.ended_at.timestamp()),
            "jti": str(job.id),
            "tenant_id": str(job.tenant_id),
            "env": environments.current().value,
            "started_at": written(job.started_at),
            "ended_at": written(job.ended_at),
            "root": job.root,
        }
        text = jws.sign({**common, **claims}, kid=key.kid, key=keys.private_half(key), typ=typ)
        keyring.add(key)
        setattr(job, column, text)
        job.save(update_fields=[column])
    return text
