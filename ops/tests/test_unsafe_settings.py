"""Each setting that `check --deploy` refuses, and a deployment that it does not refuse."""

import os
import secrets
import subprocess
import sys
from ipaddress import ip_network
from string import ascii_letters, ascii_lowercase, digits
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.conf import settings
from django.core import checks
from pytest_django.fixtures import Settings

from compliance.settings.declaring import Network
from ops.unsafe_settings import check_unsafe

SAFE: dict[str, Any] = {
    "DEBUG": False,
    "SECRET_KEY": "k7Qw2Zr9Xy4Tn8Vb3Lp6Hd1Gs5Jf0Mc-aEuRiOtYpWqSxNvBzKl",
    "ENCRYPTION_KEYS": [Fernet.generate_key().decode()],
    "BASE_URL": "https://agents.example.org",
    "HTTPS": True,
    "ALLOWED_HOSTS": ["agents.example.org"],
    "WEBHOOK_ALLOW_PRIVATE_ADDRESSES": False,
    "WEBHOOK_ALLOW_HTTP": False,
    "TRUSTED_ISSUER_ALLOW_PRIVATE_ADDRESSES": False,
    "TRUSTED_ISSUER_ALLOW_HTTP": False,
    "PKCS11_MODULE": "/usr/lib/hsm.so",
    "PKCS11_TOKENS": {name: {"label": name, "pin": "93-kafue-17"} for name in ("live", "test")},
    "PKCS11_SO_PIN": "of-the-officer-41",
    "METRICS_TOKEN": "",
    "TRUSTED_PROXIES": [ip_network("192.0.2.10")],
    "REDIS_URL": "redis://:of-the-store@valkey.example.org/0",
    "BROKER_URL": "redis://:of-the-broker@valkey.example.org/1",
}


@pytest.fixture
def safe(settings: Settings) -> Settings:
    for name, value in SAFE.items():
        setattr(settings, name, value)
    return settings


def test_safe_settings_pass(safe: Settings) -> None:
    assert check_unsafe() == []


def networks(listed: str) -> list[Network]:
    return [ip_network(one) for one in listed.split(",")]


def pins(live: str) -> dict[str, dict[str, str]]:
    return {"live": {"label": "live", "pin": live}, "test": SAFE["PKCS11_TOKENS"]["test"]}


@pytest.mark.parametrize(
    ("number", "name", "value"),
    [
        ("E010", "DEBUG", True),
        ("E011", "SECRET_KEY", "short-but-random-9Zq4"),
        ("E011", "SECRET_KEY", "django-insecure-" + SAFE["SECRET_KEY"]),
        ("E011", "SECRET_KEY", "ab" * 40),
        ("E011", "SECRET_KEY", ascii_lowercase * 2),
        ("E011", "SECRET_KEY", (ascii_letters + digits) * 2),
        ("E011", "SECRET_KEY", "k7Qw2Zr9Xy4Tn8" * 4),
        ("E012", "ENCRYPTION_KEYS", ["not-a-fernet-key"]),
        ("E012", "ENCRYPTION_KEYS", ["A" * 43 + "="]),
        ("E013", "BASE_URL", "https://"),
        ("E014", "ALLOWED_HOSTS", ["*"]),
        ("E014", "ALLOWED_HOSTS", ["agents.example.org", ".com"]),
        ("E015", "WEBHOOK_ALLOW_PRIVATE_ADDRESSES", True),
        ("E015", "WEBHOOK_ALLOW_HTTP", True),
        ("E015", "TRUSTED_ISSUER_ALLOW_PRIVATE_ADDRESSES", True),
        ("E015", "TRUSTED_ISSUER_ALLOW_HTTP", True),
        ("E016", "PKCS11_TOKENS", pins("12345678")),
        ("E016", "PKCS11_TOKENS", pins("11111111")),
        ("E016", "PKCS11_TOKENS", pins("12341234")),
        ("E016", "PKCS11_TOKENS", pins("Password")),
        ("E016", "PKCS11_TOKENS", pins("9-kafue")),
        ("E016", "PKCS11_TOKENS", pins("")),
        ("E016", "PKCS11_SO_PIN", "12345678"),
        ("E017", "TRUSTED_PROXIES", []),
        ("E017", "TRUSTED_PROXIES", networks("192.0.2.10,0.0.0.0/0")),
        ("E017", "TRUSTED_PROXIES", networks("0.0.0.0/1,128.0.0.0/1")),
        ("E017", "TRUSTED_PROXIES", networks(",".join(f"{first}.0.0.0/8" for first in range(1, 224)))),
        ("E017", "TRUSTED_PROXIES", networks("8.0.0.0/8")),
        ("E017", "TRUSTED_PROXIES", networks("8.0.0.0/12,8.16.0.0/12")),
        ("E017", "TRUSTED_PROXIES", networks("10.0.0.0/8,11.0.0.0/9,11.128.0.0/9")),
        ("E017", "TRUSTED_PROXIES", networks("::/0")),
        ("E017", "TRUSTED_PROXIES", networks("2000::/7")),
        ("E018", "REDIS_URL", "redis://valkey.example.org/0"),
        ("E018", "BROKER_URL", "redis://valkey.example.org/1"),
        ("E018", "BROKER_URL", "sentinel://10.0.0.9:26379"),
        ("E020", "METRICS_TOKEN", "scrape-me"),
        ("E020", "METRICS_TOKEN", "a" * 16),
    ],
)
def test_unsafe_setting_is_refused(safe: Settings, number: str, name: str, value: Any) -> None:
    setattr(safe, name, value)

    [found] = check_unsafe()

    assert (found.id, found.is_serious()) == (f"wiring.{number}", True)
    assert found.msg.startswith(name.replace("_TOKENS", "_LIVE_PIN"))


