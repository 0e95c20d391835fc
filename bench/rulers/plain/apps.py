"""Names the app, for its label would be the package's last word anyway."""

from django.apps import AppConfig


class PlainConfig(AppConfig):
    name = "bench.rulers.plain"
    label = "plain"
