"""What a development stack starts with: CAs, token keys, a demo tenant with keys, two console log-ins."""

import json
import secrets
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.db import connections

from auditlog.vocabulary import Actor
from certificates import services as certificates
from compliance import environments
from compliance.environments import Environment
from compliance.tenancy import keys, memberships
from compliance.tenancy import services as tenancy
from compliance.tenancy.models import ApiKey, Membership, Role, Tenant
from delegation import services as delegation

ACTOR = Actor.system("bootstrap_dev")
TENANT_NAME = "Demo tenant"

Made = TypeVar("Made")


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


def bootstrap(*, state_file: Path, migrate: bool = False, now: datetime) -> DemoState:
    """Make what is missing, keep what is there; safe to repeat and to interrupt.

    With `migrate` the databases are brought up to date first. What does not depend on each other runs side
    by side: the HSM makes keys and the databases write while this process has nothing to compute.
    """
    known = _read(state_file)
    with ThreadPoolExecutor(len(Environment)) as pool:
        _all(
            pool.submit(_with_own_connections, _prepare, environment, migrate, now)
            for environment in Environment
        )
        tenant = _tenant(known.get("tenant_id"), now)
        operator, officer = _all(
            pool.submit(_with_own_connections, _user, username, known.get(f"{username}_password"), owner, now)
            for username, owner in (("operator", None), ("officer", tenant))
        )
    state = DemoState(
        tenant_id=str(tenant.id),
        live_api_key=_key(Environment.LIVE, tenant, known.get("live_api_key"), now),
        test_api_key=_key(Environment.TEST, tenant, known.get("test_api_key"), now),
        operator_username="operator",
        operator_password=operator,
        officer_username="officer",
        officer_password=officer,
    )
    _write(state_file, state)
    return state


def _all(jobs: Iterable[Future[Made]]) -> list[Made]:
    """The results of jobs, all of which are under way before the first is waited for."""
    return [job.result() for job in list(jobs)]


def _with_own_connections(action: Callable[..., Made], *arguments: Any) -> Made:
    """Run in a thread of a pool, which must not leave its connections open behind it."""
    try:
        return action(*arguments)
    finally:
        connections.close_all()


def _prepare(environment: Environment, migrate: bool, now: datetime) -> None:
    if migrate:
        call_command("migrate", database=environment.alias, interactive=False, verbosity=0)
    with environments.use(environment):
        certificates.bootstrap(now=now)
        delegation.bootstrap(now=now)


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


def _user(username: str, known: str | None, tenant: Tenant | None, now: datetime) -> str:
    """The log-in's password; an operator without a tenant, an officer of `tenant` otherwise."""
    user, _ = get_user_model().objects.get_or_create(username=username)
    password = known or secrets.token_urlsafe(12)
    if not user.check_password(password):
        user.set_password(password)
    user.is_staff, user.is_superuser = True, tenant is None
    user.save()
    if tenant is not None:
        _let_in(user, tenant, now)
    return password


def _let_in(user: Any, tenant: Tenant, now: datetime) -> None:
    if not Membership.objects.filter(user=user, tenant_id=tenant.id).exists():
        memberships.grant(user=user, tenant_id=tenant.id, role=Role.OFFICER, actor=ACTOR, now=now)
