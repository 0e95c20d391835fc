"""Tests of stops."""
