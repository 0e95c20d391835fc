"""Stops as a Django app."""

from django.apps import AppConfig


class StopsConfig(AppConfig):
    name = "delegation.stops"
    label = "stops"
    verbose_name = "Stops"
