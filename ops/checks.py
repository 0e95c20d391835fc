"""System checks of the database roles, of sessions behind a pooler, and of the tables' distribution."""

from typing import Any

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage
from django.db import Error

from auditlog import guards
from compliance.core import environments
from compliance.core.environments import Environment
from compliance.stores import sql
from ops.distribution.placements import DISTRIBUTED
from ops.privileges import role_audit

_SETTINGS = "SELECT name, setting FROM pg_settings WHERE lower(name) = ANY(%s)"
_HAS_CITUS = "SELECT FROM pg_extension WHERE extname = 'citus'"
_DIVIDED = "SELECT FROM pg_dist_partition WHERE logicalrelid::regclass::text = %s AND partmethod = 'h'"
DISTRIBUTE = "manage.py distribute"
MIGRATE_AS_OWNER = "Run manage.py migrate for that database, with DATABASE_OWNER_URL."
DATABASE_RULES = (
    (checks.Error, role_audit.role_is_limited, role_audit.REMEDY, "wiring.E002"),
    (checks.Error, role_audit.privileges_as_listed, MIGRATE_AS_OWNER, "wiring.E003"),
    (checks.Error, role_audit.audit_log_guarded, guards.REMEDY, "wiring.E004"),
    # A warning: the pages work without the role.
    (checks.Warning, role_audit.auditor_is_in_use, role_audit.AUDITOR_REMEDY, "wiring.W002"),
)


def check_owners(**kwargs: Any) -> list[CheckMessage]:
    """Check that an owner, where one is given, is not the role that the service runs as."""
    return [
        checks.Error(
            f"The owner of the {environment.value} database is the role that the service runs as.",
            hint=role_audit.REMEDY,
            id="wiring.E001",
        )
        for environment in Environment
        if settings.DATABASE_OWNERS[environment.alias].get("USER")
        == settings.DATABASES[environment.alias]["USER"]
    ]


def check_session_defaults(**kwargs: Any) -> list[CheckMessage]:
    """Check, where a pooler shares sessions, that the role's defaults are what the service needs."""
    found: list[CheckMessage] = []
    for environment in Environment:
        if environment.alias not in settings.DATABASES_DIRECT:
            continue
        wanted = settings.DATABASE_SESSION
        try:
            with environments.use(environment):
                rows = sql.query(_SETTINGS, [[name.casefold() for name in wanted]])
        except Error:
            continue  # `check_roles()` says so
        held = {name.casefold(): value for name, value in rows}
        missing = {name: value for name, value in wanted.items() if held.get(name.casefold()) != value}
        if missing:
            role = settings.DATABASES[environment.alias]["USER"]
            hint = " ".join(f"ALTER ROLE {role} SET {name} = '{value}';" for name, value in missing.items())
            text = f"Sessions of the {environment.value} database's pooler lack {', '.join(missing)}."
            found.append(checks.Error(text, hint=hint, id="wiring.E006"))
    return found


def check_distribution(**kwargs: Any) -> list[CheckMessage]:
    """Check that DATABASE_CITUS says whether the tables are distributed."""
    found: list[CheckMessage] = []
    for environment in Environment:
        try:
            with environments.use(environment):
                is_divided = bool(sql.query(_HAS_CITUS)) and bool(sql.query(_DIVIDED, [DISTRIBUTED[0]]))
        except Error:
            continue  # `check_roles()` says so
        if is_divided != settings.DATABASE_CITUS:
            state = "distributed by Citus" if is_divided else "not distributed"
            hint = "Set DATABASE_CITUS=true." if is_divided else f"Run {DISTRIBUTE}, or unset DATABASE_CITUS."
            text = f"The tables of the {environment.value} database are {state}."
            found.append(checks.Error(text, hint=hint, id="wiring.E008"))
    return found


def check_roles(**kwargs: Any) -> list[CheckMessage]:
    """Check both databases: the service's role, and the triggers on the audit log and people."""
    found: list[CheckMessage] = []
    for environment in Environment:
        try:
            with environments.use(environment):
                found += [
                    level(f"In the {environment.value} database: {problem}.", hint=hint, id=number)
                    for level, check, hint, number in DATABASE_RULES
                    if (problem := check())
                ]
                if environment is Environment.LIVE and (problem := role_audit.people_guarded()):
                    text = f"In the live database: {problem}."
                    found.append(checks.Error(text, hint=role_audit.PEOPLE_REMEDY, id="wiring.E005"))
        except Error as error:
            text = f"The {environment.value} database can't be checked: {type(error).__name__}."
            hint = "Run this check where the databases answer, after manage.py migrate."
            found.append(checks.Warning(text, hint=hint, id="wiring.W001"))
    return found
