"""What a development stack starts with: CAs, token keys, a demo tenant with keys, two console log-ins."""

import json
import secrets
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from uuid import UUID

from django.contrib.auth import get_user_model

from auditlog.vocabulary import Actor
from certificates import services as certificates
from compliance import environments
from compliance.environments import Environment
from compliance.tenancy import keys
from compliance.tenancy import services as tenancy
from compliance.tenancy.models import ApiKey, Membership, Role, Tenant
from delegation import services as delegation

ACTOR = Actor.system("bootstrap_dev")
TENANT_NAME = "Demo tenant"


@dataclass(frozen=True)
class DemoState:
    """What a person needs to use a development stack; kept in a file only its owner can read."""

    tenant_id: str
    live_api_key: str
    test_api_key: str
    operator_username: str
    operator_password: str
    officer_username: str
    officer_password: str


def bootstrap(*, state_file: Path, now: datetime) -> DemoState:
    """Make what is missing, keep what is there; safe to repeat and to interrupt."""
    for environment in Environment:
        with environments.use(environment):
            certificates.bootstrap(now=now)
            delegation.bootstrap(now=now)
    known = _read(state_file)
    tenant = _tenant(known.get("tenant_id"), now)
    state = DemoState(
        tenant_id=str(tenant.id),
        live_api_key=_key(Environment.LIVE, tenant, known.get("live_api_key"), now),
        test_api_key=_key(Environment.TEST, tenant, known.get("test_api_key"), now),
        operator_username="operator",
        operator_password=_user("operator", known.get("operator_password"), tenant=None),
        officer_username="officer",
        officer_password=_user("officer", known.get("officer_password"), tenant=tenant),
    )
    _write(state_file, state)
    return state


def _read(state_file: Path) -> dict[str, str]:
    try:
        found = json.loads(state_file.read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return {}
    return found if isinstance(found, dict) else {}


def _write(state_file: Path, state: DemoState) -> None:
    fresh = state_file.with_suffix(".new")
    fresh.touch(mode=0o600)
    fresh.chmod(0o600)
    fresh.write_text(json.dumps(vars(state), indent=2))
    fresh.replace(state_file)


def _tenant(tenant_id: str | None, now: datetime) -> Tenant:
    with environments.use(Environment.LIVE):
        found = Tenant.objects.filter(id=UUID(tenant_id)).first() if tenant_id else None
        if found is not None:
            tenancy.mirror_tenant(tenant=found)
            return found
        return tenancy.create_tenant(name=TENANT_NAME, actor=ACTOR, now=now)


def _key(environment: Environment, tenant: Tenant, known: str | None, now: datetime) -> str:
    with environments.use(environment):
        if known and ApiKey.objects.usable(now).with_digest(keys.digest(known)).exists():
            return known
        local = tenancy.get_tenant(tenant_id=tenant.id)
        return tenancy.create_key(tenant=local, name="demo", actor=ACTOR, now=now).secret


def _user(username: str, known: str | None, *, tenant: Tenant | None) -> str:
    """The log-in's password; an operator without a tenant, an officer of `tenant` otherwise."""
    user, _ = get_user_model().objects.get_or_create(username=username)
    password = known or secrets.token_urlsafe(12)
    if not user.check_password(password):
        user.set_password(password)
    user.is_staff, user.is_superuser = True, tenant is None
    user.save()
    if tenant is not None:
        Membership.objects.get_or_create(user=user, tenant_id=tenant.id, defaults={"role": Role.OFFICER})
    return password
