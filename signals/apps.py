"""The signals as a Django app."""

from django.apps import AppConfig


class SignalsConfig(AppConfig):
    name = "signals"
    label = "signals"
    verbose_name = "Signals"
