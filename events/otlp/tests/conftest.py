"""Fixtures of the events' tests."""

from events.tests.conftest import backend_dies_at, forgotten, world

__all__ = ["backend_dies_at", "forgotten", "world"]
