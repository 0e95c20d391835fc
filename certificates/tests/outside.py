"""What others say of our certificates and lists: pkilint, the openssl command, Java's PKIX validator."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from pkilint import loader, pkix
from pkilint.pkix import certificate as pkix_certificate, crl as pkix_crl, extension, name
from pkilint.validation import ValidationFindingSeverity

JAVA_VALIDATOR = Path(__file__).with_name("PkixCheck.java")


def pkilint_certificate(certificate: x509.Certificate) -> list[str]:
    """Findings of pkilint above notice, as `severity code`."""
    validator = pkix_certificate.create_pkix_certificate_validator_container(
        pkix_certificate.create_decoding_validators(
            name.ATTRIBUTE_TYPE_MAPPINGS, extension.EXTENSION_MAPPINGS
        ),
        [
            pkix_certificate.create_issuer_validator_container([]),
            pkix_certificate.create_validity_validator_container(),
            pkix_certificate.create_subject_validator_container([]),
            pkix_certificate.create_extensions_validator_container([]),
            pkix_certificate.create_spki_validator_container([]),
        ],
    )
    der = certificate.public_bytes(Encoding.DER)
    document = loader.RFC5280CertificateDocumentLoader().load_der_document(der, "certificate")
    return _above_notice(validator.validate(document.root))


def pkilint_crl(der: bytes) -> list[str]:
    """Findings of pkilint above notice on a revocation list."""
    validator = pkix_crl.create_pkix_crl_validator_container(
        [
            pkix.create_attribute_decoder(name.ATTRIBUTE_TYPE_MAPPINGS),
            pkix.create_extension_decoder(extension.EXTENSION_MAPPINGS),
        ],
        [
            pkix_crl.create_issuer_validator_container([]),
            pkix_crl.create_validity_validator_container([]),
            pkix_crl.create_extensions_validator_container([]),
        ],
    )
    document = loader.RFC5280CertificateListDocumentLoader().load_der_document(der, "crl")
    return _above_notice(validator.validate(document.root))


def _above_notice(results: Any) -> list[str]:
    return [
        f"{found.finding.severity.name} {found.finding.code} {found.message or ''}".strip()
        for result in results
        for found in result.finding_descriptions
        if found.finding.severity < ValidationFindingSeverity.NOTICE
    ]


def openssl(*arguments: str | Path) -> str:
    """Run the openssl command; fails the test with its output when it does not succeed."""
    if shutil.which("openssl") is None:
        pytest.skip("the openssl command is not installed")
    done = subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def openssl_refusal(*arguments: str | Path) -> str:
    """Run the openssl command; fails the test when it succeeds."""
    if shutil.which("openssl") is None:
        pytest.skip("the openssl command is not installed")
    done = subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode != 0, done.stdout
    return done.stdout + done.stderr


def java_pkix(root: Path, chain: list[Path], crls: list[Path]) -> str:
    """`valid`, or `invalid: REASON`, as Java's PKIX validator with revocation checking judges the chain."""
    if shutil.which("java") is None:
        pytest.skip("Java is not installed")
    paths = [root, *chain, Path("--"), *crls]
    done = subprocess.run(
        ["java", JAVA_VALIDATOR, *map(str, paths)], capture_output=True, text=True, check=False, timeout=120
    )
    if "compiler module not found" in done.stderr.lower() or "jdk.compiler" in done.stderr:
        pytest.skip("Java without a compiler is installed")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def write_pem(path: Path, *certificates: x509.Certificate) -> Path:
    """The certificates, one after the other, in a file."""
    path.write_bytes(b"".join(certificate.public_bytes(Encoding.PEM) for certificate in certificates))
    return path
