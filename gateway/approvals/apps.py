"""Approvals as a Django app."""

from django.apps import AppConfig


class ApprovalsConfig(AppConfig):
    name = "gateway.approvals"
    label = "approvals"
    verbose_name = "Approvals"
