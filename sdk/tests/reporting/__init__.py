"""Tests of the event reporter."""
