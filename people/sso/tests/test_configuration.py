"""System checks refuse half a single sign-on, and one over the open network."""

import os
from pathlib import Path
from typing import Any

import pytest

from people.errors import ProviderUnavailable
from people.sso.checks import check_sign_on, check_who_enters
from people.sso.configuration import client_secret, is_only_way, sign_on
from people.sso.tests.providers import configure


def ids() -> list[str | None]:
    return [message.id for message in check_sign_on()]


def test_off_and_whole_are_both_right(settings: Any) -> None:
    off, is_on = ids(), sign_on() is not None
    configure(settings, "https://id.example.org/realms/acme")

    assert (off, is_on) == ([], False)
    assert (ids(), sign_on() is not None) == ([], True)


@pytest.mark.parametrize("missing", ["OIDC_ISSUER", "OIDC_CLIENT_ID", "OIDC_CLIENT_SECRET"])
def test_half_a_configuration_is_refused_and_stays_off(settings: Any, missing: str) -> None:
    configure(settings, "https://id.example.org", **{missing: ""})

    assert ids() == ["people.E005"]
    assert sign_on() is None


@pytest.mark.parametrize("name", ["OIDC_ONLY", "OIDC_CREATE_PEOPLE"])
def test_rules_without_a_provider_are_refused(settings: Any, name: str) -> None:
    setattr(settings, name, True)

    assert ids() == ["people.E005"]


def test_only_way_stays_the_only_way_without_a_provider(settings: Any) -> None:
    settings.OIDC_ONLY = True

    assert is_only_way()


@pytest.mark.parametrize(
    "issuer",
    [
        "http://id.example.org",
        "http://127.0.0.1.example.org",
        "http://localhost@example.org",
        "ftp://id.example.org",
        "id.example.org",
        "https://",
        "https://id.example.org?x=1",
        "https://id.example.org#x",
        "https://user:secret@id.example.org",
        "https://id.example.org:99999",
        "https://id.example.org/" + "x" * 300,
    ],
)
def test_other_issuers_are_refused(settings: Any, issuer: str) -> None:
    configure(settings, issuer)

    assert ids() == ["people.E003"]


@pytest.mark.parametrize(
    "issuer", ["http://127.0.0.1:9400", "http://[::1]/o", "http://localhost:8080/realms/x"]
)
def test_this_machine_needs_no_tls(settings: Any, issuer: str) -> None:
    configure(settings, issuer)

    assert ids() == []


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("OIDC_ALGORITHMS", ["none"], "people.E004"),
        ("OIDC_ALGORITHMS", ["RS256", "HS256"], "people.E004"),
        ("OIDC_ALGORITHMS", [], "people.E004"),
        ("OIDC_SCOPES", ["email"], "people.E004"),
        ("OIDC_TIMEOUT_SECONDS", 0, "people.E004"),
        ("OIDC_ALLOWED_CLAIM", "groups", "people.E005"),
        ("OIDC_ALLOWED_VALUES", ["console"], "people.E005"),
        ("OIDC_CLIENT_SECRET_FILE", "/no/such/file", "people.E005"),
        ("OIDC_CA_FILE", "/no/such/file", "people.E005"),
    ],
)
def test_values_are_checked(settings: Any, name: str, value: Any, expected: str) -> None:
    configure(settings, "https://id.example.org", **{name: value})

    assert set(ids()) == {expected}


def test_secret_comes_from_a_file(settings: Any, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("of the file\n")
    configure(settings, "https://id.example.org", OIDC_CLIENT_SECRET="", OIDC_CLIENT_SECRET_FILE=str(file))

    assert (ids(), client_secret()) == ([], "of the file")


def test_pipe_is_no_file_of_the_secret(settings: Any, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    pipe = str(tmp_path / "pipe")
    configure(settings, "https://id.example.org", OIDC_CLIENT_SECRET="", OIDC_CLIENT_SECRET_FILE=pipe)

    assert ids() == ["people.E005"]
    with pytest.raises(ProviderUnavailable):
        client_secret()


def test_everyone_of_the_provider_is_warned_of(settings: Any) -> None:
    configure(settings, "https://id.example.org", OIDC_CREATE_PEOPLE=True)
    open_to_all = check_who_enters()
    settings.OIDC_ALLOWED_CLAIM = "groups"

    assert [message.id for message in open_to_all] == ["people.W003"]
    assert check_who_enters() == []
