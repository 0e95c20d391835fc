"""System checks of how the service reaches its databases."""

from typing import Any

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage
from django.db import Error

from auditlog import guards
from compliance import environments
from compliance.environments import Environment
from compliance.wiring import role_audit


def check_owners(**kwargs: Any) -> list[CheckMessage]:
    """Where an owner is given, it is another role than the service's."""
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
    """The service's role can't change what it must not, and the audit log's triggers are in force."""
    found: list[CheckMessage] = []
    for environment in Environment:
        try:
            found += _of_database(environment)
        except Error as error:
            text = f"The {environment.value} database could not be looked at: {type(error).__name__}."
            hint = "Run this where the databases answer, after manage.py migrate."
            found.append(checks.Warning(text, hint=hint, id="wiring.W001"))
    return found


def _of_database(environment: Environment) -> list[CheckMessage]:
    database, alias = f"{environment.value} database", environment.alias
    told = [f"In the {database} the service's role {excess}." for excess in role_audit.excesses(alias)]
    found: list[CheckMessage] = [
        checks.Error(text, hint=role_audit.REMEDY, id="wiring.E002") for text in told
    ]
    if not told and (differing := role_audit.privileges_that_differ(alias)):
        hint = "Run manage.py migrate for that database, with DATABASE_OWNER_URL."
        text = f"Privileges in the {database} are others than listed: {differing}."
        found.append(checks.Error(text, hint=hint, id="wiring.E003"))
    with environments.use(environment):
        if not guards.are_in_force():
            text = f"Triggers of the audit log in the {database} are missing or disabled."
            found.append(checks.Error(text, hint=guards.REMEDY, id="wiring.E004"))
    return found
