"""Which list of a CA is the one in force."""

from datetime import timedelta

import pytest

from certificates.models import AuthorityRole, CertificateAuthority, RevocationList
from compliance.core.clock import now

pytestmark = pytest.mark.django_db


def make_authority(name: str, *lists: tuple[str, int]) -> CertificateAuthority:
    """A CA with lists of these scopes and numbers."""
    at = now()
    made = CertificateAuthority.objects.create(
        role=AuthorityRole.ROOT,
        common_name=name,
        serial_number=name,
        key_uri=f"test:{name}",
        certificate_der=b"",
        certificate_url="http://ca.example.org/ca",
        crl_url="http://ca.example.org/crl",
        not_before=at,
        not_after=at + timedelta(days=1),
        created_at=at,
        retired_at=at,
    )
    for scope, number in lists:
        RevocationList.objects.create(
            authority=made, scope=scope, number=number, this_update=at, next_update=at, entry_count=0
        )
    return made


def test_each_ca_has_its_newest_full_list() -> None:
    first = make_authority("first", ("full", 8), ("full", 9), ("full", 10), ("delta", 11))
    second = make_authority("second", ("full", 3))
    none = make_authority("none", ("delta", 20))
    beside = make_authority("beside", ("full", 30))

    found = RevocationList.objects.newest_of_each([first, second, none])

    assert {one: newest.number for one, newest in found.items()} == {first.pk: 10, second.pk: 3}
    assert beside.pk not in found
