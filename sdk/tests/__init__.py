"""Tests of the client package against a running service."""