@pytest.mark.parametrize("address", ["http://agents.example.org", "HTTPS://agents.example.org"])
def test_address_that_leaves_cookies_open_is_refused(address: str) -> None:
    """The settings derive HTTPS from the address: in a process of its own."""
    names = {"BASE_URL": address, "TRUSTED_PROXIES": "192.0.2.10"}

    found = subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy", "--tag", "unsafe_settings"],
        cwd=settings.BASE_DIR,
        env={**os.environ, **names},
        capture_output=True,
        text=True,
        check=False,
    )

    assert "wiring.E013" in found.stderr


def test_redis_that_strangers_cannot_ask_passes(safe: Settings) -> None:
    safe.REDIS_URL = safe.BROKER_URL = "redis://127.0.0.1:6379/0"

    assert check_unsafe() == []


@pytest.mark.parametrize(
    "listed",
    [
        "10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,127.0.0.0/8",
        "100.64.0.0/10",
        "104.16.0.0/13,172.64.0.0/13,2a06:98c0::/29",
        "fc00::/7,2001:4860::/32",
    ],
)
def test_networks_of_ones_own_pass(safe: Settings, listed: str) -> None:
    safe.TRUSTED_PROXIES = networks(listed)

    assert check_unsafe() == []


@pytest.mark.parametrize(("alias", "name"), [("default", "DATABASE_URL"), ("test", "TEST_DATABASE_URL")])
@pytest.mark.parametrize("options", [{}, {"sslmode": "disable"}, {"sslmode": "prefer"}])
def test_remote_database_in_the_clear_is_warned_of(
    safe: Settings, monkeypatch: pytest.MonkeyPatch, alias: str, name: str, options: dict[str, str]
) -> None:
    monkeypatch.setitem(safe.DATABASES, alias, {"HOST": "127.0.0.1,db.example.org", "OPTIONS": options})

    [found] = check_unsafe()

    assert (found.id, found.level) == ("wiring.W003", checks.WARNING)
    assert found.msg.startswith(f"{name} ")


def test_server_behind_a_pooler_in_the_clear_is_warned_of(safe: Settings) -> None:
    safe.DATABASES_DIRECT = {"default": {"HOST": "", "OPTIONS": {"host": "db.example.org"}}}

    [found] = check_unsafe()

    assert found.msg.startswith("DATABASE_DIRECT_URL ")


@pytest.mark.parametrize(
    "database",
    [
        {"HOST": "db.example.org", "OPTIONS": {"sslmode": "verify-full"}},
        {"HOST": "/run/postgresql"},
        {"HOST": "", "OPTIONS": {}},
        {"HOST": "localhost", "OPTIONS": {}},
    ],
)
def test_database_on_this_machine_or_with_tls_passes(
    safe: Settings, monkeypatch: pytest.MonkeyPatch, database: dict[str, Any]
) -> None:
    monkeypatch.setitem(safe.DATABASES, "default", database)

    assert check_unsafe() == []


def test_random_secrets_pass(safe: Settings) -> None:
    safe.SECRET_KEY = secrets.token_hex(25)
    safe.PKCS11_SO_PIN = secrets.token_hex(12)
    safe.METRICS_TOKEN = secrets.token_hex(16)

    assert check_unsafe() == []


def test_no_finding_shows_a_secret(safe: Settings) -> None:
    safe.SECRET_KEY, safe.ENCRYPTION_KEYS = "hunter2", ["hunter2"]
    safe.PKCS11_TOKENS, safe.REDIS_URL = pins("hunter2"), "redis://hunter2.example.org/0"

    found = check_unsafe()

    assert {one.id for one in found} == {f"wiring.E{number:03}" for number in (11, 12, 16, 18)}
    assert "hunter2" not in str(found)


def test_deployment_check_includes_the_rules(safe: Settings) -> None:
    safe.DEBUG = True

    found = {one.id for one in checks.run_checks(include_deployment_checks=True)}

    assert "wiring.E010" in found
