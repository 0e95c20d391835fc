"""Lint before signing: the sound certificate passes, each defect is found, and nothing unsound is signed."""

from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtensionOID

from certificates.pki.lint import DraftKey, LintError, leaf_findings, sign_linted
from certificates.pki.serials import new_serial
from certificates.pki.x509 import LeafExpectation, sign
from certificates.tests.software_ca import (
    NOW,
    make_ca,
    make_certified,
    make_expectation,
    make_leaf_builder,
    make_rsa_key,
)
from compliance.core.environments import Environment
from compliance.keys.adaptors import SignsOnly


def findings(builder: x509.CertificateBuilder, expected: LeafExpectation) -> str:
    """What the lint finds, as one text; empty for a sound certificate."""
    return "; ".join(leaf_findings(sign(builder, make_rsa_key("throwaway")), expected))


def sign_leaf(expected: LeafExpectation, key: rsa.RSAPrivateKey) -> x509.Certificate:
    judge = partial(leaf_findings, expected=expected)
    return sign_linted(make_leaf_builder(expected), key, expected.issuer, judge)


def without(builder: x509.CertificateBuilder, oid: x509.ObjectIdentifier) -> x509.CertificateBuilder:
    """The builder less one extension."""
    kept = [extension for extension in builder._extensions if extension.oid != oid]
    copy = x509.CertificateBuilder(
        builder._issuer_name, builder._subject_name, builder._public_key, builder._serial_number
    )
    assert builder._not_valid_before
    assert builder._not_valid_after
    copy = copy.not_valid_before(builder._not_valid_before).not_valid_after(builder._not_valid_after)
    for extension in kept:
        copy = copy.add_extension(extension.value, extension.critical)
    return copy


@pytest.fixture
def expected() -> LeafExpectation:
    return make_expectation()


def test_sound_certificate_is_signed_by_the_issuer(expected: LeafExpectation) -> None:
    certificate = sign_leaf(expected, make_ca().issuer_key)

    certificate.verify_directly_issued_by(make_ca().issuer.certificate)
    assert certificate.serial_number == expected.serial


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        ({"agent": make_certified(name="other-bot")}, "subject is not the agent's"),
        ({"agent": make_certified(permitted_actions=("all",))}, "identity extension says something else"),
        ({"agent": make_certified(model_hash="other")}, "identity extension says something else"),
        ({"agent": make_certified(resolver_url="http://127.0.0.1/x")}, "extension 2.5.29.17"),
        ({"agent": make_certified(environment="test")}, "of the other environment"),
        ({"serial": 7}, "differs from the one recorded"),
        ({"public_key": make_rsa_key("other").public_key()}, "public key is not the agent's"),
        ({"issuer": replace(make_ca().root)}, "issuer is not the CA's name"),
        ({"issuer": replace(make_ca().issuer, crl_url="http://127.0.0.1/y")}, "extension 2.5.29.31"),
    ],
)
def test_certificate_of_something_else_is_found(
    change: dict[str, Any], finding: str, expected: LeafExpectation
) -> None:
    assert finding in findings(make_leaf_builder(expected), replace(expected, **change))


def test_validity_over_365_days_is_found(expected: LeafExpectation) -> None:
    builder = make_leaf_builder(expected, duration=timedelta(days=365, seconds=1))

    assert findings(builder, expected) == "validity exceeds 365 days"


def test_validity_outside_the_issuers_is_found(expected: LeafExpectation) -> None:
    builder = make_leaf_builder(expected, now=NOW + timedelta(days=1700))

    assert findings(builder, expected) == "validity is not within the issuer's"


@pytest.mark.parametrize("serial", [1, 1 << 157, (1 << 159) - 1 - (1 << 158)])
def test_serial_of_another_form_is_found(serial: int) -> None:
    expected = replace(make_expectation(), serial=serial)

    assert "serial number" in findings(make_leaf_builder(expected), expected)


@pytest.mark.parametrize(
    "key",
    [
        rsa.generate_private_key(65537, 3072),
        rsa.generate_private_key(3, 2048),
        ec.generate_private_key(ec.SECP256R1()),
    ],
)
def test_key_of_another_kind_is_found(key: Any) -> None:
    expected = replace(make_expectation(), public_key=key.public_key())

    assert "public key is not RSA" in findings(make_leaf_builder(expected), expected)


def test_issuers_own_key_is_found() -> None:
    expected = replace(make_expectation(), public_key=make_ca().issuer.public_key)

    assert "public key is the issuer's" in findings(make_leaf_builder(expected), expected)


@pytest.mark.parametrize(
    "oid",
    [
        ExtensionOID.BASIC_CONSTRAINTS,
        ExtensionOID.KEY_USAGE,
        ExtensionOID.EXTENDED_KEY_USAGE,
        ExtensionOID.SUBJECT_KEY_IDENTIFIER,
        ExtensionOID.AUTHORITY_KEY_IDENTIFIER,
        ExtensionOID.SUBJECT_ALTERNATIVE_NAME,
        ExtensionOID.CERTIFICATE_POLICIES,
        ExtensionOID.CRL_DISTRIBUTION_POINTS,
        ExtensionOID.AUTHORITY_INFORMATION_ACCESS,
    ],
)
def test_missing_extension_is_found(oid: x509.ObjectIdentifier, expected: LeafExpectation) -> None:
    assert f"extension {oid.dotted_string} is missing" in findings(
        without(make_leaf_builder(expected), oid), expected
    )


def test_missing_identity_is_found(expected: LeafExpectation) -> None:
    builder = without(make_leaf_builder(expected), expected.profile.identity_oid)

    assert "identity extension can't be read" in findings(builder, expected)


def test_ca_certificate_is_no_agents(expected: LeafExpectation) -> None:
    builder = without(make_leaf_builder(expected), ExtensionOID.BASIC_CONSTRAINTS)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)

    assert "extension 2.5.29.19 has another value" in findings(builder, expected)


def test_foreign_extension_is_found(expected: LeafExpectation) -> None:
    builder = make_leaf_builder(expected).add_extension(x509.OCSPNoCheck(), critical=False)

    assert "is not in the profile" in findings(builder, expected)


def test_weak_signature_is_found(expected: LeafExpectation) -> None:
    certificate = make_leaf_builder(expected).sign(make_rsa_key("throwaway"), hashes.SHA384())

    assert "signature algorithm" in str(leaf_findings(certificate, expected))


def test_unsound_certificate_never_reaches_the_key() -> None:
    class Untouchable(rsa.RSAPrivateKey):
        key_size = 2048

        def __getattribute__(self, name: str) -> Any:
            assert name in {"key_size", "__class__"}, name
            return object.__getattribute__(self, name)

    Untouchable.__abstractmethods__ = frozenset()
    expected = replace(make_expectation(), serial=new_serial(Environment.TEST))

    with pytest.raises(LintError):
        sign_leaf(expected, Untouchable())  # type: ignore[abstract]


def test_signature_of_another_key_is_not_accepted(expected: LeafExpectation) -> None:
    with pytest.raises(LintError, match="not the issuer's"):
        sign_leaf(expected, make_rsa_key("impostor"))


def test_draft_has_the_octets_to_sign_and_no_signature() -> None:
    builder = make_leaf_builder(make_expectation())

    draft, signed = sign(builder, DraftKey()), sign(builder, make_rsa_key("a CA's"))

    assert draft.tbs_certificate_bytes == signed.tbs_certificate_bytes
    assert not any(draft.signature)
    with pytest.raises(SignsOnly):
        DraftKey().public_key()
