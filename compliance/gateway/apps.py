"""The gateway as a Django app."""

from django.apps import AppConfig


class GatewayConfig(AppConfig):
    name = "compliance.gateway"
    label = "gateway"
    verbose_name = "Gateway"
