"""Errors of issuing, revoking and publishing."""

from compliance.core.errors import Conflict, Invalid, InvalidState, LimitReached, NotFound, Unavailable


class CertificateNotFound(NotFound):
    message = "Certificate not found"


class AlreadyCertified(Conflict):
    message = "Agent already has an active certificate"


class AlreadyRevoked(Conflict):
    message = "Certificate is already revoked"


class AlreadySuperseded(Conflict):
    message = "Certificate is already superseded by its successor"


class RenewedRecently(LimitReached):
    message = "The agent's certificate was renewed less than a minute ago"


class KeysTaken(LimitReached):
    message = "No key is ready, and the tenant's share of those being made is taken; retry in a moment"


class CertificateExpired(InvalidState):
    message = "Certificate has expired"


class CannotCertify(InvalidState):
    message = "Cannot certify a retired agent"


class MomentNotPast(Invalid):
    message = "at must not lie in the future"


class CardNotFound(NotFound):
    message = "The agent publishes no card"


class AuthorityNotFound(NotFound):
    message = "Certificate authority not found"


class AuthorityMissing(Unavailable):
    message = "KMS not configured"


class ListBeingMade(Conflict):
    message = "The revocation lists are being made by another process"


class ListNotGenerated(Unavailable):
    message = "The certificate revocation list has not been generated yet"
