"""Checks of an installation that was restored from backups."""
