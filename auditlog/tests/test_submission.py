"""A log that submits to a real witness, and to servers that only pretend to be one."""

import datetime as dt
import ssl
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from pytest_django.fixtures import Settings

from auditlog.submitting.gathering import WitnessAnswer, submit
from auditlog.tests.log_keys import make_witness_key
from auditlog.tests.witness_process import LOG, WitnessProcess, make_request, start_witness
from auditlog.tlog.checkpoints import AddCheckpoint
from auditlog.tlog.lines import Malformed
from auditlog.tlog.notes import Note, VerifierKey
from auditlog.tlog.policy import TrustedWitness
from compliance.outbound.tests.receivers import Script, answer, receiving, silence

SECONDS = 20.0
WITNESS = make_witness_key()
REQUEST = make_request(3, 7)
COSIGNATURE = WITNESS.sign(REQUEST.note.text)
SIZE = "Content-Type: text/x.tlog.size"


@pytest.fixture
def running(tmp_path: Path) -> Iterator[WitnessProcess]:
    found = start_witness(tmp_path / "state", [LOG.public])
    yield found
    found.kill()


def send(
    url: str,
    request: AddCheckpoint = REQUEST,
    *,
    key: VerifierKey = WITNESS.public,
    deadline: float = SECONDS,
) -> WitnessAnswer:
    note, proof, old_size = request.note.encode(), request.proof, request.old_size
    witness = TrustedWitness("w1", key, url)
    return submit(witness, old_size=old_size, proof=proof, note=note, deadline=deadline)


def refused_by(script: Script) -> str:
    with receiving(script) as server:
        answer = send(server.url)
    assert server.connections == 1
    assert (answer.cosignature, answer.size) == (None, None)
    return answer.problem


def test_witness_cosigns(running: WitnessProcess) -> None:
    first, second = make_request(0, 5), make_request(5, 9)

    for request, url in ((first, running.url), (second, f"{running.url}/")):
        signature = send(url, request, key=running.key).cosignature

        assert signature is not None
        running.key.verify(request.note.text, signature)


def test_witness_tells_the_size_to_prove_from(running: WitnessProcess) -> None:
    send(running.url, make_request(0, 5), key=running.key)

    told = send(running.url, make_request(3, 9), key=running.key)

    assert told.size == 5
    assert send(running.url, make_request(told.size, 9), key=running.key).cosignature


def test_request_is_that_of_the_protocol() -> None:
    with receiving(answer(200, COSIGNATURE.line().encode())) as server:
        assert send(f"{server.url}/w1").cosignature == COSIGNATURE

    (received,) = server.received
    assert received.request_line == "POST /hook/w1/add-checkpoint HTTP/1.1"
    assert AddCheckpoint.parse(received.body) == REQUEST


def test_cosignature_of_the_expected_key_is_found_among_others() -> None:
    other = make_witness_key("witness.example/w2").sign(REQUEST.note.text)
    with receiving(answer(200, f"{other.line()}{COSIGNATURE.line()}".encode())) as server:
        assert send(server.url).cosignature == COSIGNATURE


@pytest.mark.parametrize(
    "body",
    [
        "",
        "cosigned\n",
        COSIGNATURE.line().removesuffix("\n"),
        make_witness_key().sign(REQUEST.note.text).line(),
        WITNESS.sign("something else\n").line(),
        WITNESS.public.signature(WITNESS.private.sign(REQUEST.note.text.encode())).line(),
    ],
)
def test_answer_without_a_cosignature_that_verifies_is_refused(body: str) -> None:
    assert refused_by(answer(200, body.encode())).startswith("The witness answered 200: ")


@pytest.mark.parametrize(
    ("script", "status"),
    [
        (answer(409, b"7\n"), 409),
        (answer(409, b"7\n", "Content-Type: text/plain"), 409),
        (answer(409, b"seven\n", SIZE), 409),
        (answer(409, b"07\n", SIZE), 409),
        (answer(409, b"3\n", SIZE), 409),
        (answer(302, b"", "Location: http://127.0.0.1:1/"), 302),
        (answer(500, b"x" * 1000), 500),
        (answer(204, b""), 204),
    ],
)
def test_other_answers_are_refusals_and_no_redirect_is_followed(script: Script, status: int) -> None:
    problem = refused_by(script)

    assert problem.startswith(f"The witness answered {status}: ")
    assert len(problem) <= 230


def test_silence_ends_at_the_deadline() -> None:
    with receiving(silence) as server:
        assert "within" in send(server.url, deadline=0.5).problem


@pytest.mark.parametrize(
    "url", ["", "ftp://127.0.0.1/", "http://", "http://127.0.0.1:x/", "http://127.0.0.1:1/"]
)
def test_url_of_no_witness_is_unreachable(url: str) -> None:
    answer = send(url)

    assert answer.problem
    assert "answered" not in answer.problem


def test_what_is_no_note_is_not_sent() -> None:
    with pytest.raises(Malformed):
        send("http://127.0.0.1:1/", AddCheckpoint(0, [], Note("no signatures\n", ())))


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A file with a self-signed certificate of 127.0.0.1 and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name, start = x509.Name([]), dt.datetime.now(dt.UTC) - dt.timedelta(hours=1)
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + dt.timedelta(days=2))
        .add_extension(names, critical=True)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (tmp_path / "tls.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM) + private)
    return tmp_path / "tls.pem"


def test_tls_certificate_is_verified(certificate: Path, settings: Settings) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    with receiving(answer(200, COSIGNATURE.line().encode()), tls=context) as server:
        assert "certificate not valid" in send(server.url).problem
        settings.AUDIT_WITNESS_CA_FILE = str(certificate)
        assert send(server.url).cosignature == COSIGNATURE
