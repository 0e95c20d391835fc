"""Why a token does not count."""

from enum import StrEnum


class Reason(StrEnum):
    """The `reason` of an invalid token, in the order of the checks: the first that fails is told.

    `EXPIRED` therefore is said only of tokens that this service signed.
    """

    MALFORMED = "malformed"
    UNSUPPORTED_ALGORITHM = "unsupported_algorithm"
    UNKNOWN_KEY = "unknown_key"
    INVALID_SIGNATURE = "invalid_signature"
    INVALID_ISSUER = "invalid_issuer"
    NOT_YET_VALID = "not_yet_valid"
    EXPIRED = "expired"


class TokenRejected(Exception):
    """A token that does not count, and why."""

    def __init__(self, reason: Reason) -> None:
        self.reason = reason
        super().__init__(reason.value)
