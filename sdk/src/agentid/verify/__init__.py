"""Checks that need no call: tokens, certificates, messages, cards, signals, webhooks, records, the log."""

from agentid.errors import NotValid as NotValid, Reason as Reason
from agentid.verify.audit import (
    LogTrust as LogTrust,
    VerifiedCheckpoint as VerifiedCheckpoint,
    VerifiedEntry as VerifiedEntry,
    verify_audit_proof as verify_audit_proof,
    verify_checkpoint as verify_checkpoint,
    verify_consistency as verify_consistency,
)
from agentid.verify.cards import (
    VerifiedCard as VerifiedCard,
    certificate_of as certificate_of,
    verify_card as verify_card,
)
from agentid.verify.key_sets import AsyncTokenKeys as AsyncTokenKeys, TokenKeys as TokenKeys
from agentid.verify.messages import (
    canonical as canonical,
    verify_message as verify_message,
    verify_message_jws as verify_message_jws,
)
from agentid.verify.proofs import PresentedProof as PresentedProof
from agentid.verify.records import RecordKind as RecordKind, verify_record as verify_record
from agentid.verify.revocations import RevocationFeed as RevocationFeed, Revocations as Revocations
from agentid.verify.signals import (
    SignalKind as SignalKind,
    SignalRules as SignalRules,
    VerifiedSignal as VerifiedSignal,
    verify_signal as verify_signal,
)
from agentid.verify.status_lists import check_status as check_status
from agentid.verify.tokens import (
    Actor as Actor,
    TokenRules as TokenRules,
    VerifiedToken as VerifiedToken,
    verify_token as verify_token,
)
from agentid.verify.webhooks import VerifiedWebhook as VerifiedWebhook, verify_webhook as verify_webhook
from agentid.verify.x509.certificates import (
    TrustedAuthorities as TrustedAuthorities,
    VerifiedCertificate as VerifiedCertificate,
    verify_certificate as verify_certificate,
)
from agentid.verify.x509.crl import RevocationLists as RevocationLists
from agentid.verify.x509.ocsp import OcspAnswer as OcspAnswer, OcspQuestion as OcspQuestion
