"""Revocation reasons: known ones get their code, nothing is guessed."""

from typing import Any

import pytest
from cryptography.x509 import ReasonFlags

from agents.tests.factories import make_agent
from certificates.models import Certificate
from certificates.pki.reasons import REASON_NUMBERS, reason_code
from certificates.tests.factories import make_certificate
from compliance.core.errors import Invalid
from compliance.tests.client import ApiClient
from tenancy.tests.factories import make_key, make_tenant

BY_THE_SERVICE_ALONE = {ReasonFlags.certificate_hold, ReasonFlags.remove_from_crl, ReasonFlags.aa_compromise}


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("Key Compromise", ReasonFlags.key_compromise),
        ("key_compromise", ReasonFlags.key_compromise),
        ("Key compromise (laptop stolen)", ReasonFlags.key_compromise),
        ("Retired, project ended", ReasonFlags.cessation_of_operation),
        ("policy violation - traded out of hours", ReasonFlags.privilege_withdrawn),
        ("unspecified", ReasonFlags.unspecified),
        ("no sign of key compromise, just tidying up", ReasonFlags.unspecified),
        ("the team asked for it", ReasonFlags.unspecified),
        ("::::", ReasonFlags.unspecified),
        ("名前", ReasonFlags.unspecified),
    ],
)
def test_reason_has_its_code(reason: str, code: ReasonFlags) -> None:
    assert reason_code(reason) is code


@pytest.mark.parametrize("flag", REASON_NUMBERS)
@pytest.mark.parametrize("spell", [str, str.lower, str.upper, "{}: a remark".format])
def test_each_name_of_the_standard_sets_its_code_or_is_refused(flag: ReasonFlags, spell: Any) -> None:
    reason = spell(flag.value)

    if flag in BY_THE_SERVICE_ALONE:
        with pytest.raises(Invalid):
            reason_code(reason)
    else:
        assert reason_code(reason) is flag


def test_reason_of_the_service_alone_revokes_nothing() -> None:
    certificate = make_certificate(make_agent(tenant := make_tenant()))
    client = ApiClient(make_key(tenant))

    answer = client.post(f"/v1/certificates/{certificate.id}/revoke", {"reason": "certificateHold: for now"})

    assert (answer.status_code, "suspend" in answer.json()["error"]) == (400, True)
    assert Certificate.objects.get(id=certificate.id).revoked_at is None
