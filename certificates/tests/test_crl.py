"""Revocation lists, as others judge them."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest
from cryptography import x509
from cryptography.x509 import ReasonFlags

from certificates.lists.crl import CrlWindow, ListScope, build_crl, to_pem
from certificates.pki.reasons import encode_entry
from certificates.pki.serials import new_serial
from certificates.tests import outside
from certificates.tests.software_ca import NOW, make_ca
from compliance.core.environments import Environment

WINDOW = CrlWindow(number=41, this_update=NOW, next_update=NOW + timedelta(hours=24))


class RevokedEntry(NamedTuple):
    serial: int
    revoked_at: datetime
    reason: ReasonFlags = ReasonFlags.unspecified


SCOPE = ListScope(url=make_ca().issuer.crl_url, delta_url=f"{make_ca().issuer.crl_url}/delta")


def make_list(entries: list[RevokedEntry], window: CrlWindow = WINDOW) -> bytes:
    ca = make_ca()
    return build_crl(
        [encode_entry(*entry) for entry in entries],
        window=window,
        issuer=ca.issuer,
        key=ca.issuer_key,
        scope=SCOPE,
    )


def make_entries(count: int) -> list[RevokedEntry]:
    reasons = list(ReasonFlags)
    reasons.remove(ReasonFlags.remove_from_crl)
    return [
        RevokedEntry(new_serial(Environment.LIVE), NOW - timedelta(minutes=n), reasons[n % len(reasons)])
        for n in range(count)
    ]


@pytest.mark.parametrize("count", [0, 1, 50])
def test_pkilint_finds_nothing(count: int) -> None:
    assert outside.pkilint_crl(make_list(make_entries(count))) == []


def test_pkilint_finds_nothing_in_a_roots_list() -> None:
    ca = make_ca()

    der = build_crl([], window=WINDOW, issuer=ca.root, key=ca.root_key, scope=ListScope())

    assert outside.pkilint_crl(der) == []


def test_list_says_what_it_was_given() -> None:
    entries = make_entries(20)

    crl = x509.load_der_x509_crl(make_list(entries))

    assert crl.is_signature_valid(make_ca().issuer.public_key)
    assert len(crl) == 20
    assert crl.last_update_utc == NOW.replace(microsecond=0)
    assert crl.next_update_utc == (NOW + timedelta(hours=24)).replace(microsecond=0)
    for entry in entries:
        found = crl.get_revoked_certificate_by_serial_number(entry.serial)
        assert found is not None
        assert found.revocation_date_utc == entry.revoked_at.replace(microsecond=0)
        reasons = [extension.value.reason for extension in found.extensions]
        assert reasons == ([] if entry.reason is ReasonFlags.unspecified else [entry.reason])


def test_pem_is_the_same_list(tmp_path: Path) -> None:
    der = make_list(make_entries(3))
    (tmp_path / "list.pem").write_bytes(to_pem(der))

    text = outside.openssl("crl", "-in", tmp_path / "list.pem", "-noout", "-text")

    assert x509.load_pem_x509_crl(to_pem(der)) == x509.load_der_x509_crl(der)
    assert "CRL Number" in text
    assert text.count("Serial Number:") == 3


def test_dates_of_another_zone_are_the_same_instant() -> None:
    when = datetime.fromisoformat("2026-11-20T12:00:00+05:30")
    entry = RevokedEntry(new_serial(Environment.LIVE), when)

    crl = x509.load_der_x509_crl(make_list([entry]))

    found = crl.get_revoked_certificate_by_serial_number(entry.serial)
    assert found is not None
    assert found.revocation_date_utc == when
