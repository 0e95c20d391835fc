"""Revocation reasons: known ones get their code, nothing is guessed."""

import pytest
from cryptography.x509 import ReasonFlags

from certificates.pki.reasons import reason_code


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("keyCompromise", ReasonFlags.key_compromise),
        ("key_compromise", ReasonFlags.key_compromise),
        ("Key Compromise", ReasonFlags.key_compromise),
        ("keyCompromise: laptop stolen", ReasonFlags.key_compromise),
        ("Key compromise (laptop stolen)", ReasonFlags.key_compromise),
        ("cACompromise", ReasonFlags.ca_compromise),
        ("affiliationChanged", ReasonFlags.affiliation_changed),
        ("superseded", ReasonFlags.superseded),
        ("cessationOfOperation", ReasonFlags.cessation_of_operation),
        ("Retired, project ended", ReasonFlags.cessation_of_operation),
        ("privilegeWithdrawn", ReasonFlags.privilege_withdrawn),
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
