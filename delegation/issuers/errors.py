"""Errors of trusted issuers, and the reasons for which an ID token is refused."""

from enum import StrEnum

from compliance.core.errors import Conflict, Invalid, NotFound, Unavailable


class IdTokenFault(StrEnum):
    """Reasons to refuse an ID token; the first check, about in this order, that fails."""

    MALFORMED = "malformed"
    UNTRUSTED_ISSUER = "untrusted_issuer"
    UNSUPPORTED_HEADER = "unsupported_header"
    UNSUPPORTED_TYPE = "unsupported_type"
    UNSUPPORTED_ALGORITHM = "unsupported_algorithm"
    UNKNOWN_KEY = "unknown_key"
    AMBIGUOUS_KEY = "ambiguous_key"
    INVALID_SIGNATURE = "invalid_signature"
    NOT_AN_ID_TOKEN = "not_an_id_token"
    WRONG_AUDIENCE = "wrong_audience"
    WRONG_AUTHORIZED_PARTY = "wrong_authorized_party"
    WRONG_CLIENT = "wrong_client"
    EXPIRED = "expired"
    NOT_YET_VALID = "not_yet_valid"
    TOO_OLD = "too_old"
    INVALID_SUBJECT = "invalid_subject"
    CLAIM_NOT_PERMITTED = "claim_not_permitted"
    EMAIL_NOT_VERIFIED = "email_not_verified"
    USED_BEFORE = "used_before"


class IdTokenRefused(Exception):
    """An ID token that proves nobody's identity."""

    def __init__(self, fault: IdTokenFault) -> None:
        self.fault = fault
        super().__init__(fault.value)


class IssuerKeysUnavailable(Unavailable):
    message = "The keys of the trusted issuer can't be fetched now; retry with exponential backoff"


class TrustedIssuerNotFound(NotFound):
    message = "Trusted issuer not found"


class TrustedIssuerExists(Conflict):
    message = "The tenant trusts this issuer already"


class TooManyIssuers(Conflict):
    message = "The tenant has as many trusted issuers as it can have"


class InvalidIssuer(Invalid):
    message = "issuer: not an issuer whose tokens can be verified"
