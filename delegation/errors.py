"""What delegation refuses."""

from compliance.errors import Conflict, Invalid, InvalidState, Unavailable


class AgentMayNotDelegate(InvalidState):
    message = "A suspended or retired agent can't delegate"


class CertificateDoesNotCount(InvalidState):
    message = "The agent's certificate is revoked or has expired"


class ScopeNotPermitted(InvalidState):
    message = "The scope exceeds the agent's permitted actions"


class ScopeEmpty(InvalidState):
    message = "The agent has an empty scope and can't delegate"


class ParentTokenMalformed(Invalid):
    message = "parent_token is not a delegation token"


class ParentTokenRejected(InvalidState):
    message = "The parent token doesn't count (any more)"


class ParentExceeded(InvalidState):
    message = "The delegation goes beyond its parent token"


class TokenKeysMissing(Unavailable):
    message = "KMS not configured: no token signing key"


class KeyRingUnavailable(Unavailable):
    message = "The token keys can't be read now; retry with exponential backoff"


class RotationUnderWay(Conflict):
    message = "The next token key is already published"
