"""Spans that agents already emit by OpenTelemetry, recorded as their events."""
