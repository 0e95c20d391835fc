"""Passwords that cost nothing to check, and the relying party that the software keys believe in."""

import pytest
from django.conf import settings
from django.contrib.auth.models import User

from compliance.people.passkeys.tests.security_keys import ORIGIN, RP_ID
from compliance.people.tests.conftest import fast_passwords
from compliance.people.tests.test_second_factor import PASSWORD, required, root
from compliance.tests.console import make_operator

__all__ = ["fast_passwords", "required", "root"]


@pytest.fixture(autouse=True)
def at_localhost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "WEBAUTHN_ORIGIN", ORIGIN)
    monkeypatch.setattr(settings, "WEBAUTHN_RP_ID", RP_ID)


@pytest.fixture
def lee() -> User:
    user = make_operator("lee")
    user.set_password(PASSWORD)
    user.save()
    return user
