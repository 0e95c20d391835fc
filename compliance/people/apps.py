"""People as a Django app, and the site that they sign in to."""

from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig


class PeopleConfig(AppConfig):
    name = "compliance.people"
    label = "people"


class ConsoleConfig(AdminConfig):
    """Django's admin with the console's own doors."""

    default_site = "compliance.people.doors.site.ConsoleSite"
