"""Errors of agents' keys, and the reasons for which a signature is refused."""

from enum import StrEnum

from compliance.core.errors import Conflict, Invalid, InvalidState, NotFound


class AgentKeyNotFound(NotFound):
    message = "Agent key not found"


class AgentKeyExists(Conflict):
    message = "The key is registered already, or was"


class TooManyAgentKeys(Conflict):
    message = "The agent has as many keys as it can have: revoke one first"


class AgentKeyNotProven(InvalidState):
    message = "The request needs a DPoP proof by the key itself"


class InvalidAgentKey(Invalid):
    message = "jwk: not a public Ed25519 key"


class SignatureFault(StrEnum):
    """Reasons to refuse a signed request; the first check, in this order, that fails."""

    MALFORMED = "signature_malformed"
    COMPONENTS = "signature_components"
    TIMES = "signature_times"
    NONCE = "signature_nonce"
    KEY_UNKNOWN = "signature_key_unknown"
    INVALID = "invalid_signature"
    USED = "signature_used"


class SignatureRejected(Invalid):
    """A signature that proves nothing of its request."""

    def __init__(self, fault: SignatureFault, description: str) -> None:
        self.fault = fault
        super().__init__(f"Signature refused: {description}")
