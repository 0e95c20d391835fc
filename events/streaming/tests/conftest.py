"""Fixtures of the events' tests."""

from events.tests.conftest import lasting_world, world

__all__ = ["lasting_world", "world"]
