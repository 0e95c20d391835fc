"""Reports as a Django app."""

from django.apps import AppConfig


class ReportsConfig(AppConfig):
    name = "reports"
    label = "reports"
    verbose_name = "Reports"
