"""The name that security keys know the console by, and the checks of its settings."""

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core import checks
from django.urls import reverse

from compliance.tests.console import console_of
from people import relying_party

ACCOUNT = reverse("mfa_index")


@pytest.mark.parametrize(
    ("origin", "rp_id", "found"),
    [
        ("https://console.example.org", "", None),
        ("https://console.example.org:8443", "example.org", None),
        ("http://localhost:8000", "", None),
        ("http://console.example.org", "", "not HTTPS"),
        ("https://console.example.org/admin", "", "not an origin"),
        ("console.example.org", "", "not an origin"),
        ("https://console.example.org:443", "", "not an origin"),
        ("https://console.example.org", "example.com", "neither"),
        ("https://console.example.org", "org", "neither"),
        ("https://console.example.org", "ole.example.org", "neither"),
        ("https://192.0.2.7", "", "address"),
        ("https://[::1", "", "not an origin"),
        ("https://host:99999", "", "not an origin"),
    ],
)
def test_nonsense_in_the_settings_is_found(
    monkeypatch: pytest.MonkeyPatch, origin: str, rp_id: str, found: str | None
) -> None:
    monkeypatch.setattr(settings, "WEBAUTHN_ORIGIN", origin)
    monkeypatch.setattr(settings, "WEBAUTHN_RP_ID", rp_id)

    problem = relying_party.problem()

    assert problem is None if found is None else found in (problem or "")
    assert ("people.E002" in {one.id for one in checks.run_checks()}) is (found is not None)


@pytest.mark.parametrize(
    ("base", "origin", "works"),
    [
        ("http://127.0.0.1:8000", "http://localhost:8000", True),
        ("https://Console.example.org:443/x", "https://console.example.org", True),
        ("http://10.0.0.7:8000", "http://10.0.0.7:8000", False),
        ("http://console.example.org", "http://console.example.org", False),
    ],
)
def test_origin_follows_the_base_url(
    monkeypatch: pytest.MonkeyPatch, root: User, base: str, origin: str, works: bool
) -> None:
    for name in ("WEBAUTHN_ORIGIN", "WEBAUTHN_RP_ID"):
        monkeypatch.setattr(settings, name, "")
    monkeypatch.setattr(settings, "BASE_URL", base)

    page = console_of(root).get(ACCOUNT).content.decode()
    warned = {one.id for one in checks.run_checks(include_deployment_checks=True)}

    assert relying_party.current().origin == origin
    assert ("Add a security key" in page) is works
    assert ("people.W002" in warned) is not works
