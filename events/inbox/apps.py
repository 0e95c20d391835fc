"""The review inbox as a Django app."""

from django.apps import AppConfig


class InboxConfig(AppConfig):
    name = "events.inbox"
    label = "inbox"
    verbose_name = "Review inbox"
