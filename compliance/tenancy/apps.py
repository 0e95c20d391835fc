"""Tenancy as a Django app."""

from django.apps import AppConfig


class TenancyConfig(AppConfig):
    name = "compliance.tenancy"
    label = "tenancy"
    verbose_name = "Tenants and keys"
