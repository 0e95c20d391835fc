"""The fields of a certificate as people read them, taken from its own octets."""

from collections.abc import Iterator, Mapping
from typing import Any

from asn1crypto.x509 import Certificate
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

# RFC 4514 has no short name for it.
NAMES = {NameOID.SERIAL_NUMBER: "serialNumber"}


def decoded(octets: bytes) -> list[tuple[str, str]]:
    """Label and value of each field of a certificate in DER or PEM; says so where it can't be read."""
    try:
        if octets.startswith(b"-----BEGIN"):
            return list(_fields(x509.load_pem_x509_certificate(octets)))
        return list(_fields(x509.load_der_x509_certificate(octets)))
    except ValueError:
        return [("Unreadable", "The stored octets are not a certificate.")]


def _fields(certificate: x509.Certificate) -> Iterator[tuple[str, str]]:
    parsed = Certificate.load(certificate.public_bytes(Encoding.DER))
    yield "Subject", certificate.subject.rfc4514_string(NAMES)
    yield "Issuer", certificate.issuer.rfc4514_string(NAMES)
    yield "Serial number", f"{certificate.serial_number:040x}"
    yield "Not before", f"{certificate.not_valid_before_utc:%Y-%m-%d %H:%M:%S} UTC"
    yield "Not after", f"{certificate.not_valid_after_utc:%Y-%m-%d %H:%M:%S} UTC"
    yield "Public key", f"{parsed.public_key.algorithm} {parsed.public_key.bit_size}"
    yield "Signature", parsed["signature_algorithm"]["algorithm"].native
    for extension in parsed["tbs_certificate"]["extensions"]:
        name = extension["extn_id"].native
        is_known = not name[0].isdigit()
        value = extension["extn_value"].parsed if is_known else extension["extn_value"]
        yield ("Critical: " if extension["critical"].native else "") + name, _text(value.native)
    yield "SHA-256 fingerprint", certificate.fingerprint(hashes.SHA256()).hex(":")


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.hex(":")
    if isinstance(value, Mapping):
        return " ".join(f"{name} {_text(item)}" for name, item in value.items() if item is not None)
    return ", ".join(sorted(map(_text, value))) if isinstance(value, list | set) else str(value)
