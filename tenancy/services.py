"""Creating tenants, and creating, rolling, revoking and checking API keys."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from time import monotonic
from typing import Any, Final
from uuid import UUID

from auditlog import services as auditlog
from auditlog.vocabulary import Actor, AuditAction
from compliance.api.gate import Scope
from compliance.core import environments
from compliance.core.environments import Environment
from compliance.core.errors import Invalid, NotFound, Unauthorized
from compliance.stores import sql
from tenancy import keys, recent_keys
from tenancy.models import ApiKey, Tenant

USE_RESOLUTION = timedelta(minutes=1)
SETTINGS: Final = {
    "enforcement": (AuditAction.TENANT_ENFORCEMENT_CHANGED, "Enforcement of tenant {}: {} to {}"),
    "alarm_budget": (AuditAction.TENANT_ALARM_BUDGET_CHANGED, "Alarm budget of tenant {}: {:g} to {:g}"),
    "owner_required": (AuditAction.TENANT_OWNER_REQUIRED_CHANGED, "Owners required by tenant {}: {} to {}"),
}
"""The settings of a tenant's agents, each with the audit entry of its change."""

_NOTE_USE: Final = f"""
UPDATE {ApiKey._meta.db_table} SET last_used_at = %(now)s WHERE id = (
    SELECT id FROM {ApiKey._meta.db_table}
    WHERE id = %(id)s AND (last_used_at IS NULL OR last_used_at < %(before)s) FOR NO KEY UPDATE SKIP LOCKED)
"""  # noqa: S608  (a name of ours)
"""A locked row is left as it is: the thread that looks up the keys of all tenants must not wait for one."""


class InvalidApiKey(Unauthorized):
    message = "Invalid API key"


class RevokedApiKey(Unauthorized):
    message = "API key has been revoked"


class ExpiredApiKey(Unauthorized):
    message = "API key has expired"


class TenantNotFound(NotFound):
    message = "Tenant not found"


class ApiKeyNotFound(NotFound):
    message = "API key not found"


@dataclass(frozen=True)
class IssuedKey:
    """A new key's row, and its secret, which is not stored."""

    row: ApiKey
    secret: str


def create_tenant(*, name: str, actor: Actor, now: datetime) -> Tenant:
    """Create a tenant in both databases. Raises `Invalid` for a bad name."""
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
    """Copy `tenant` to the test database unless it is there."""
    with environments.use(Environment.TEST):
        given = {"name": tenant.name, "created_at": tenant.created_at}
        Tenant.objects.get_or_create(id=tenant.id, defaults=given)


def get_tenant(*, tenant_id: UUID) -> Tenant:
    """Return the tenant in the current environment, mirrored first if necessary. Raises `TenantNotFound`."""
    with environments.use(Environment.LIVE):
        tenant = Tenant.objects.filter(id=tenant_id).first()
    if tenant is None:
        raise TenantNotFound()
    if environments.current() is Environment.TEST:
        mirror_tenant(tenant=tenant)
        return Tenant.objects.get(id=tenant_id)
    return tenant


def change_setting(
    *, tenant_id: UUID, name: str, value: Any, reason: str, actor: Actor, now: datetime
) -> Tenant:
    """Set one of `SETTINGS` of a tenant in the current environment; audited if it changes anything.

    Agents with a mode or an alarm budget of their own keep it; certificates in force stay. Raises
    `TenantNotFound`.
    """
    action, said = SETTINGS[name]
    with environments.atomic():
        found = get_tenant(tenant_id=tenant_id)
        tenant = Tenant.objects.select_for_update(no_key=True).get(id=found.id)
        before = getattr(tenant, name)
        setattr(tenant, name, value)
        if before != value:
            tenant.save(update_fields=[name])
            auditlog.record(
                tenant_id=tenant.id,
                action=action,
                affected_id=tenant.id,
                description=said.format(tenant.name, before, value),
                metadata={"before": before, "after": value, "reason": reason},
                actor=actor,
                now=now,
            )
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
    """Create a key of the current environment, with all scopes by default. Raises `Invalid`."""
    known = [scope.value for scope in Scope]
    granted = known if scopes is None else list(dict.fromkeys(scopes))
    unknown = sorted(set(granted) - set(known))
    if unknown or not granted:
        shown = ", ".join(unknown) or "none given"
        raise Invalid(f"Unknown scopes: {shown}; choose among {', '.join(known)}")
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
    """Create a successor with the same name and scopes, and let the old key expire after `overlap`.

    Raises `ApiKeyNotFound`.
    """
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


def revoke_key(*, key_id: UUID, reason: str | None = None, actor: Actor, now: datetime) -> ApiKey:
    """Refuse the key from now on; safe to repeat. Raises `ApiKeyNotFound`."""
    with environments.atomic():
        row = ApiKey.objects.select_for_update().filter(id=key_id).first()
        if row is None:
            raise ApiKeyNotFound()
        if row.revoked_at is None:
            row.revoked_at = now
            row.save(update_fields=["revoked_at"])
            recent_keys.drop(environments.current(), row.digest)
            given = {"reason": reason} if reason else {}
            _record_key(AuditAction.API_KEY_REVOKED, row, actor, now, **given)
    return row


def authenticate(*, secret: str, now: datetime) -> ApiKey:
    """Return the usable key of the current environment with this secret. Raises a subclass of `Unauthorized`.

    A key found usable is not looked up again for `recent_keys.FRESH_SECONDS`.
    """
    recent = recent_keys.find(environments.current(), keys.digest(secret))
    if recent is not None and not recent.is_expired(now):
        return recent
    return check(digest=keys.digest(secret), now=now)


def check(*, digest: str, now: datetime) -> ApiKey:
    """Look up a usable key by its digest in the database. Raises a subclass of `Unauthorized`."""
    read_at = monotonic()
    (found,) = sql.read_together((ApiKey, "WHERE digest = %s", [digest]))
    row: ApiKey | None = found[0] if found else None
    if row is None or row.revoked_at is not None or row.is_expired(now):
        recent_keys.drop(environments.current(), digest)
        raise InvalidApiKey() if row is None else RevokedApiKey() if row.revoked_at else ExpiredApiKey()
    if row.last_used_at is None or row.last_used_at < now - USE_RESOLUTION:
        sql.execute(_NOTE_USE, {"id": row.id, "now": now, "before": now - USE_RESOLUTION})
    recent_keys.keep(environments.current(), row, read_at=read_at)
    return row


def _record_key(action: AuditAction, row: ApiKey, actor: Actor, now: datetime, **metadata: object) -> None:
    description = f"API key {row.hint}"
    metadata = {"name": row.name, **metadata}
    auditlog.record(of=row, action=action, description=description, metadata=metadata, actor=actor, now=now)
