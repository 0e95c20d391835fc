"""Checks that need no call: tokens, certificates, messages, cards, signals, webhooks, records, the log."""

from agentid.errors import NotValid, Reason
from agentid.verify.audit import (
    LogTrust,
    VerifiedCheckpoint,
    VerifiedEntry,
    verify_audit_proof,
    verify_checkpoint,
    verify_consistency,
)
from agentid.verify.cards import VerifiedCard, certificate_of, verify_card
from agentid.verify.key_sets import AsyncTokenKeys, TokenKeys
from agentid.verify.messages import canonical, verify_message, verify_message_jws
from agentid.verify.proofs import PresentedProof
from agentid.verify.records import RecordKind, verify_record
from agentid.verify.revocations import RevocationFeed, Revocations
from agentid.verify.signals import SignalKind, SignalRules, VerifiedSignal, verify_signal
from agentid.verify.status_lists import check_status
from agentid.verify.tokens import Actor, TokenRules, VerifiedToken, verify_token
from agentid.verify.webhooks import VerifiedWebhook, verify_webhook
from agentid.verify.x509.certificates import TrustedAuthorities, VerifiedCertificate, verify_certificate
from agentid.verify.x509.crl import RevocationLists
from agentid.verify.x509.ocsp import OcspAnswer, OcspQuestion

__all__ = [
    "Actor",
    "AsyncTokenKeys",
    "LogTrust",
    "NotValid",
    "OcspAnswer",
    "OcspQuestion",
    "PresentedProof",
    "Reason",
    "RecordKind",
    "RevocationFeed",
    "RevocationLists",
    "Revocations",
    "SignalKind",
    "SignalRules",
    "TokenKeys",
    "TokenRules",
    "TrustedAuthorities",
    "VerifiedCard",
    "VerifiedCertificate",
    "VerifiedCheckpoint",
    "VerifiedEntry",
    "VerifiedSignal",
    "VerifiedToken",
    "VerifiedWebhook",
    "canonical",
    "certificate_of",
    "check_status",
    "verify_audit_proof",
    "verify_card",
    "verify_certificate",
    "verify_checkpoint",
    "verify_consistency",
    "verify_message",
    "verify_message_jws",
    "verify_record",
    "verify_signal",
    "verify_token",
    "verify_webhook",
]
