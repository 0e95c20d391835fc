"""Passwords that cost nothing to check, and the relying party that the software keys believe in."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from compliance.tests.console import make_operator, make_staff
from people.tests.security_keys import ORIGIN, RP_ID
from people.tests.test_second_factor import PASSWORD, required, root

__all__ = ["required", "root"]


@pytest.fixture(autouse=True)
def at_localhost(fast_passwords: None, settings: Any) -> None:
    settings.WEBAUTHN_ORIGIN, settings.WEBAUTHN_RP_ID = ORIGIN, RP_ID


@pytest.fixture
def lee() -> User:
    user = make_operator("lee")
    user.set_password(PASSWORD)
    user.save()
    return user


@pytest.fixture
def kim() -> User:
    return make_staff("kim", password=PASSWORD)
