"""System checks refuse half a single sign-on, and one over the open network."""

import ipaddress
import os
import ssl
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from django.test import Client
from django.urls import reverse

from compliance.core.clock import now
from compliance.tests.console import make_staff
from people.sso import identities
from people.sso.checks import check_sign_on, check_who_enters
from people.sso.configuration import ProviderUnavailable, client_secret, is_on
from people.sso.pages import context_of
from people.sso.tests.forging import SUBJECT, Forger
from people.sso.tests.providers import configure
from people.sso.tests.test_signing_on import who
from people.tests.authenticators import ACTOR


def ids() -> list[str | None]:
    return [message.id for message in check_sign_on()]


def test_off_and_whole_are_both_right(settings: Any) -> None:
    off, was_on = ids(), is_on()
    configure(settings, "https://id.example.org/realms/acme")

    assert (off, was_on) == ([], False)
    assert (ids(), is_on()) == ([], True)


@pytest.mark.parametrize("missing", ["OIDC_ISSUER", "OIDC_CLIENT_ID", "OIDC_CLIENT_SECRET"])
def test_half_a_configuration_is_refused_and_stays_off(settings: Any, missing: str) -> None:
    configure(settings, "https://id.example.org", **{missing: ""})

    assert ids() == ["people.E005"]
    assert not is_on()


@pytest.mark.parametrize("name", ["OIDC_ONLY", "OIDC_CREATE_PEOPLE"])
def test_rules_without_a_provider_are_refused(settings: Any, name: str) -> None:
    setattr(settings, name, True)

    assert ids() == ["people.E005"]


def test_only_way_stays_the_only_way_without_a_provider(settings: Any) -> None:
    settings.OIDC_ONLY = True

    assert context_of()["password_is_off"]


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


# --- A provider whose certificate is of an authority of one's own (`OIDC_CA_FILE`) -----------------


def name_of(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def certificate(
    name: str, key: ec.EllipticCurvePrivateKey, issuer: str, signer: ec.EllipticCurvePrivateKey
) -> bytes:
    """Return a certificate in PEM; of an authority, if it signs itself."""
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    made = (
        x509.CertificateBuilder()
        .subject_name(name_of(name))
        .issuer_name(name_of(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now() - timedelta(days=1))
        .not_valid_after(now() + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=key is signer, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .sign(signer, hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.PEM)


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    """A folder with the certificates of two authorities, and the server's, which the first has signed."""
    first, second, server = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
    (tmp_path / "own.pem").write_bytes(certificate("Own", first, "Own", first))
    (tmp_path / "other.pem").write_bytes(certificate("Own", second, "Own", second))
    private = server.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (tmp_path / "server.pem").write_bytes(certificate("Server", server, "Own", first) + private)
    return tmp_path


@pytest.fixture
def provider(authority: Path, settings: Any) -> Iterator[Forger]:
    """A provider over TLS, to whose account somebody here is linked."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority / "server.pem")
    with Forger.serving(context) as found:
        configure(settings, found.issuer)
        given = {"issuer": found.issuer, "subject": SUBJECT, "via": "tests"}
        identities.link(user=make_staff("kim"), actor=ACTOR, now=now(), **given)
        yield found


def test_named_authority_is_trusted(provider: Forger, authority: Path, client: Client, settings: Any) -> None:
    settings.OIDC_CA_FILE = str(authority / "own.pem")

    answer = provider.sign_in(client)

    assert provider.issuer.startswith("https://")
    assert (answer.status_code, who(client)) == (302, "kim")


@pytest.mark.parametrize("named", ["", "other.pem"])
def test_other_authorities_are_not(
    provider: Forger,
    authority: Path,
    client: Client,
    settings: Any,
    caplog: pytest.LogCaptureFixture,
    named: str,
) -> None:
    settings.OIDC_CA_FILE = str(authority / named) if named else ""

    answer = client.post(reverse("admin:sso_begin"))

    assert answer.status_code == 503
    assert "TLS certificate not valid" in caplog.text
