"""People as a Django app, and the site that they sign in to."""

from django.apps import AppConfig
from django.contrib.admin.apps import SimpleAdminConfig
from django.core.checks import register

from people.checks import check_deployed, check_signing_in
from people.sso.checks import check_sign_on, check_who_enters


class PeopleConfig(AppConfig):
    name = "people"
    label = "people"

    def ready(self) -> None:
        register(check_signing_in)
        register(check_sign_on)
        register(check_deployed, "security", deploy=True)
        register(check_who_enters, "security", deploy=True)


class ConsoleConfig(SimpleAdminConfig):
    """Django's admin with the console's own doors.

    Its pages are loaded with its routes, so only by web processes.
    """

    default_site = "people.site.ConsoleSite"
