"""Manage trusted issuers, and verify the ID tokens that they made."""

import json
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError

from auditlog import services as auditlog
from auditlog.vocabulary import Actor, AuditAction
from compliance.core import environments
from compliance.outbound.addresses import UrlRefused, check_url
from delegation import proofs
from delegation.issuers import fetching, id_tokens, key_sets
from delegation.issuers.errors import (
    IdTokenFault,
    IdTokenRefused,
    InvalidIssuer,
    TooManyIssuers,
    TrustedIssuerExists,
)
from delegation.issuers.fetching import KeyLocation
from delegation.issuers.id_tokens import VerifiedHuman
from delegation.issuers.key_sets import InvalidKeySet
from delegation.issuers.models import TrustedIssuer
from delegation.jose.holder_keys import PRIVATE_NAMES
from tenancy.models import Tenant

MOST_ISSUERS = 50
MAX_JWKS_BYTES = 65_536
RECORDED = (
    *("issuer", "audiences", "algorithms", "subject_claim", "required_claims", "max_age_seconds", "active"),
)


def create(*, tenant_id: UUID, actor: Actor, now: datetime, **fields: Any) -> TrustedIssuer:
    """Trust an issuer from now on. Raises: InvalidIssuer, TrustedIssuerExists, TooManyIssuers."""
    row = TrustedIssuer(tenant_id=tenant_id, **fields, created_at=now, updated_at=now)
    check(row)
    try:
        with environments.atomic():
            Tenant.objects.select_for_update(no_key=True).get(id=tenant_id)
            if TrustedIssuer.objects.for_tenant(tenant_id).count() >= MOST_ISSUERS:
                raise TooManyIssuers(f"A tenant can have at most {MOST_ISSUERS} trusted issuers")
            row.save(force_insert=True)
            _record(row, AuditAction.ISSUER_TRUSTED, actor, now, f"Issuer {row.issuer} trusted")
    except IntegrityError as error:
        raise TrustedIssuerExists() from error
    return row


def update(
    *, tenant_id: UUID, issuer_id: Any, changes: dict[str, Any], actor: Actor, now: datetime
) -> TrustedIssuer:
    """Set fields. Raises: TrustedIssuerNotFound, InvalidIssuer."""
    with environments.atomic():
        row = TrustedIssuer.objects.for_tenant(tenant_id).locked().find(issuer_id)
        changed = sorted(name for name, value in changes.items() if getattr(row, name) != value)
        if not changed:
            return row
        for name in changed:
            setattr(row, name, changes[name])
        check(row)
        row.updated_at = now
        row.save(update_fields=[*changed, "updated_at"])
        description = f"Trusted issuer {row.issuer} updated: {', '.join(changed)}"
        _record(row, AuditAction.ISSUER_UPDATED, actor, now, description, changed=changed)
    return row


def delete(*, tenant_id: UUID, issuer_id: Any, actor: Actor, now: datetime) -> None:
    """Trust an issuer no more; delegations that it vouched for stay. Raises: TrustedIssuerNotFound."""
    with environments.atomic():
        row = TrustedIssuer.objects.for_tenant(tenant_id).locked().find(issuer_id)
        _record(row, AuditAction.ISSUER_DISTRUSTED, actor, now, f"Issuer {row.issuer} trusted no more")
        row.delete()


def verify_id_token(
    *, tenant_id: UUID, token: str, clients: Collection[str] | None = None, now: datetime
) -> VerifiedHuman:
    """The human whom an ID token of one of the tenant's trusted issuers names.

    With `clients`, whom an identity assertion grant for one of these names, or for one of the audiences that
    the tenant lists for the issuer; this call uses it up. It may fetch the issuer's keys: not for use inside
    a transaction. Raises: IdTokenRefused, IssuerKeysUnavailable, ReplayStoreUnavailable.
    """
    parsed, issuer = id_tokens.parse(token)
    row = TrustedIssuer.objects.for_tenant(tenant_id).active().filter(issuer=issuer).first()
    if row is None:
        raise IdTokenRefused(IdTokenFault.UNTRUSTED_ISSUER)
    pinned, location = row.jwks, KeyLocation(row.issuer, row.jwks_uri)
    human = id_tokens.verify(
        parsed,
        trust=row.trust,
        keys=lambda kid: (
            key_sets.read(pinned) if pinned else fetching.keys_at(location, kid=kid, tenant_id=tenant_id)
        ),
        now=now,
        clients=None if clients is None else {*clients, *row.audiences},
    )
    kept = row.trust.max_age + timedelta(seconds=2 * id_tokens.LEEWAY_SECONDS)
    # Another tenant may trust keys of its own under the same name of an issuer.
    used_by = f"{tenant_id} {issuer}"
    if clients is not None and not proofs.use_once(issuer=used_by, jti=human.jti, kept=kept):
        raise IdTokenRefused(IdTokenFault.USED_BEFORE)
    return human


def check(row: TrustedIssuer) -> None:
    """Raise `InvalidIssuer` for what could never verify a token. No address is asked, so DNS may change."""
    # Nobody vouches for people in our name: our own tokens are never ID tokens.
    if row.issuer == settings.TOKEN_ISSUER:
        raise InvalidIssuer("issuer: must be another than this service")
    if row.jwks is not None and row.jwks_uri is not None:
        raise InvalidIssuer("jwks: give either keys or jwks_uri; set the other to null")
    if row.jwks is not None:
        if len(json.dumps(row.jwks)) > MAX_JWKS_BYTES:
            raise InvalidIssuer(f"jwks: must be at most {MAX_JWKS_BYTES} bytes")
        try:
            key_sets.read(row.jwks)
        except InvalidKeySet as error:
            raise InvalidIssuer(f"jwks: {error}") from error
        if any(isinstance(key, dict) and not PRIVATE_NAMES.isdisjoint(key) for key in row.jwks["keys"]):
            raise InvalidIssuer("jwks: holds a private or secret key; give public keys only")
        return
    try:
        check_url(fetching.first_url(KeyLocation(row.issuer, row.jwks_uri)), fetching.url_policy())
    except UrlRefused as refusal:
        field = "issuer" if row.jwks_uri is None else "jwks_uri"
        raise InvalidIssuer(f"{field}: {refusal}") from refusal
    if row.jwks_uri is None and "?" in row.issuer:
        raise InvalidIssuer("issuer: must not carry a query")


def _record(
    row: TrustedIssuer, action: AuditAction, actor: Actor, now: datetime, description: str, **metadata: Any
) -> None:
    metadata = {
        "keys": "pinned" if row.jwks else row.jwks_uri or "discovered",
        **{name: getattr(row, name) for name in RECORDED},
        **metadata,
    }
    auditlog.record(of=row, action=action, description=description, metadata=metadata, actor=actor, now=now)
