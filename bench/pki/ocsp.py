"""OCSP at saturation: each answer is signed in the HSM for the request."""

import base64
from collections.abc import Callable
from http.client import HTTPConnection
from itertools import cycle
from urllib.parse import quote

import psycopg
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import ocsp

from bench.harness import answers, web
from bench.harness.load import Load
from bench.harness.report import number
from bench.harness.stats import percentile
from bench.harness.traffic import reads
from bench.pki.run import PkiRun
from compliance.localdev.console import StepFailed, say
from compliance.localdev.ports import HOST

CONNECTIONS = 32
_FOUND = """
SELECT certificate.certificate_pem, authority.certificate_der, certificate.serial_number
FROM certificates_certificate AS certificate
JOIN certificates_certificateauthority AS authority ON authority.id = certificate.authority_id
WHERE kms_key_arn LIKE 'pkcs11:%%' LIMIT 1000
"""


def asking(run: PkiRun) -> None:
    """GET and POST, beside a plain Django view that reads a row."""
    with psycopg.connect(run.place.live_url) as connection:
        found = connection.execute(_FOUND).fetchall()
    requests = [_request(pem, bytes(der)) for pem, der, _ in found]
    paths = ["/v1/ocsp/" + quote(base64.b64encode(der).decode(), safe="") for der in requests]
    rows = [["OCSP at saturation", "1/s", "p50 ms", "p99 ms", "errors", "to plain Django"]]
    with web.service(run.place) as service, web.plain_drf(run.place) as plain:
        _check(service.port, requests[0])
        first = 0.0
        for name, port, source in (
            ("plain Django view, one row", plain.port, reads([f"/row/{row[2]}" for row in found], key="")),
            ("GET /v1/ocsp/{request}", service.port, reads(paths, key="")),
            ("POST /v1/ocsp", service.port, _posts(requests)),
        ):
            for seconds in (1.0, run.options.seconds):
                load = Load(port, source, connections=CONNECTIONS, ids=answers.no_ids)
                outcome = load.closed(seconds)
            first = first or outcome.rate
            latencies = sorted(outcome.latencies)
            quantiles = [number(percentile(latencies, share) * 1e3) for share in (0.5, 0.99)]
            ratio = f"{outcome.rate / first:.2f}"
            rows.append([name, number(outcome.rate), *quantiles, str(outcome.errors), ratio])
            say(f"  … {name}")
    run.tell(f"OCSP over HTTP, {CONNECTIONS} connections, two workers each, every answer signed anew", rows)


def _request(pem: str, issuer: bytes) -> bytes:
    leaf, authority = x509.load_pem_x509_certificate(pem.encode()), x509.load_der_x509_certificate(issuer)
    builder = ocsp.OCSPRequestBuilder().add_certificate(leaf, authority, hashes.SHA256())
    return builder.build().public_bytes(Encoding.DER)


def _posts(requests: list[bytes]) -> Callable[[], bytes]:
    made = cycle([_post(der) for der in requests])
    return lambda: next(made)


def _post(der: bytes) -> bytes:
    head = (
        f"POST /v1/ocsp HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/ocsp-request\r\n"
        f"Content-Length: {len(der)}\r\n\r\n"
    )
    return head.encode() + der


def _check(port: int, der: bytes) -> None:
    """OCSP has its errors answered with 200 as well: one answer is read before they are counted."""
    connection = HTTPConnection(HOST, port, timeout=30)
    connection.request("POST", "/v1/ocsp", der, {"Content-Type": "application/ocsp-request"})
    answer = ocsp.load_der_ocsp_response(connection.getresponse().read())
    connection.close()
    if answer.response_status is not ocsp.OCSPResponseStatus.SUCCESSFUL:
        raise StepFailed(f"OCSP answers {answer.response_status.name}", hint="read the log")
