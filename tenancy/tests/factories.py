"""Tenants and keys for tests, named by state."""

from collections.abc import Sequence
from datetime import timedelta

from auditlog.vocabulary import Actor
from compliance.core import environments
from compliance.core.clock import now
from compliance.core.environments import Environment
from tenancy import services
from tenancy.models import ApiKey, Tenant

ACTOR = Actor.system("tests")


def make_tenant(name: str = "Acme") -> Tenant:
    return services.create_tenant(name=name, actor=ACTOR, now=now())


def make_key(tenant: Tenant, scopes: Sequence[str] | None = None) -> str:
    """The secret of a key of the current environment."""
    return _issue(tenant, scopes).secret


def make_test_key(tenant: Tenant, scopes: Sequence[str] | None = None) -> str:
    with environments.use(Environment.TEST):
        return _issue(tenant, scopes).secret


def make_revoked_key(tenant: Tenant) -> str:
    issued = _issue(tenant, None)
    services.revoke_key(key_id=issued.row.id, actor=ACTOR, now=now())
    return issued.secret


def make_expired_key(tenant: Tenant) -> str:
    issued = _issue(tenant, None)
    ApiKey.objects.filter(id=issued.row.id).update(expires_at=now() - timedelta(seconds=1))
    return issued.secret


def _issue(tenant: Tenant, scopes: Sequence[str] | None) -> services.IssuedKey:
    mirrored = services.get_tenant(tenant_id=tenant.id)
    return services.create_key(tenant=mirrored, name="test", scopes=scopes, actor=ACTOR, now=now())
