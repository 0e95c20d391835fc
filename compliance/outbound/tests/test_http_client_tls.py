"""Sending over TLS: whose certificate counts, and that the deadline covers it."""

import datetime as dt
import socket
import ssl
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from compliance.outbound import http_client
from compliance.outbound.addresses import UrlPolicy
from compliance.outbound.http_client import Outcome, RequestOptions
from compliance.outbound.tests import receivers
from compliance.outbound.tests.receivers import answer, receiving

OPTIONS = RequestOptions(UrlPolicy(allow_private=True), timeout_seconds=30.0)


def send(url: str, options: RequestOptions) -> Outcome:
    return http_client.send(url, body=b"{}", headers={"Content-Type": "application/json"}, options=options)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `ca.pem`, a self-signed certificate of hooks.example.com, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "hooks.example.com")])
    start = dt.datetime.now(dt.UTC) - dt.timedelta(hours=1)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + dt.timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("hooks.example.com")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "ca.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "key.pem").write_bytes(private)
    return folder


@pytest.fixture
def server_tls(authority: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority / "ca.pem", authority / "key.pem")
    return context


def trusting(authority: Path) -> RequestOptions:
    return replace(OPTIONS, ca_file=str(authority / "ca.pem"), resolver=lambda host, port: ["127.0.0.1"])


def test_tls_is_verified_for_the_name_though_an_address_is_dialled(
    authority: Path, server_tls: ssl.SSLContext
) -> None:
    names: list[str | None] = []
    server_tls.sni_callback = lambda sock, name, context: names.append(name)
    with receiving(answer(200), tls=server_tls) as receiver:
        outcome = send(f"https://hooks.example.com:{receiver.port}/", trusting(authority))

    assert outcome.succeeded
    assert names == ["hooks.example.com"]
    assert receiver.received[0].headers["host"] == f"hooks.example.com:{receiver.port}"


def test_certificate_of_another_name_is_refused(authority: Path, server_tls: ssl.SSLContext) -> None:
    with receiving(answer(200), tls=server_tls) as receiver:
        outcome = send(f"https://other.example.com:{receiver.port}/", trusting(authority))

    assert outcome.error is not None
    assert outcome.error.startswith("TLS certificate not valid: Hostname mismatch")
    assert receiver.received == []


def test_unknown_authority_is_refused(authority: Path, server_tls: ssl.SSLContext) -> None:
    with receiving(answer(200), tls=server_tls) as receiver:
        options = replace(trusting(authority), ca_file=None)
        outcome = send(f"https://hooks.example.com:{receiver.port}/", options)

    assert outcome.error is not None
    assert outcome.error.startswith("TLS certificate not valid: self-signed certificate")


def test_receiver_without_tls_is_a_failure(authority: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_greet, args=(listener,))
        thread.start()
        outcome = send(f"https://hooks.example.com:{listener.getsockname()[1]}/", trusting(authority))
        thread.join()

    assert outcome.error is not None
    assert outcome.error.startswith("TLS handshake failed")


def _greet(listener: socket.socket) -> None:
    connection, _ = listener.accept()
    with connection:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def test_deadline_covers_the_tls_handshake(authority: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        options = replace(trusting(authority), timeout_seconds=0.4)
        outcome = send(f"https://hooks.example.com:{listener.getsockname()[1]}/", options)

    # Without a deadline it would never end.
    assert outcome.error == "Timed out: no complete answer within 0.4 s"


@pytest.mark.parametrize("script", [receivers.silence, receivers.drip_headers, receivers.drip_body])
def test_deadline_covers_answers_over_tls(
    authority: Path, server_tls: ssl.SSLContext, script: receivers.Script
) -> None:
    with receiving(script, tls=server_tls) as receiver:
        options = replace(trusting(authority), timeout_seconds=0.4)
        outcome = send(f"https://hooks.example.com:{receiver.port}/", options)

    # Without a deadline it would never end.
    assert outcome.error == "Timed out: no complete answer within 0.4 s"


def test_endless_body_over_tls_is_cut_at_4_kb(authority: Path, server_tls: ssl.SSLContext) -> None:
    with receiving(receivers.huge, tls=server_tls) as receiver:
        outcome = send(f"https://hooks.example.com:{receiver.port}/", trusting(authority))

    assert outcome.response_body is not None
    assert len(outcome.response_body) == 4096
