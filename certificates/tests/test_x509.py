"""The certificates, as others judge them: pkilint, openssl and Java."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from certificates.lists.crl import CrlWindow, ListScope, build_crl
from certificates.pki.reasons import encode_entry
from certificates.pki.x509 import Validity, read_claims, sign
from certificates.tests import outside
from certificates.tests.software_ca import (
    NOW,
    PROFILE,
    make_ca,
    make_certified,
    make_expectation,
    make_leaf,
    make_leaf_builder,
)

ODD_FIELDS: list[dict[str, Any]] = [
    {},
    {"name": "x" * 255, "operator": "O" * 255},
    {"name": "名前 😀 Größe", "operator": 'Ärzte & Söhne <AG>, "Zürich"'},
    {"name": "\x00\u202e", "operator": "\x07"},
    {"model": None, "model_version": None, "model_hash": None, "permitted_actions": None},
    {"permitted_actions": ()},
    {"permitted_actions": tuple("é" * 199 + str(n) for n in range(10)), "model_hash": "h" * 512},
    {"resolver_url": "https://pki.example.com/1.0/identifiers/did:service:live:1"},
]


SCOPE = ListScope(url=make_ca().issuer.crl_url)


def write_chain(tmp_path: Path, leaf: x509.Certificate, *, revoked: list[bytes]) -> dict[str, Path]:
    """The files that a verifier gets: root, issuing CA, leaf and both revocation lists."""
    ca = make_ca()
    window = CrlWindow(7, NOW - timedelta(minutes=5), NOW + timedelta(days=1))
    crl = build_crl(revoked, window=window, issuer=ca.issuer, key=ca.issuer_key, scope=SCOPE)
    root_crl = build_crl([], window=window, issuer=ca.root, key=ca.root_key, scope=ListScope())
    paths = {
        "root": outside.write_pem(tmp_path / "root.pem", ca.root.certificate),
        "issuing": outside.write_pem(tmp_path / "issuing.pem", ca.issuer.certificate),
        "leaf": outside.write_pem(tmp_path / "leaf.pem", leaf),
        "crl": tmp_path / "issuing.crl",
        "root_crl": tmp_path / "root.crl",
    }
    paths["crl"].write_bytes(crl)
    paths["root_crl"].write_bytes(root_crl)
    return paths


def verify_with_openssl(paths: dict[str, Path], run: Any) -> str:
    """`openssl verify -x509_strict` of the leaf, with the lists of both CAs."""
    options = ["-x509_strict", "-crl_check_all", "-CRLfile", paths["crl"], "-CRLfile", paths["root_crl"]]
    output: str = run(
        "verify", *options, "-CAfile", paths["root"], "-untrusted", paths["issuing"], paths["leaf"]
    )
    return output


@pytest.mark.parametrize("fields", ODD_FIELDS)
def test_pkilint_finds_nothing_in_agents_certificates(fields: dict[str, Any]) -> None:
    assert outside.pkilint_certificate(make_leaf(**fields)) == []


@pytest.mark.parametrize("fields", ODD_FIELDS)
def test_openssl_accepts_the_chain(tmp_path: Path, fields: dict[str, Any]) -> None:
    paths = write_chain(tmp_path, make_leaf(**fields), revoked=[])

    assert verify_with_openssl(paths, outside.openssl).strip().endswith("OK")


def test_java_accepts_the_chain_and_refuses_it_revoked(tmp_path: Path) -> None:
    leaf = make_leaf()
    chain = write_chain(tmp_path, leaf, revoked=[])
    arguments = (chain["root"], [chain["leaf"], chain["issuing"]], [chain["crl"], chain["root_crl"]])

    assert outside.java_pkix(*arguments) == "valid"

    write_chain(tmp_path, leaf, revoked=[encode_entry(leaf.serial_number, NOW)])
    assert outside.java_pkix(*arguments) == "invalid: REVOKED"


@pytest.mark.parametrize("fields", ODD_FIELDS)
def test_claims_are_read_back(fields: dict[str, Any]) -> None:
    assert read_claims(make_leaf(**fields), PROFILE) == make_certified(**fields).claims


def test_validity_counts_its_last_second() -> None:
    leaf = make_leaf()

    lifetime = leaf.not_valid_after_utc - leaf.not_valid_before_utc + timedelta(seconds=1)

    assert lifetime == timedelta(days=365)
    assert leaf.not_valid_before_utc < NOW


def test_validity_lies_within_the_issuers() -> None:
    second = NOW.replace(microsecond=0)
    issuers = Validity(second - timedelta(minutes=1), second + timedelta(days=3))

    assert Validity.lasting(timedelta(days=365), now=NOW, within=issuers) == issuers
    assert Validity.lasting(timedelta(days=1), now=NOW, within=issuers).not_after < issuers.not_after


def test_root_certifies_cas_and_issuing_certifies_agents_only() -> None:
    ca = make_ca()
    lengths = [
        info.certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.path_length
        for info in (ca.root, ca.issuer)
    ]

    assert lengths == [1, 0]
    ca.issuer.certificate.verify_directly_issued_by(ca.root.certificate)
    leaf = sign(make_leaf_builder(make_expectation()), ca.issuer_key)
    leaf.verify_directly_issued_by(ca.issuer.certificate)
