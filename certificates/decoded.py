"""A certificate as people read it: the fields of its own octets, not of the row that keeps it."""

from collections.abc import Iterator

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import NameOID

# RFC 4514 knows no short name for it.
NAMES = {NameOID.SERIAL_NUMBER: "serialNumber"}
UNREADABLE = [("Unreadable", "The stored octets are not a certificate.")]


def decoded_pem(pem: str) -> list[tuple[str, str]]:
    """Label and value of each field of a PEM certificate; says so where it can't be read."""
    try:
        return list(_fields(x509.load_pem_x509_certificate(pem.encode())))
    except ValueError:
        return UNREADABLE


def decoded_der(der: bytes) -> list[tuple[str, str]]:
    """As `decoded_pem`, of DER."""
    try:
        return list(_fields(x509.load_der_x509_certificate(der)))
    except ValueError:
        return UNREADABLE


def _fields(certificate: x509.Certificate) -> Iterator[tuple[str, str]]:
    yield "Subject", certificate.subject.rfc4514_string(NAMES)
    yield "Issuer", certificate.issuer.rfc4514_string(NAMES)
    yield "Serial number", f"{certificate.serial_number:040x}"
    yield "Not before", f"{certificate.not_valid_before_utc:%Y-%m-%d %H:%M:%S} UTC"
    yield "Not after", f"{certificate.not_valid_after_utc:%Y-%m-%d %H:%M:%S} UTC"
    key_size = getattr(certificate.public_key(), "key_size", "")
    yield "Public key", f"{certificate.public_key_algorithm_oid._name} {key_size}".strip()
    yield "Signature", certificate.signature_algorithm_oid._name
    for extension in certificate.extensions:
        name = extension.oid._name if extension.oid._name != "Unknown OID" else extension.oid.dotted_string
        yield ("Critical: " if extension.critical else "") + name, _value_of(extension.value)
    yield "SHA-256 fingerprint", certificate.fingerprint(hashes.SHA256()).hex(":")


def _value_of(value: x509.ExtensionType) -> str:
    if isinstance(value, x509.SubjectAlternativeName):
        return ", ".join(str(name.value) for name in value)
    if isinstance(value, x509.CRLDistributionPoints):
        return ", ".join(str(name.value) for point in value for name in point.full_name or ())
    if isinstance(value, x509.AuthorityInformationAccess):
        return ", ".join(str(entry.access_location.value) for entry in value)
    if isinstance(value, x509.ExtendedKeyUsage):
        return ", ".join(usage._name for usage in value)
    if isinstance(value, x509.KeyUsage):
        return ", ".join(name.lstrip("_").replace("_", " ") for name, on in vars(value).items() if on)
    if isinstance(value, x509.BasicConstraints):
        return f"CA, path length {value.path_length}" if value.ca else "not a CA"
    if isinstance(value, x509.SubjectKeyIdentifier):
        return value.digest.hex(":")
    if isinstance(value, x509.AuthorityKeyIdentifier):
        return (value.key_identifier or b"").hex(":")
    if isinstance(value, x509.CertificatePolicies):
        return ", ".join(policy.policy_identifier.dotted_string for policy in value)
    return value.value.hex() if isinstance(value, x509.UnrecognizedExtension) else ""
