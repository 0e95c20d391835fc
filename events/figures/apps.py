"""The daily figures as a Django app."""

from django.apps import AppConfig


class FiguresConfig(AppConfig):
    name = "events.figures"
    label = "figures"
    verbose_name = "Daily figures"
