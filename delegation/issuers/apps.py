"""Trusted issuers as a Django app."""

from django.apps import AppConfig


class IssuersConfig(AppConfig):
    name = "delegation.issuers"
    label = "issuers"
    verbose_name = "Trusted issuers"
