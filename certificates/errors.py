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


class NothingToRenew(InvalidState):
    message = "Agent has no active certificate"


class RenewedRecently(LimitReached):
    message = "The agent's certificate was renewed less than a minute ago"


class KeysTaken(LimitReached):
    message = "No key is ready, and the tenant's share of those being made is taken; retry in a moment"


class CertificateExpired(InvalidState):
    message = "Certificate has expired"


class CannotCertify(InvalidState):
    message = "Cannot certify a retired agent"


class OwnerRequired(CannotCertify):
    message = "The tenant certifies only agents with an owner: set `owner` with PATCH /v1/agents/{id}"


class MomentNotPast(Invalid):
    message = "at must not lie in the future"


class CardNotFound(NotFound):
    message = "The agent publishes no card"


class MalformedJws(Invalid):
    message = "jws: not a detached JWS with the kid of an agent's key"


class AuthorityNotFound(NotFound):
    message = "Certificate authority not found"


class AuthorityMissing(Unavailable):
    message = "KMS not configured"


class AuthorityExpired(Unavailable):
    message = "The issuing CA has expired and must be rotated"


class RotatedRecently(Conflict):
    message = "The issuing CA was made less than a day ago"


class RootTooShort(Conflict):
    message = "The root CA ends before an issuing CA would be of use"


class ListNotFound(NotFound):
    message = "Revocation list not found"


class ListBeingMade(Conflict):
    message = "The revocation lists are being made by another process"


class ListNotGenerated(Unavailable):
    message = "The certificate revocation list has not been generated yet"
