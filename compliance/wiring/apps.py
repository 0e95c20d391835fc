"""The wiring as a Django app: it has commands and no tables."""

from django.apps import AppConfig


class WiringConfig(AppConfig):
    name = "compliance.wiring"
    label = "wiring"
