"""Revocation reasons: free text, and the codes of RFC 5280 §5.3.1."""

import re
from typing import Final

from cryptography.x509 import ReasonFlags

REASON_CODES: Final[dict[str, ReasonFlags]] = {
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
"""Reasons by their normal form; RFC 5280's own names among them, in any spelling (`keyCompromise`)."""

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
"""The CRLReason numbers on lists and in OCSP responses; a reason without a number is left out.

No text gives `certificateHold`, which suspending an agent sets, or `removeFromCRL`, which a delta CRL uses.
"""

ADMINISTRATIVE: Final = frozenset({
    ReasonFlags.affiliation_changed,
    ReasonFlags.superseded,
    ReasonFlags.cessation_of_operation,
})  # fmt: skip
"""Reasons that tell of no incident; `unspecified` is not among them: nobody knows what it tells of."""

_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=CA)(?=C[a-z])")
_NOT_WORD = re.compile(r"[^0-9a-z]+")
_REMARK = re.compile(r"[:;,.(\n]| [-\u2013\u2014] ")


def reason_code(reason: str) -> ReasonFlags:
    """The code of a free-text reason: of the whole text, or of the part before its first punctuation.

    `unspecified` when neither is a known reason; single words in a sentence do not count.
    """
    for candidate in (reason, _REMARK.split(reason, maxsplit=1)[0]):
        if code := REASON_CODES.get(_normal(candidate)):
            return code
    return ReasonFlags.unspecified


def _normal(text: str) -> str:
    spaced = _CAMEL.sub(" ", text.replace("cACompromise", "CACompromise"))
    return _NOT_WORD.sub(" ", spaced.lower()).strip()
