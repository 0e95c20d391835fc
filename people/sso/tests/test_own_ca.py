"""A provider whose certificate is of an authority of one's own (`OIDC_CA_FILE`)."""

import ipaddress
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
from people.sso.tests.forging import SUBJECT, Forger
from people.sso.tests.providers import configure
from people.sso.tests.test_signing_on import who
from people.tests.authenticators import ACTOR


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
