"""DPoP proofs of requests: whether each holds, is new, and carries a nonce where one is required."""

from delegation.jose.dpop import Proof
from delegation.proofs.checking import (
    PresentedProof,
    ProofCheck,
    begin_check,
    check,
    check_each,
    proven_key,
    proven_keys,
)
from delegation.proofs.nonces import current_nonce

__all__ = [
    "PresentedProof",
    "Proof",
    "ProofCheck",
    "begin_check",
    "check",
    "check_each",
    "current_nonce",
    "proven_key",
    "proven_keys",
]
