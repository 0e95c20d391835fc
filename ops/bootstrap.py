"""The contents of a development stack: CAs, signing keys, a demo tenant with API keys, console log-ins."""

import json
import secrets
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from uuid import UUID

from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.core.management import call_command

from auditlog.sealing import keys as log_keys
from auditlog.vocabulary import Actor
from certificates import authorities
from compliance.core import environments
from compliance.core.environments import Environment
from delegation import services as delegation
from people import recording
from tenancy import keys, memberships, services as tenancy
from tenancy.models import ApiKey, Membership, Role, Tenant

ACTOR = Actor.system("bootstrap_dev")
TENANT_NAME = "Demo tenant"


def bootstrap(*, state_file: Path, migrate: bool = False, now: datetime) -> dict[str, str]:
    """Make what is missing and keep what exists; safe to repeat and to interrupt.

    Returns the tenant's id, its API keys and the log-ins, which `state_file` keeps for its owner's eyes only.
    """
    known: dict[str, str] = {}
    with suppress(FileNotFoundError, json.JSONDecodeError):
        known = json.loads(state_file.read_text())
    for environment in Environment:
        if migrate:
            call_command("migrate", database=environment.alias, interactive=False, verbosity=0)
        with environments.use(environment):
            authorities.bootstrap(now=now)
            delegation.bootstrap(now=now)
            log_keys.bootstrap(actor=ACTOR, now=now)
    tenant = _tenant(known.get("tenant_id"), now)
    made = {"tenant_id": str(tenant.id)}
    for environment in Environment:
        name = f"{environment.value}_api_key"
        made[name] = _api_key(environment, tenant, known.get(name), now)
    for username, member_of in (("operator", None), ("officer", tenant)):
        made[f"{username}_username"] = username
        password = known.get(f"{username}_password") or secrets.token_urlsafe(12)
        made[f"{username}_password"] = password
        _ensure_user(username, password, member_of, now)
    fresh = state_file.with_suffix(".new")
    fresh.touch(mode=0o600)
    fresh.chmod(0o600)
    fresh.write_text(json.dumps(made, indent=2))
    fresh.replace(state_file)
    return made


def _tenant(tenant_id: str | None, now: datetime) -> Tenant:
    with environments.use(Environment.LIVE):
        found = Tenant.objects.filter(id=UUID(tenant_id)).first() if tenant_id else None
        if found is None:
            return tenancy.create_tenant(name=TENANT_NAME, actor=ACTOR, now=now)
        tenancy.mirror_tenant(tenant=found)
        return found


def _api_key(environment: Environment, tenant: Tenant, known: str | None, now: datetime) -> str:
    with environments.use(environment):
        if known and ApiKey.objects.usable(now).filter(digest=keys.digest(known)).exists():
            return known
        local = tenancy.get_tenant(tenant_id=tenant.id)
        return tenancy.create_key(tenant=local, name="demo", actor=ACTOR, now=now).secret


def _ensure_user(username: str, password: str, tenant: Tenant | None, now: datetime) -> None:
    user = User.objects.filter(username=username).first()
    if user is None:
        user = User(
            username=username, password=make_password(password), is_staff=True, is_superuser=tenant is None
        )
        recording.store_new(user=user, actor=ACTOR, now=now)
    with recording.recorded_changes(user_id=user.pk, actor=ACTOR, now=now):
        if not user.check_password(password):
            user.set_password(password)
        user.is_staff, user.is_superuser = True, tenant is None
        user.save()
    if tenant and not Membership.objects.filter(user=user, tenant_id=tenant.id).exists():
        memberships.grant(user=user, tenant_id=tenant.id, role=Role.OFFICER, actor=ACTOR, now=now)
