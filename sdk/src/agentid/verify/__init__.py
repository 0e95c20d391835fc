"""Checks that need no call of the service: tokens, certificates, messages, webhooks and audit proofs."""

from agentid.reasons import NotValid, Reason
from agentid.verify.audit import (
    LogTrust,
    VerifiedCheckpoint,
    VerifiedEntry,
    verify_audit_proof,
    verify_checkpoint,
    verify_consistency,
)
from agentid.verify.certificates import TrustedAuthorities, VerifiedCertificate, verify_certificate
from agentid.verify.crl import RevocationLists
from agentid.verify.key_sets import AsyncTokenKeys, TokenKeys
from agentid.verify.messages import canonical, verify_message
from agentid.verify.ocsp import OcspAnswer, OcspQuestion
from agentid.verify.proofs import PresentedProof
from agentid.verify.status_lists import check_status
from agentid.verify.tokens import Actor, TokenRules, VerifiedToken, verify_token
from agentid.verify.webhooks import VerifiedWebhook, verify_webhook

__all__ = [
    "Actor",
    "AsyncTokenKeys",
    "LogTrust",
    "NotValid",
    "OcspAnswer",
    "OcspQuestion",
    "PresentedProof",
    "Reason",
    "RevocationLists",
    "TokenKeys",
    "TokenRules",
    "TrustedAuthorities",
    "VerifiedCertificate",
    "VerifiedCheckpoint",
    "VerifiedEntry",
    "VerifiedToken",
    "VerifiedWebhook",
    "canonical",
    "check_status",
    "verify_audit_proof",
    "verify_certificate",
    "verify_checkpoint",
    "verify_consistency",
    "verify_message",
    "verify_token",
    "verify_webhook",
]
