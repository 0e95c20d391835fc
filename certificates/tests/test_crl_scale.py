"""The time and memory that a list of very many entries takes."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from django.conf import settings
from django.db import connection

from certificates.models import Certificate, RevocationList
from certificates.tests.factories import make_revoked_certificate
from compliance.core.clock import now
from compliance.stores import sql
from compliance.tests.owner import execute_as_owner
from tenancy.tests.factories import make_tenant

MANY = 200_000
MAX_MEGABYTES = 150

_MAKE = """
INSERT INTO certificates_certificate (
    id, tenant_id, agent_id, authority_id, serial_number, kms_key_arn, certificate_pem, claims, status,
    not_before, issued_at, expires_at, revoked_at, revocation_reason, revocation_code, crl_shard, crl_entry,
    first_crl_number
)
SELECT gen_random_uuid(), tenant_id, agent_id, authority_id, serial, 'drill:' || serial, '', '{}', 'revoked',
    not_before, issued_at, expires_at, revoked_at, 'drill', 'keyCompromise', n %% %s,
    overlay(crl_entry PLACING decode(serial, 'hex') FROM 5 FOR 20), 1
FROM certificates_certificate,
    (SELECT n, '41' || md5(n::text) || lpad(to_hex(n), 6, '0') AS serial FROM generate_series(1, %s) AS n)
WHERE serial_number = %s
"""


@pytest.fixture
def many_forgotten(committed: None) -> Iterator[None]:
    """Later drills publish lists of this CA some hundred times."""
    yield
    execute_as_owner("DELETE FROM certificates_certificate WHERE revocation_reason = 'drill'")


@pytest.mark.drill
@pytest.mark.usefixtures("many_forgotten")
def test_very_many_entries() -> None:
    certificate = make_revoked_certificate(make_tenant())
    # Its CA also lists what other drills revoked and committed.
    revoked = Certificate.objects.filter(authority=certificate.authority, status="revoked")
    listed = MANY + revoked.filter(expires_at__gt=now()).count()
    sql.execute("SET statement_timeout = 0")
    sql.execute(_MAKE, [settings.CRL_SHARDS, MANY, certificate.serial_number])
    execute_as_owner("VACUUM ANALYZE certificates_certificate")

    script = Path(__file__).with_name("publish_alone.py")
    database = connection.settings_dict["NAME"]
    done = subprocess.run(
        [sys.executable, script, database, str(certificate.authority_id)],
        capture_output=True, text=True, check=False, env=os.environ,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    seconds, megabytes = map(float, done.stdout.split())
    sys.stderr.write(f"\n{MANY} entries: {seconds:.2f} s, {megabytes:.0f} MB peak\n")

    published = RevocationList.objects.latest_of(certificate.authority)
    assert published.entry_count == listed
    assert len(x509.load_der_x509_crl(published.der)) == listed
    assert megabytes <= MAX_MEGABYTES
