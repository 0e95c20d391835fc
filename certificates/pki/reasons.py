"""Revocation reasons: free text, and the codes of RFC 5280 §5.3.1."""

import re
from datetime import datetime
from typing import Final

from asn1crypto.core import Integer
from cryptography.x509 import CRLReason, ReasonFlags

from certificates.pki.der import SEQUENCE, extension, pkix_time, tlv
from compliance.core.errors import Invalid

_PHRASES: Final = {
    "key compromise": ReasonFlags.key_compromise,
    "key compromised": ReasonFlags.key_compromise,
    "compromised key": ReasonFlags.key_compromise,
    "private key compromised": ReasonFlags.key_compromise,
    "ca compromise": ReasonFlags.ca_compromise,
    "affiliation changed": ReasonFlags.affiliation_changed,
    "superseded": ReasonFlags.superseded,
    "renewed": ReasonFlags.superseded,
    "rotated": ReasonFlags.superseded,
    "key rotation": ReasonFlags.superseded,
    "cessation of operation": ReasonFlags.cessation_of_operation,
    "retired": ReasonFlags.cessation_of_operation,
    "decommissioned": ReasonFlags.cessation_of_operation,
    "privilege withdrawn": ReasonFlags.privilege_withdrawn,
    "policy violation": ReasonFlags.privilege_withdrawn,
    "suspended": ReasonFlags.privilege_withdrawn,
    "high risk": ReasonFlags.privilege_withdrawn,
}
_CODES: Final = {phrase.replace(" ", ""): code for phrase, code in _PHRASES.items()}
"""Reasons by their letters alone; RFC 5280's own names among them, in any spelling (`keyCompromise`)."""

NOT_BY_HAND_CODES: Final = frozenset({ReasonFlags.remove_from_crl, ReasonFlags.aa_compromise})
_NOT_BY_HAND: Final = frozenset({"certificatehold", "removefromcrl", "aacompromise"})

REASON_NUMBERS: Final = {
    ReasonFlags.key_compromise: 1,
    ReasonFlags.ca_compromise: 2,
    ReasonFlags.affiliation_changed: 3,
    ReasonFlags.superseded: 4,
    ReasonFlags.cessation_of_operation: 5,
    ReasonFlags.certificate_hold: 6,
    ReasonFlags.remove_from_crl: 8,
    ReasonFlags.privilege_withdrawn: 9,
    ReasonFlags.aa_compromise: 10,
}
"""CRLReason numbers; texts give neither `certificateHold`, `removeFromCRL` nor `aACompromise`."""


ADMINISTRATIVE: Final = frozenset({
    ReasonFlags.affiliation_changed,
    ReasonFlags.superseded,
    ReasonFlags.cessation_of_operation,
})  # fmt: skip
"""Reasons that tell of no incident; `unspecified` is not among them: nobody knows what it tells of."""

_NOT_WORD = re.compile(r"[^0-9a-z]+")
_REMARK = re.compile(r"[:;,.(\n]| [-\u2013\u2014] ")


def reason_code(reason: str) -> ReasonFlags:
    """The code of a free-text reason: of the whole text, or of the part before its first punctuation.

    `unspecified` when neither is a known reason; single words in a sentence do not count.
    Raises: Invalid for a name of RFC 5280 that nobody revokes by hand with.
    """
    for candidate in (reason, _REMARK.split(reason, maxsplit=1)[0]):
        letters = _NOT_WORD.sub("", candidate.lower())
        if letters in _NOT_BY_HAND:
            raise Invalid(
                "reason: certificateHold, removeFromCRL and aACompromise can't be given; "
                "suspend the agent to put its certificate on hold"
            )
        if code := _CODES.get(letters):
            return code
    return ReasonFlags.unspecified


def encode_entry(serial: int, revoked_at: datetime, reason: ReasonFlags = ReasonFlags.unspecified) -> bytes:
    """Encode one entry of a list, without the reason `unspecified` (RFC 5280 §5.3.1)."""
    return tlv(SEQUENCE, Integer(serial).dump(), pkix_time(revoked_at), _REASONS[reason])


_REASONS: Final = {
    **{reason: tlv(SEQUENCE, extension(CRLReason(reason))) for reason in REASON_NUMBERS},
    ReasonFlags.unspecified: b"",
}
