"""Streaming as a Django app."""

from django.apps import AppConfig


class StreamingConfig(AppConfig):
    name = "events.streaming"
    label = "streaming"
    verbose_name = "Stream"
