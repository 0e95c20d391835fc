"""System checks of the database roles."""

from typing import Any

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage
from django.db import Error

from auditlog import guards
from compliance.core import environments
from compliance.core.environments import Environment
from compliance.ops.privileges import role_audit
from compliance.people import guards as people_guards

MIGRATE = "Run manage.py migrate for that database, with DATABASE_OWNER_URL."
CHECKS = (
    (checks.Error, role_audit.role_is_limited, role_audit.REMEDY, "wiring.E002"),
    (checks.Error, role_audit.privileges_as_listed, MIGRATE, "wiring.E003"),
    (checks.Error, role_audit.audit_log_guarded, guards.REMEDY, "wiring.E004"),
    # A warning: the pages work without the role.
    (checks.Warning, role_audit.auditor_is_in_use, role_audit.AUDITOR_REMEDY, "wiring.W002"),
)
LIVE_CHECKS = ((checks.Error, role_audit.people_guarded, people_guards.REMEDY, "wiring.E005"),)


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


def check_roles(**kwargs: Any) -> list[CheckMessage]:
    """Check both databases: the service's role, and the triggers on the audit log and people."""
    found: list[CheckMessage] = []
    for environment in Environment:
        try:
            with environments.use(environment):
                found += _messages(environment)
        except Error as error:
            text = f"The {environment.value} database can't be checked: {type(error).__name__}."
            hint = "Run this check where the databases answer, after manage.py migrate."
            found.append(checks.Warning(text, hint=hint, id="wiring.W001"))
    return found


def _messages(environment: Environment) -> list[CheckMessage]:
    return [
        level(f"In the {environment.value} database: {problem}.", hint=hint, id=number)
        for level, check, hint, number in CHECKS + (LIVE_CHECKS if environment is Environment.LIVE else ())
        if (problem := check())
    ]
