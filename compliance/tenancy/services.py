"""Making tenants and keys, and taking keys back."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from auditlog import services as auditlog
from auditlog.vocabulary import Actor, AuditAction
from compliance import environments, sql
from compliance.api.permissions import Scope
from compliance.environments import Environment
from compliance.errors import Invalid, Unauthorized
from compliance.tenancy import keys, recent_keys
from compliance.tenancy.errors import (
    ApiKeyNotFound,
    ExpiredApiKey,
    InvalidApiKey,
    RevokedApiKey,
    TenantNotFound,
)
from compliance.tenancy.models import ApiKey, Tenant

USE_RESOLUTION = timedelta(minutes=1)


@dataclass(frozen=True)
class IssuedKey:
    """A fresh key's row and its secret, which nobody can read again."""

    row: ApiKey
    secret: str


def create_tenant(*, name: str, actor: Actor, now: datetime) -> Tenant:
    """A tenant in both databases; raises `Invalid` for a bad name."""
    name = name.strip()
    if not 1 <= len(name) <= 255 or "\x00" in name:
        raise Invalid("Tenant name must be 1 to 255 characters")
    with environments.use(Environment.LIVE), environments.atomic():
        tenant = Tenant.objects.create(name=name, created_at=now)
        mirror_tenant(tenant=tenant)
        auditlog.record(
            tenant_id=tenant.id,
            action=AuditAction.TENANT_CREATED,
            affected_id=tenant.id,
            description=f"Tenant {name} created",
            actor=actor,
            now=now,
        )
    return tenant


def mirror_tenant(*, tenant: Tenant) -> None:
    """Make sure that the test database knows `tenant`; safe to repeat."""
    with environments.use(Environment.TEST):
        Tenant.objects.get_or_create(
            id=tenant.id, defaults={"name": tenant.name, "created_at": tenant.created_at}
        )


def get_tenant(*, tenant_id: UUID) -> Tenant:
    """The tenant in the current environment, mirrored on the way if need be; raises `TenantNotFound`."""
    with environments.use(Environment.LIVE):
        tenant = Tenant.objects.filter(id=tenant_id).first()
    if tenant is None:
        raise TenantNotFound()
    if environments.current() is Environment.TEST:
        mirror_tenant(tenant=tenant)
        return Tenant.objects.get(id=tenant_id)
    return tenant


def create_key(
    *,
    tenant: Tenant,
    name: str = "",
    scopes: Sequence[str] | None = None,
    expires_at: datetime | None = None,
    actor: Actor,
    now: datetime,
) -> IssuedKey:
    """A key of the current environment; all scopes unless some are named; raises `Invalid`."""
    granted = _known_scopes(scopes)
    secret = keys.new_secret(environments.current())
    with environments.atomic():
        row = ApiKey.objects.create(
            tenant=tenant,
            name=name,
            digest=keys.digest(secret),
            hint=keys.hint_of(secret),
            scopes=granted,
            created_at=now,
            expires_at=expires_at,
        )
        _record_key(AuditAction.API_KEY_CREATED, row, actor, now, scopes=granted)
    return IssuedKey(row, secret)


def roll_key(*, key_id: UUID, overlap: timedelta, actor: Actor, now: datetime) -> IssuedKey:
    """A successor with the same name and scopes; the old key lives on for `overlap`; `ApiKeyNotFound`."""
    with environments.atomic():
        old = ApiKey.objects.usable(now).select_for_update(of=("self",)).filter(id=key_id).first()
        if old is None:
            raise ApiKeyNotFound()
        issued = create_key(tenant=old.tenant, name=old.name, scopes=old.scopes, actor=actor, now=now)
        old.expires_at = min(filter(None, (old.expires_at, now + overlap)))
        old.successor = issued.row
        old.save(update_fields=["expires_at", "successor"])
        recent_keys.drop(environments.current(), old.digest)
        _record_key(AuditAction.API_KEY_ROLLED, old, actor, now, successor=str(issued.row.id))
    return issued


def revoke_key(*, key_id: UUID, actor: Actor, now: datetime) -> ApiKey:
    """Refuse the key from now on; repeating it changes nothing; raises `ApiKeyNotFound`."""
    with environments.atomic():
        row = ApiKey.objects.select_for_update().filter(id=key_id).first()
        if row is None:
            raise ApiKeyNotFound()
        if row.revoked_at is None:
            row.revoked_at = now
            row.save(update_fields=["revoked_at"])
            recent_keys.drop(environments.current(), row.digest)
            _record_key(AuditAction.API_KEY_REVOKED, row, actor, now)
    return row


def authenticate(*, secret: str, now: datetime) -> ApiKey:
    """The usable key that `secret` is, in the current environment; raises an `Unauthorized`.

    A key found usable is not looked up again for `recent_keys.FRESH_SECONDS`.
    """
    recent = recent_keys.find(environments.current(), keys.digest(secret))
    if recent is not None and not recent.is_expired(now):
        return recent
    return check(digest=keys.digest(secret), now=now)


def check(*, digest: str, now: datetime) -> ApiKey:
    """As `authenticate()`, from the database, for the key of this digest."""
    (found,) = sql.read_together((ApiKey, "WHERE digest = %s", [digest]))
    row: ApiKey | None = found[0] if found else None
    refusal = _refusal(row, now)
    if row is None or refusal is not None:
        recent_keys.drop(environments.current(), digest)
        raise refusal or InvalidApiKey()
    if row.last_used_at is None or row.last_used_at < now - USE_RESOLUTION:
        ApiKey.objects.filter(id=row.id).unused_since(now - USE_RESOLUTION).update(last_used_at=now)
    recent_keys.keep(environments.current(), row)
    return row


def _refusal(row: ApiKey | None, now: datetime) -> Unauthorized | None:
    """Why the key does not count; None for one that does."""
    if row is None:
        return InvalidApiKey()
    if row.revoked_at is not None:
        return RevokedApiKey()
    return ExpiredApiKey() if row.is_expired(now) else None


def _known_scopes(scopes: Sequence[str] | None) -> list[str]:
    if scopes is None:
        return [scope.value for scope in Scope]
    unknown = sorted(set(scopes) - {scope.value for scope in Scope})
    if unknown or not scopes:
        allowed = ", ".join(scope.value for scope in Scope)
        raise Invalid(f"Unknown scopes: {', '.join(unknown) or 'none given'}; choose among {allowed}")
    return list(dict.fromkeys(scopes))


def _record_key(action: AuditAction, row: ApiKey, actor: Actor, now: datetime, **metadata: object) -> None:
    auditlog.record(
        tenant_id=row.tenant_id,
        action=action,
        affected_id=row.id,
        description=f"API key {row.hint}",
        metadata={"name": row.name, **metadata},
        actor=actor,
        now=now,
    )
