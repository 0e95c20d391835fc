"""Passwords that cost nothing to check."""

from typing import Any

import pytest


@pytest.fixture(autouse=True)
def fast_passwords(settings: Any) -> None:
    """Hash by MD5: PBKDF2 takes half a second, and every sign-in does it."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
